import type { IBinaryData, IBinaryKeyData, IDataObject, INodeExecutionData } from 'n8n-workflow';

import type { FailedTask, TaskRecord } from '../service/taskRecord';
import { Stopped } from '../shared/clock';
import { cutDataUris } from '../shared/dataUri';
import { inTableOrder, ItemError } from '../shared/itemError';
import type { ItemParameters } from '../shared/parameters';

/** How finished tasks become output items: the same three options on the action node and on the trigger. */
export interface OutputOptions {
	/** Attach each result as binary data. */
	download: boolean;
	/** The first binary field; further results get `_1`, `_2`, … appended. */
	binaryField: string;
	/** One output item for each result URL. */
	split: boolean;
}

/** Where the results of a task go. */
export interface Destination {
	output: OutputOptions;
	/** The input item that the task belongs to; undefined on the trigger. */
	itemIndex?: number;
}

export const readOutputOptions = (parameters: ItemParameters): OutputOptions => ({
	download: parameters.flag('downloadResults', 'Download Results'),
	binaryField: parameters.optionText('outputBinaryField', 'data'),
	split: parameters.flag('splitResults', 'Split Results'),
});

/**
 * The fields of the contract that a task's record fills.
 *
 * @param sent `model` and `input` as they were sent, where this node created the task
 */
export function taskJson(task: TaskRecord, sent: IDataObject = {}): IDataObject {
	return {
		taskId: task.taskId,
		state: task.state,
		resultUrls: task.state === 'SUCCESS' ? task.resultUrls : [],
		creditsConsumed: task.creditsConsumed,
		...sent,
		record: cutDataUris(task.record),
	};
}

/**
 * Makes the output items of one task: one, or with `split` one for each result.
 *
 * A success without results is one item all the same, so that no task is lost on the way.
 *
 * @param json the fields that every item of the task has
 * @param downloads the results as binary data, where they were asked for: one for each result URL
 */
export function taskItems(
	task: TaskRecord,
	json: IDataObject,
	{ output: { split, binaryField }, itemIndex }: Destination,
	downloads?: IBinaryData[],
): INodeExecutionData[] {
	const toItem = (fields: IDataObject, binary?: IBinaryKeyData): INodeExecutionData => ({
		json: inTableOrder(fields),
		...(binary && { binary }),
		...(itemIndex !== undefined && { pairedItem: { item: itemIndex } }),
	});
	const urls = split && task.state === 'SUCCESS' ? task.resultUrls : [];
	if (urls.length > 0) {
		return urls.map((resultUrl, resultIndex) => {
			const data = downloads?.[resultIndex];
			return toItem({ ...json, resultUrl, resultIndex }, data && { [binaryField]: data });
		});
	}
	const named = downloads?.map((data, index): [string, IBinaryData] => [
		index === 0 ? binaryField : `${binaryField}_${index}`,
		data,
	]);
	return [toItem(json, named && Object.fromEntries(named))];
}

/** What becomes of an input item: its output items, or why there are none. */
export type ItemResult = INodeExecutionData[] | ItemError;

/** How the message begins of a create that may have made a task, of which no id is known. */
export const NOT_KNOWN = 'It is not known whether the task was created';

/** What is known of a task before it is read. */
export function pendingJson(taskId: string, sent: IDataObject): IDataObject {
	return { taskId, state: 'PENDING', resultUrls: [], creditsConsumed: null, ...sent };
}

/**
 * @param sent the model and the input, where this run sent them
 * @param retry a sentence on why it was not created anew
 */
export function failedTask(task: FailedTask, sent: IDataObject = {}, retry?: string): ItemError {
	const { taskId, reason, creditsConsumed } = task;
	const next =
		'Change the prompt or the input of this item, then run this item alone: a full run would pay for the others twice.';
	const charged =
		(creditsConsumed ?? 0) > 0 &&
		`Failed tasks are usually free, but the service says that it charged ${creditsConsumed} credits for this one: ask the service.`;
	const why = reason === undefined ? '' : `: ${reason}`;
	return new ItemError(`Task ${taskId} failed at the service${why}`, {
		description: [next, charged, retry].filter(Boolean).join(' '),
		task: taskJson(task, sent),
	});
}

/**
 * What is said of creating anew where the last task of an item has failed.
 *
 * @param count how many tasks of the item have failed
 */
export function failedInAll(count: number): string {
	return count > 1
		? `${count} tasks of this item have failed.`
		: "If it fails by chance, the option 'Retry Failed Tasks' creates it again.";
}

/**
 * An error of an item that has a task: it names the task, which is paid for, and which nobody finds in a batch else.
 *
 * @param known the fields of the item, as far as they are known
 */
export function ofTask(error: unknown, taskId: string, known: IDataObject): unknown {
	if (error instanceof Stopped) return error;
	const { message, description, statusCode, task } = ItemError.from(error, known);
	// A short id may stand in any message, as 5 does in `HTTP 500`.
	const isNamed = message.toLowerCase().includes(`task ${taskId.toLowerCase()}`);
	const text = isNamed ? message : `Task ${taskId}: ${message}`;
	return new ItemError(text, { description, statusCode, task });
}

/**
 * @param read.last the last record read, if any read brought one
 * @param read.trouble what the last read failed with, if it did
 * @param known the fields of the item, as far as they are known
 */
export function timedOut(
	taskId: string,
	timeoutMs: number,
	{ last, trouble }: { last?: TaskRecord | undefined; trouble?: string | undefined },
	known: IDataObject,
): ItemError {
	// In the service's own word, where it stands at the top of the record.
	const said = last?.record.state;
	const state = typeof said === 'string' ? said : (last?.state ?? 'not read');
	// In the message: where the item leaves, nobody sees the description.
	const failed = trouble === undefined ? '' : `; the last read failed: ${trouble}`;
	return new ItemError(
		`Task ${taskId} is not finished after ${timeoutMs / 1000} s (last state: ${state}${failed})`,
		{
			description:
				"The task goes on at the service and is billed if it succeeds. Fetch it with the operation Task → Wait. Raise 'Timeout' for the next run.",
			task: { ...known, timedOut: true, ...(last && { record: cutDataUris(last.record) }) },
		},
	);
}
