import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { taskItems, taskJson } from '../report/items';
import { failureText } from '../report/outcome';
import type { OutputOptions } from '../report/outputOptions';
import type { FinishedTask } from '../service/taskRecord';

/** The path of the node's resuming webhook, as its description declares it. */
export const RESUME_PATH = 'callback';

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
 * Suspends the execution: it holds no memory and survives restarts.
 *
 * @param items what n8n stores as the input of this node. The resuming webhook sees them, and they leave the node as
 *   they are where the time is up first.
 * @param until when that is
 */
export async function suspend(
	context: IExecuteFunctions,
	items: INodeExecutionData[],
	until: Date,
): Promise<void> {
	const execution = context.getExecuteData();
	// A copy: with an error output n8n takes the items out of the list that the node returns.
	execution.data = { ...execution.data, main: [[...items]] };
	await context.putExecutionToWait(until);
}

/** The item of a task that is not finished yet, as it is stored while the execution is suspended. */
export function pendingItem(json: IDataObject, itemIndex: number): INodeExecutionData {
	// What it says is true the moment it leaves the node without having been replaced.
	return { json: { ...json, timedOut: true }, pairedItem: { item: itemIndex } };
}

/** The task that a stored item waits for, if it waits for one. */
export function pendingTaskId({ json }: INodeExecutionData): string | undefined {
	// One that says why it failed is as it is to leave the node: an earlier try's task that was waited for in vain.
	const isPending = json.timedOut === true && json.error === undefined;
	return isPending && typeof json.taskId === 'string' ? json.taskId : undefined;
}

/**
 * The items that leave the node when the execution is resumed: those that waited are replaced by what became of
 * their tasks. A task that failed is an item with its reason in `error`, because a node that n8n resumes cannot fail
 * item by item.
 *
 * @param tasks the finished tasks by their ids
 */
export function resumedItems(
	stored: readonly INodeExecutionData[],
	tasks: ReadonlyMap<string, FinishedTask>,
	options: OutputOptions,
): INodeExecutionData[] {
	return stored.flatMap((item) => {
		const task = tasks.get(pendingTaskId(item) ?? '');
		if (task === undefined) return [item];
		const known = { ...item.json };
		delete known.timedOut;
		const json: IDataObject = { ...known, ...taskJson(task) };
		if (task.state === 'FAILURE') json.error = failureText(task);
		return taskItems(task, json, options, undefined, item.pairedItem);
	});
}
