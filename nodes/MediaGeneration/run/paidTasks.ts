import type { Journal, SentTask } from '../create/journal';
import { CreatedTaskList } from '../report/createdTaskList';
import { pendingJson } from '../report/outcome';
import { ItemError } from '../shared/itemError';

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
