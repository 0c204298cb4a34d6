import type { IBinaryData, IDataObject } from 'n8n-workflow';

import { hasEnded, type TaskRecord } from '../service/taskRecord';
import { ItemError } from '../shared/itemError';

type StoredError = Pick<ItemError, 'message' | 'description' | 'statusCode' | 'task'>;

/** What became of one task of a run. All times are milliseconds since 1970: another process may read them. */
export interface TaskEntry {
	/** `free`: there is no task. `sent`: a create was sent, and its answer is not known. `created`: there is a task. */
	state: 'free' | 'sent' | 'created';
	taskId?: string;
	/** The execution that was killed or stopped in a turn in which it may have created the task. */
	doubtIn?: string;
	/** The answer to the create, and the model and the input that were sent. */
	record?: IDataObject;
	sent?: IDataObject;
	costUsd?: number | undefined;
	createdAt?: number;
	/** When the task's time is up. */
	until?: number;
	/** The tasks of this entry that failed and cost nothing, oldest first. */
	failed?: string[];
	/** When to create the task again that failed last, and the error if that comes to nothing. */
	again?: { at: number; until: number; deadline: number; failure: StoredError };
	/** The last record that was read. */
	task?: TaskRecord;
	/** Why the last read or download failed. */
	trouble?: string | undefined;
	/** When the task was read last. */
	readAt?: number;
	/** When the task was first read as a success without a usable link. */
	linklessAt?: number | undefined;
	/** Since when the service does not know the task. */
	unknownAt?: number | undefined;
	/** When a turn first found the task's time up, and could not read it. */
	overdueAt?: number;
	files?: IBinaryData[];
	/** Fields of the output that the record does not have. */
	fields?: IDataObject;
	/** How the entry ended, if it has ended. An item that left before its task ended has a result, too. */
	end?: 'result' | 'error';
	error?: StoredError;
}

/** The ids of all tasks of an entry, oldest first. */
export const taskIdsIn = ({ taskId, failed = [] }: TaskEntry): string[] =>
	taskId === undefined ? failed : [...failed, taskId];

/** The next try begins an entry that failed anew: it takes up its task, or creates a task if the task has failed. */
export function reopen(entry: TaskEntry): void {
	const { end, task } = entry;
	// The service charged for a failed task, so it may charge for the next one, too.
	const isCharged = task?.state === 'FAILURE' && (task.creditsConsumed ?? 0) > 0;
	if (end !== 'error' || isCharged) return;
	if (task?.state === 'FAILURE') freeAfterFailure(entry);
	delete entry.end;
	delete entry.error;
	delete entry.until;
	delete entry.overdueAt;
	delete entry.trouble;
	delete entry.again;
}

/** The task has failed at the service, and cost nothing: another task may be created. Its id is kept. */
export function freeAfterFailure(entry: TaskEntry): void {
	const { taskId, failed = [] } = entry;
	entry.state = 'free';
	if (taskId !== undefined) entry.failed = [...failed, taskId];
	delete entry.taskId;
	delete entry.task;
	delete entry.until;
}

/** An error as n8n stores it: plain data, from which `errorOf` makes the error again. */
export function storedError({ message, description, statusCode, task }: ItemError): StoredError {
	return { message, description, statusCode, task };
}

/** The error with which an entry ended. */
export const errorOf = ({ error }: TaskEntry): ItemError =>
	new ItemError(error?.message ?? 'Nothing is known of this item', error);

/** Whether the entry has no task yet, and may get a task. */
export const isToCreate = ({ state, end }: TaskEntry): boolean =>
	state === 'free' && end === undefined;

/** Whether the entry has a task that holds a place at the account until it has ended. */
export const holdsPlace = ({ taskId, task, end }: TaskEntry): boolean =>
	taskId !== undefined && end === undefined && !hasEnded(task);
