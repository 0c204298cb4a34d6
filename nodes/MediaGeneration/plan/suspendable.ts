import type { IExecuteFunctions } from 'n8n-workflow';
import * as n8nWorkflow from 'n8n-workflow';

import { ItemError } from '../shared/itemError';

/** Part of n8n 2, and not of n8n 1, which may resume a suspended execution more than once. */
const SINCE_N8N_2 = 'validateWorkflowHasTriggerLikeNode';

const OTHERS =
	"Choose 'Wait by Polling' or 'Return Immediately' in 'Completion'. No task was created.";

/**
 * Refuses to suspend where n8n cannot resume, and warns where it will not, before anything is paid for.
 *
 * @throws ItemError with the reason
 */
export function checkSuspendable(context: IExecuteFunctions): void {
	if (!(SINCE_N8N_2 in n8nWorkflow)) {
		throw new ItemError("'Suspend Until Finished' needs n8n 2 or later", { description: OTHERS });
	}
	const settings = settingsOf(context);
	if (settings.engineType === 'v2') {
		throw new ItemError(
			"'Suspend Until Finished' does not work with the engine v2 of this workflow, which resumes no execution",
			{ description: OTHERS },
		);
	}
	const limit = settings.executionTimeout;
	if (typeof limit === 'number' && limit > 0) warnOfLimit(context, limit);
}

/** n8n counts the wait, and cancels an execution that is to go on after that. */
function warnOfLimit(context: IExecuteFunctions, seconds: number): void {
	const message = `This workflow has a time limit of ${seconds} s, and n8n counts the wait: it cancels the execution where the tasks take longer. Raise it in the settings of the workflow.`;
	context.logger.warn(`${context.getNode().name}: ${message}`);
	context.addExecutionHints?.({ message, type: 'warning', location: 'outputPane' });
}

/** Some versions of n8n do not tell. */
function settingsOf(context: IExecuteFunctions): {
	engineType?: unknown;
	executionTimeout?: unknown;
} {
	return typeof context.getWorkflowSettings === 'function' ? context.getWorkflowSettings() : {};
}
