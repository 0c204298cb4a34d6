import type { IExecuteFunctions, INodeExecutionData, IWebhookFunctions } from 'n8n-workflow';

import { readStored } from '../shared/storedVersion';
import { CHECK_VERSION } from './storedCheck';

/** The path of the node's resuming webhook, as its description declares it. */
export const RESUME_PATH = 'callback';

/** The place in the node's context, which n8n stores with the execution. */
const CHECK = 'check';

/**
 * The URL that resumes a suspended execution: n8n's, with the path of the webhook before the query, where n8n 2 keeps a
 * signature.
 */
export function resumeUrl(context: IExecuteFunctions | IWebhookFunctions): string {
	const url = new URL(String(context.evaluateExpression('{{ $execution.resumeUrl }}', 0)));
	url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, '')}/${RESUME_PATH}`;
	return url.href;
}

/**
 * Replaces what n8n stores as the input of this node. The resuming webhook sees these items. They leave the node where
 * n8n resumes the execution by time.
 */
export function storeInput(context: IExecuteFunctions, items: INodeExecutionData[]): void {
	const execution = context.getExecuteData();
	// A copy: with an error output n8n takes the items out of the list that the node returns.
	execution.data = { ...execution.data, main: [[...items]] };
}

/** What a suspended execution notes for its callbacks. */
export interface CheckNote {
	/** The resume URL of the sub-execution that checks its tasks, with n8n's signature; empty where it is not known. */
	url: string;
	/** The tasks that it waits for. */
	taskIds: string[];
}

export function noteCheck(context: IExecuteFunctions, note: CheckNote): void {
	context.getContext('node')[CHECK] = { version: CHECK_VERSION, ...note };
}

/**
 * @returns what the suspended execution has noted; undefined where it is a sub-execution itself
 * @throws UserError where another version of this package suspended the execution
 */
export function checkNote(context: IWebhookFunctions): CheckNote | undefined {
	const name = JSON.stringify(context.getNode().name);
	const stored: unknown = context.evaluateExpression(`{{ $node[${name}].context.${CHECK} }}`);
	if (stored === undefined || stored === null) return undefined;
	return readStored(stored, CHECK_VERSION) as unknown as CheckNote;
}
