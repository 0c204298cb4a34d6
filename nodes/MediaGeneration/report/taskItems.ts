import type { IBinaryData, IBinaryKeyData, IDataObject, INodeExecutionData } from 'n8n-workflow';

import { creditsIn, placesOfResults, type TaskRecord } from '../service/taskRecord';
import { isRecord } from '../shared/json';
import { inTableOrder, type ItemError } from '../shared/itemError';
import { isTool } from '../n8n/internals';
import type { ItemParameters } from '../shared/parameters';
import { recordRest } from './recordRest';

/** How finished tasks become output items, on the action node and on the trigger. */
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
	/** The index of the task's input item; undefined on the trigger. */
	itemIndex?: number;
}

/** @param download the value of *Download Results*; by default that of the panel. An agent gets no files. */
export const readOutputOptions = (
	parameters: ItemParameters,
	download: unknown = !isTool(parameters.context) && parameters.value('downloadResults'),
): OutputOptions => ({
	download: parameters.flag('downloadResults', 'Download Results', download),
	binaryField: parameters.optionName('outputBinaryField', 'Put Output File in Field', 'data'),
	split: parameters.flag('splitResults', 'Split Results'),
});

/** The output fields of a task's record. @param sent the fields of the item that the record does not have */
export function taskJson(task: TaskRecord, sent: IDataObject = {}): IDataObject {
	const { taskId, state, record } = task;
	const fields = {
		taskId,
		state,
		resultUrls: task.state === 'SUCCESS' ? task.resultUrls : [],
		// A failed task is free, unless the service says otherwise (specification, sections 2 and 7).
		creditsConsumed: task.creditsConsumed ?? (state === 'FAILURE' ? 0 : null),
	};
	return { ...fields, ...sent, record: recordRest(record, { ...sent, ...fields }) };
}

/**
 * Makes the output items of a task: one item, or with `split` one item for each result. A success without results is one
 * item, so that no task is lost.
 *
 * @param json the fields that each item of the task has
 * @param downloads the results as binary data if the options ask for them: one for each result URL
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
	if (task.state === 'SUCCESS' && urls.length > 0) {
		const places = placesOfResults(task);
		return urls.map((resultUrl, index) => {
			const data = downloads?.[index];
			const resultIndex = places[index];
			return toItem({ ...json, resultUrl, resultIndex }, data && { [binaryField]: data });
		});
	}
	const named = downloads?.map((data, index): [string, IBinaryData] => [
		index === 0 ? binaryField : `${binaryField}_${index}`,
		data,
	]);
	return [toItem(json, named?.length ? Object.fromEntries(named) : undefined)];
}

/** The result of an input item: its output items, or the error. */
export type ItemResult = INodeExecutionData[] | ItemError;

/** The output fields of a task before its first read. */
export function pendingJson(taskId: string, sent: IDataObject): IDataObject {
	const creditsConsumed = creditsIn(sent.record);
	const fields = { taskId, state: 'PENDING', resultUrls: [], creditsConsumed };
	const json = { ...fields, ...sent };
	return { ...json, ...(isRecord(sent.record) && { record: recordRest(sent.record, json) }) };
}
