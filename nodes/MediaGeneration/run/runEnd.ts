import type { IExecuteFunctions, INode, INodeExecutionData } from 'n8n-workflow';

import { describeStop } from '../report/failures';
import { type ItemResult, pendingJson } from '../report/outcome';
import { ItemError } from '../shared/itemError';
import type { Journal, SentTask } from '../create/journal';
import { CreatedTaskList } from '../report/createdTaskList';

type Results = ReadonlyArray<ItemResult | undefined>;

/**
 * The items that leave the node: in place of a failed one, what is known of it.
 *
 * @param inputOf the input item that each result belongs to
 */
export function leavingItems(
	node: INode,
	results: Results,
	inputOf: readonly number[],
): INodeExecutionData[] {
	return results.flatMap((result, index) => {
		if (!(result instanceof ItemError)) return result ?? [];
		return [result.toItem(node, { item: inputOf[index] ?? 0 })];
	});
}

/**
 * The error that stops the node: it names every task that was created, so that nothing paid for is lost.
 *
 * @param result of the item that stops the node
 * @param item the index of its input item
 * @param paid the tasks that were created
 */
export function stopError(
	node: INode,
	result: ItemResult | undefined,
	item: number,
	paid: string | undefined,
): Error {
	const error = ItemError.from(result);
	return error.toNodeError(node, item, describeStop(error, paid));
}

/** Why the run ended before its items did: it was stopped, as a rule. */
export function explainEnd(
	context: IExecuteFunctions,
	reason: unknown,
	paid: string | undefined,
): Error {
	const node = context.getNode();
	const error = ItemError.from(reason);
	// n8n does not keep the error of a node that was stopped, so its log is where the ids can be found.
	if (paid !== undefined) context.logger.warn(`${node.name}: ${error.message}. ${paid}`);
	return error.toNodeError(node, undefined, paid);
}

/** The tasks that earlier tries of this run have created. */
export function createdTasks(journal: Journal): CreatedTaskList {
	const tasks = new CreatedTaskList(journal.taskIds());
	for (const taskId of journal.failedTaskIds()) tasks.note(taskId, 'FAILURE');
	return tasks;
}

/** @returns every task that is paid for or may be; undefined where there is none */
export const describePaid = (created: CreatedTaskList, journal: Journal): string | undefined =>
	created.describe(journal.unanswered());

/** An item that cannot be planned this time names the task that an earlier try created for it. */
export function withEarlierTask(error: ItemError, task: SentTask | undefined): ItemError {
	return task ? ItemError.from(error, pendingJson(task.taskId, task.sent)) : error;
}
