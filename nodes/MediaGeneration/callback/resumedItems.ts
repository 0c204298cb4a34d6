import type { INodeExecutionData } from 'n8n-workflow';

import { taskJson } from '../report/items';
import { failureText } from '../report/outcome';
import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import { without } from '../shared/json';
import { pendingTaskId } from './suspension';

const PARALLEL_READS = 25;

/**
 * The items of an execution that version 0.1.0 suspended: it has no sub-execution, and its callbacks resume it
 * themselves, when all of its tasks are finished.
 *
 * @param taskIds what it waits for
 * @param read reads a task
 * @returns the stored items, those that waited replaced; 'pending' where a task is not finished
 * @throws whatever a read throws
 */
export async function resumedItems(
	stored: readonly INodeExecutionData[],
	taskIds: readonly string[],
	read: (taskId: string) => Promise<TaskRecord>,
): Promise<INodeExecutionData[] | 'pending'> {
	const finished = new Map<string, FinishedTask>();
	for (let at = 0; at < taskIds.length; at += PARALLEL_READS) {
		const tasks = await Promise.all(taskIds.slice(at, at + PARALLEL_READS).map(read));
		for (const task of tasks) {
			if (task.state === 'PENDING') return 'pending';
			finished.set(task.taskId, task);
		}
	}
	return stored.map((item) => {
		const task = finished.get(pendingTaskId(item) ?? '');
		if (task === undefined) return item;
		const known = without(item.json, 'timedOut');
		const error = task.state === 'FAILURE' && { error: failureText(task) };
		return { ...item, json: { ...known, ...taskJson(task), ...error } };
	});
}
