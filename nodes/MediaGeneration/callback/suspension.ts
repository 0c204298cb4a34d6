import type {
	IDataObject,
	IExecuteFunctions,
	INodeExecutionData,
	IWebhookFunctions,
} from 'n8n-workflow';

import { recordLast } from '../shared/outputJson';
import { readStored } from '../shared/storedState';

/** The path of the node's resuming webhook, as its description declares it. */
export const RESUME_PATH = 'callback';

/** The place in the node's context, which n8n stores with the execution. */
const WATCHER = 'watcher';

/**
 * Of the stored items and of what is noted beside them. Raised when the shape changes: what is stored outlives an
 * update of this package. Version 0.1.0 noted nothing.
 */
const SUSPENSION_VERSION = 1;

/**
 * The URL that resumes an execution which this node has suspended: n8n's, with the path of the webhook before the
 * query, where n8n 2 keeps a signature.
 */
export function resumeUrl(context: IExecuteFunctions): string {
	const url = new URL(String(context.evaluateExpression('{{ $execution.resumeUrl }}', 0)));
	url.pathname = `${url.pathname.replace(/\/+$/, '')}/${RESUME_PATH}`;
	return url.href;
}

/**
 * Replaces what n8n stores as the input of this node. The resuming webhook sees these items, and they leave the node as
 * they are where the time is up first.
 */
export function storeInput(context: IExecuteFunctions, items: INodeExecutionData[]): void {
	const execution = context.getExecuteData();
	// A copy: with an error output n8n takes the items out of the list that the node returns.
	execution.data = { ...execution.data, main: [[...items]] };
}

/** The item of a task that is not finished yet, as it is stored while the execution is suspended. */
export function pendingItem(json: IDataObject, itemIndex: number): INodeExecutionData {
	// What it says is true the moment it leaves the node without having been replaced.
	return { json: recordLast({ ...json, timedOut: true }), pairedItem: { item: itemIndex } };
}

/** The task that a stored item waits for, if it waits for one. */
export function pendingTaskId({ json }: INodeExecutionData): string | undefined {
	// One that says why it failed is as it is to leave the node: an earlier try's task that was waited for in vain.
	const isPending = json.timedOut === true && json.error === undefined;
	return isPending && typeof json.taskId === 'string' ? json.taskId : undefined;
}

/**
 * Remembers where the sub-execution is reached that looks for the tasks of this execution.
 *
 * @param url its resume URL, with n8n's signature; undefined where it is not known
 */
export function noteWatcher(context: IExecuteFunctions, url: string | undefined): void {
	context.getContext('node')[WATCHER] = {
		version: SUSPENSION_VERSION,
		url: url ?? '',
		of: context.getExecutionId(),
	};
}

/**
 * Where the sub-execution is reached that looks for the tasks of a suspended execution.
 *
 * @returns its resume URL, empty where it is not known; undefined where there is none, as in version 0.1.0
 * @throws UserError where a newer version of this package suspended it
 */
export function watcherUrl(context: IWebhookFunctions): string | undefined {
	const name = JSON.stringify(context.getNode().name);
	const stored: unknown = context.evaluateExpression(`{{ $node[${name}].context.${WATCHER} }}`);
	if (stored === undefined || stored === null) return undefined;
	const { of, url } = readStored(stored, SUSPENSION_VERSION, { of: 'string', url: 'string' }) as {
		of: string;
		url: string;
	};
	// A retry sees what the first execution noted, and waits for a sub-execution of its own.
	return of === context.getExecutionId() ? url : undefined;
}
