import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import type { SucceededTask, TaskRecord } from '../service/taskRecord';
import { cutDataUris } from '../shared/dataUri';
import { inTableOrder } from '../shared/itemError';
import type { Downloads } from './download';

/** How finished tasks become output items: the same three options on the action node and on the trigger. */
export interface OutputOptions {
	/** Attach each result as binary data. */
	download: boolean;
	/** The first binary field; further results get `_1`, `_2`, … appended. */
	binaryField: string;
	/** One output item for each result URL. */
	split: boolean;
}

/** @param option reads one entry of the node's `options` collection */
export function readOutputOptions(option: (name: string) => unknown): OutputOptions {
	const field = option('outputBinaryField');
	return {
		download: option('downloadResults') === true,
		binaryField: typeof field === 'string' && field.trim() !== '' ? field.trim() : 'data',
		split: option('splitResults') === true,
	};
}

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
 * @param pairedItem the input item that the task belongs to; undefined on the trigger
 */
export function taskItems(
	task: TaskRecord,
	json: IDataObject,
	{ split, binaryField }: OutputOptions,
	downloads: Downloads | undefined,
	pairedItem: INodeExecutionData['pairedItem'],
): INodeExecutionData[] {
	const fields = inTableOrder(json);
	const paired = pairedItem === undefined ? {} : { pairedItem };
	const urls = resultUrls(task);
	if (!split || urls.length === 0) {
		const binary =
			downloads &&
			Object.fromEntries(
				downloads.map((data, index) => [
					index === 0 ? binaryField : `${binaryField}_${index}`,
					data,
				]),
			);
		return [{ json: fields, ...(binary && { binary }), ...paired }];
	}
	return urls.map((resultUrl, resultIndex) => {
		const data = downloads?.[resultIndex];
		return {
			json: inTableOrder({ ...fields, resultUrl, resultIndex }),
			...(data && { binary: { [binaryField]: data } }),
			...paired,
		};
	});
}

function resultUrls(task: TaskRecord): SucceededTask['resultUrls'] {
	return task.state === 'SUCCESS' ? task.resultUrls : [];
}
