import type { IDataObject } from 'n8n-workflow';

import { shownRecord, type FailedTask, reasonOf, type TaskRecord } from '../service/taskRecord';
import { count, ItemError } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { quoted } from '../shared/media';
import { furtherFields, taskJson } from './taskItems';

/** The beginning of the message for a create that may have made a task whose id is not known. */
export const NOT_KNOWN = 'It is not known whether the task was created';

/** Why such a create is never sent again, and what to do. */
export const MAY_BE_BILLED =
	'The task may exist and may be billed once. It was not sent again, so that it is not paid for twice. Look at the tasks or the credits of your account before you run this item again.';

/**
 * The error of an item whose task has failed at the service: why, then what is paid, then what to do.
 *
 * @param known the fields of the item that the record does not have
 * @param retry a sentence that says why the task was not created again; undefined if the node has not created the task
 */
export function failedTask(task: FailedTask, known: IDataObject, retry?: string): ItemError {
	const { reason, creditsConsumed } = task;
	const next =
		retry === undefined
			? 'A failed task stays failed. Create another task with another prompt or input.'
			: 'Change the prompt or the input of this item, then run the item again.';
	const cost =
		(creditsConsumed ?? 0) > 0
			? `Failed tasks are usually free, but the service says that it charged ${creditsConsumed} credits for this one: ask the service.`
			: 'The task failed at the service, which is usually free.';
	const why =
		reason ?? `The task failed at the service, whose record begins: ${shownRecord(task.record)}`;
	return new ItemError(why, {
		description: [cost, retry, next].filter(Boolean).join(' '),
		task: taskJson(task, known),
	});
}

/** The error of an item whose file is not there when n8n's time limit is near, or the caller hangs up. */
export const lateFile = (task: TaskRecord, known: IDataObject): ItemError =>
	new ItemError("The file has not come before n8n's time limit, or before the caller hangs up", {
		description:
			'The task is done and paid for: do not order it again. Fetch the result with the operation Wait for Task.',
		task: taskJson(task, known),
	});

/**
 * The error of an item whose task has no state, while its record says with an error code why.
 *
 * @param trouble the last read of the task
 * @param known the fields of the item
 */
export function refusedTask(
	{ message }: Pick<ItemError, 'message'>,
	known: IDataObject,
	taskId = '',
): ItemError {
	const task = { taskId, state: 'FAILURE', resultUrls: [], creditsConsumed: null, ...known };
	return new ItemError(message, {
		description:
			'The record has said so for five minutes, so the task counts as failed, which is usually free. Look at the task in your account before you run the item again.',
		task,
	});
}

/**
 * The warning about tasks that succeeded without a usable link, with what the service says of the first one.
 *
 * @param tasks the output fields of these tasks
 * @returns undefined if there are none
 */
export function withoutResult(tasks: readonly IDataObject[]): string | undefined {
	const [first] = tasks;
	if (first === undefined) return undefined;
	const said = isRecord(first.record) ? reasonOf(first.record) : 'nothing';
	const what = `${count(tasks.length, 'task')} succeeded, and the service named no result that can be used`;
	return `${what}. Of task ${String(first.taskId)} it says: ${said}`;
}

/**
 * The warning about tasks of which some results are missing.
 *
 * @returns undefined if there are none
 */
export function missingResults(tasks: ReadonlyArray<TaskRecord | undefined>): string | undefined {
	const gaps = tasks.flatMap((task) =>
		task?.state === 'SUCCESS' && task.emptyIndexes !== undefined ? [task] : [],
	);
	const [first] = gaps;
	if (first === undefined) return undefined;
	const missing = gaps.reduce((sum, { emptyIndexes = [] }) => sum + emptyIndexes.length, 0);
	const all = gaps.reduce((sum, { resultUrls }) => sum + resultUrls.length, missing);
	return `${missing} of ${count(all, 'result')} missing: the service's list has places without a link, first in task ${first.taskId}`;
}

/** Whether the service names no result of a task that has succeeded. */
export const isWithoutResult = ({ state, resultUrls, error }: IDataObject): boolean =>
	state === 'SUCCESS' && error === undefined && [resultUrls].flat().length === 0;

/** @param failures how many tasks of the item have failed */
export function failedInAll(failures: number): string {
	return failures > 1
		? `${failures} tasks of this item have failed.`
		: "If it fails by chance, the option 'Retry Failed Tasks' creates it again.";
}

/**
 * The error of an item whose wait ended before its task.
 *
 * @param waitedMs how long the task was waited for, milliseconds
 * @param why.last the last record that was read
 * @param why.trouble why the last read failed
 * @param why.isAtLimit whether n8n's time limit has ended the wait
 * @param why.isToCaller whether a caller hears of it that would order again
 * @param known the known fields of the item
 */
export function timedOut(
	waitedMs: number,
	{
		last,
		trouble,
		isAtLimit = false,
		isToCaller = false,
	}: {
		last?: TaskRecord | undefined;
		trouble?: string | undefined;
		isAtLimit?: boolean;
		isToCaller?: boolean;
	},
	known: IDataObject,
): ItemError {
	// The service's own word, if the record has it at the top.
	const said = last?.record.state;
	const state = typeof said === 'string' ? quoted(said, 100) : (last?.state ?? 'not read');
	// This belongs to the message: an item that leaves does not show the description.
	const failed = trouble === undefined ? '' : `; the last read failed: ${trouble}`;
	const advice = isToCaller ? '. It goes on: do not order it again, ask for its result later' : '';
	const what = `The task is not finished after ${waitedMs / 1000} s; last state: ${state}${failed}${advice}`;
	const creditsConsumed = last?.creditsConsumed ?? known.creditsConsumed ?? null;
	const fields = { ...known, creditsConsumed };
	const next = isAtLimit
		? 'The wait ends now, because n8n cancels the execution soon: raise the time limit of the workflow for the next run.'
		: "Raise 'Timeout' for the next run.";
	return new ItemError(what, {
		description: `The task goes on at the service and is billed if it succeeds. Fetch it with the operation Wait for Task. ${next}`,
		task: {
			...fields,
			timedOut: true,
			...(last && { record: furtherFields(last.record, { ...fields, state: last.state }) }),
		},
	});
}
