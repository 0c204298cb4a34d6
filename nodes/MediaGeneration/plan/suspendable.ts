import type { IExecuteFunctions } from 'n8n-workflow';
import * as n8nWorkflow from 'n8n-workflow';

import { callbackAddress } from '../callback/callbackUrl';
import { isOutOfReach } from '../callback/reachability';
import { resumeUrl } from '../callback/suspension';
import type { Connection } from '../service/connect';
import { isEngineV2 } from '../shared/engineV2';
import { insidesOf } from '../shared/insides';
import { ItemError } from '../shared/itemError';

/** The account that the tasks are for. */
export type Account = Pick<Connection, 'apiKey' | 'baseUrl'>;

/** Part of n8n 2, and not of n8n 1, which may resume a suspended execution more than once. */
const SINCE_N8N_2 = 'validateWorkflowHasTriggerLikeNode';

/** Part of those that look for executions whose sub-execution has ended: 2.41, and the last of 2.39. */
const SINCE_N8N_LOOKS = 'WAIT_FOR_SUB_EXECUTION';

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
	if (isEngineV2(context)) {
		throw new ItemError(
			"'Suspend Until Finished' does not work with the engine v2 of this workflow, which resumes no execution",
			{ description: OTHERS },
		);
	}
	const limit = timeLimitOf(context);
	if (limit !== undefined) {
		warn(
			context,
			`This workflow has a time limit of ${limit} s, and n8n counts the wait: it cancels the execution where the tasks take longer. Raise it in the settings of the workflow, or where it is the limit of this n8n, EXECUTIONS_TIMEOUT and EXECUTIONS_TIMEOUT_MAX.`,
		);
	}
	if (!(SINCE_N8N_LOOKS in n8nWorkflow)) {
		warn(
			context,
			"Before 2.41, n8n may let the items out early where it restarts during the wait: with 'timedOut' and their task ids, which Task → Wait takes. Update n8n, or look at 'timedOut' behind this node.",
		);
	}
}

function warn(context: IExecuteFunctions, message: string): void {
	context.logger.warn(`${context.getNode().name}: ${message}`);
	context.addExecutionHints?.({ message, type: 'warning', location: 'outputPane' });
}

/**
 * n8n's own limit holds for a workflow without one, and n8n may have a largest one for those that have.
 *
 * @returns seconds; undefined where there is none, or some versions of n8n do not tell
 */
function timeLimitOf(context: IExecuteFunctions): number | undefined {
	const settings: { executionTimeout?: unknown } =
		typeof context.getWorkflowSettings === 'function' ? context.getWorkflowSettings() : {};
	const ofWorkflow = settings.executionTimeout;
	const endsAt = insidesOf(context).additionalData?.executionTimeoutTimestamp;
	const limits = [
		...(typeof ofWorkflow === 'number' && ofWorkflow > 0 ? [ofWorkflow] : []),
		...(typeof endsAt === 'number' ? [Math.ceil((endsAt - Date.now()) / 1000)] : []),
	];
	return limits.length > 0 ? Math.min(...limits) : undefined;
}

/** Where the service calls a suspended execution back, if it can: without a callback the task is found by looking. */
export function resumeAddressOf(
	context: IExecuteFunctions,
	{ apiKey, baseUrl }: Account,
): { webhookUrl?: string } {
	checkSuspendable(context);
	const url = resumeUrl(context);
	return isOutOfReach(url, baseUrl) ? {} : { webhookUrl: callbackAddress(url, apiKey) };
}
