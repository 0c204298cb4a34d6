import type {
	IDataObject,
	IExecuteFunctions,
	INodeExecutionData,
	IWebhookFunctions,
} from 'n8n-workflow';

import { inTableOrder } from '../shared/itemError';
import { readStored } from '../shared/storedState';

/** The path of the node's resuming webhook, as its description declares it. */
export const RESUME_PATH = 'callback';

/** The place in the node's context, which n8n stores with the execution. */
const CHECK = 'check';

/**
 * The version of what is noted beside the stored items. Raised when the shape changes: an update of this package may
 * read what the version before it stored.
 */
const SUSPENSION_VERSION = 1;

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

/** The item of a task that is not finished yet, as it is stored while the execution is suspended. */
export function pendingItem(json: IDataObject, itemIndex: number): INodeExecutionData {
	// `timedOut` is true the moment n8n lets this item out instead of the results.
	return { json: inTableOrder({ ...json, timedOut: true }), pairedItem: { item: itemIndex } };
}

/** The task that a stored item waits for, if it waits for one. */
export function pendingTaskId({ json }: INodeExecutionData): string | undefined {
	// An item with an error is final: its task was held to the end of its time.
	const isPending = json.timedOut === true && json.error === undefined;
	return isPending && typeof json.taskId === 'string' ? json.taskId : undefined;
}

/**
 * Notes where the sub-execution is reached that checks the tasks of this execution.
 *
 * @param url its resume URL, with n8n's signature; undefined where it is not known
 */
export function noteCheck(context: IExecuteFunctions, url: string | undefined): void {
	context.getContext('node')[CHECK] = {
		version: SUSPENSION_VERSION,
		url: url ?? '',
		of: context.getExecutionId(),
	};
}

/**
 * Where the sub-execution is reached that checks the tasks of a suspended execution.
 *
 * @returns its resume URL, empty where it is not known; undefined where there is no such sub-execution
 * @throws UserError where another version of this package suspended the execution
 */
export function checkUrl(context: IWebhookFunctions): string | undefined {
	const name = JSON.stringify(context.getNode().name);
	const stored: unknown = context.evaluateExpression(`{{ $node[${name}].context.${CHECK} }}`);
	if (stored === undefined || stored === null) return undefined;
	const { of, url } = readStored(stored, SUSPENSION_VERSION);
	// A retry sees what the first execution noted, and waits for a sub-execution of its own.
	return of === context.getExecutionId() ? String(url) : undefined;
}
