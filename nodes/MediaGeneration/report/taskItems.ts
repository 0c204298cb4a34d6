import type { IBinaryData, IBinaryKeyData, IDataObject, INodeExecutionData } from 'n8n-workflow';

import type { TaskRecord } from '../service/taskRecord';
import { cutDataUris } from '../shared/dataUri';
import { inTableOrder } from '../shared/itemError';
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
