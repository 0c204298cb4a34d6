import type { IBinaryData, IBinaryKeyData, IDataObject, INodeExecutionData } from 'n8n-workflow';

import { isTool } from '../n8n/internals';
import { layersOf } from '../service/answerFields';
import { creditsIn, resultIndexes, type TaskRecord } from '../service/taskRecord';
import { inTableOrder, type ItemError } from '../shared/itemError';
import { isRecord, isSame, plainName, toNumber } from '../shared/json';
import { cutDataUris } from '../shared/media';
import type { ItemParameters } from '../shared/parameters';

/** The default of *Name of File Field*. */
export const FIRST_FILE = 'data';

/** How finished tasks become output items. */
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
	/** The index of the task's input item. An item may name many tasks. */
	itemIndex: number;
}

/** Reads how the tasks of an item leave. An agent gets no files. */
export function readOutputOptions(parameters: ItemParameters): OutputOptions {
	const download = !isTool(parameters.context) && parameters.value('downloadResults');
	return {
		download: parameters.flag('downloadResults', 'Download Results', download),
		binaryField: parameters.optionName('outputBinaryField', 'Name of File Field', FIRST_FILE),
		split: parameters.flag('splitResults', 'Split Results'),
	};
}

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
	return { ...fields, ...sent, record: furtherFields(record, { ...sent, ...fields }) };
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
		pairedItem: { item: itemIndex },
	});
	const urls = split && task.state === 'SUCCESS' ? task.resultUrls : [];
	if (task.state === 'SUCCESS' && urls.length > 0) {
		const indexes = resultIndexes(task);
		return urls.map((resultUrl, index) => {
			const data = downloads?.[index];
			const resultIndex = indexes[index];
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

/**
 * The output fields of a task that a dry run does not order. n8n shows the fields of the last run to whoever builds the next
 * node, so the fields of a real run are there. An agent builds no node.
 *
 * @param sent the fields that are known without a task
 */
export function dryJson(context: ItemParameters['context'], sent: IDataObject): IDataObject {
	const ofTask = { taskId: null, state: null, resultUrls: [], creditsConsumed: null };
	return inTableOrder({ ...(!isTool(context) && ofTask), ...sent, dryRun: true });
}

/** The output fields of a task before its first read. */
export function pendingJson(taskId: string, sent: IDataObject): IDataObject {
	const creditsConsumed = creditsIn(sent.record);
	const fields = { taskId, state: 'PENDING', resultUrls: [], creditsConsumed };
	const json = { ...fields, ...sent };
	return { ...json, ...(isRecord(sent.record) && { record: furtherFields(sent.record, json) }) };
}

/** The layers of an answer that may have a task's fields: the top, and inside these. */
const WRAPPERS = ['data', 'task'];

/**
 * What the service's record of a task holds beside the item's own fields. The prompt metadata come first. Fields are not
 * changed, except that long data URIs are cut.
 *
 * @param json the item, with `taskId`, `state`, `resultUrls`, `creditsConsumed`, and `model` and `input` if this node sent
 *   them
 * @see docs/service.openapi.yaml, section 2
 */
export function furtherFields(record: IDataObject, json: IDataObject): IDataObject {
	// Cut first: the item's own `input` is cut, too.
	return furtherIn(cutDataUris(record), json);
}

function furtherIn(record: IDataObject, json: IDataObject): IDataObject {
	const entries = Object.entries(record).flatMap(([name, value]): Array<[string, typeof value]> => {
		if (WRAPPERS.includes(name) && isRecord(value)) {
			const rest = furtherIn(value, json);
			return Object.keys(rest).length > 0 ? [[name, rest]] : [];
		}
		return repeats(plainName(name), value, json) ? [] : [[name, value]];
	});
	return Object.fromEntries(entries.sort(([one], [other]) => rankOf(one) - rankOf(other)));
}

/** Whether the item's own fields say this, too. A state or links that the package has read otherwise are kept. */
function repeats(name: string, value: unknown, json: IDataObject): boolean {
	const isNothing = value === null || (Array.isArray(value) && value.length === 0);
	switch (name) {
		case 'taskid':
		case 'id':
			return String(value).trim().toLowerCase() === String(json.taskId).toLowerCase();
		case 'state':
			return String(value).trim().toUpperCase() === json.state;
		case 'creditsconsumed':
			return isNothing || toNumber(value) === json.creditsConsumed;
		case 'resulturls': {
			const urls = Array.isArray(json.resultUrls) ? json.resultUrls : [];
			const listed = [value].flat();
			const isText = listed.every((entry) => typeof entry === 'string' && entry.trim() !== '');
			return isNothing || (urls.length > 0 && isText);
		}
		case 'model':
		case 'input':
			return isSame(value, json[name]);
		default:
			return false;
	}
}

/** The names of prompt metadata are not shown in the specification: these are the usual ones. */
const RANKS = [/prompt/, /^(data|task)$/, /^(input|model|param|meta|setting|option|seed|style)/];

function rankOf(name: string): number {
	const rank = RANKS.findIndex((pattern) => pattern.test(plainName(name)));
	return rank === -1 ? RANKS.length : rank;
}

/** How much of a prompt stands in a name, characters. */
const PROMPT_CHARACTERS = 40;

/** How much of a prompt is looked at. */
const PROMPT_LOOKED_AT = 400;

/** How many signs of the task id stand in a name: they tell files of the same prompt apart. */
const ID_SIGNS = 4;

/**
 * The beginning of the names of a task's files: the number of the item, the first words of the prompt, and a few signs of
 * the task id. The names have no characters that a file system may refuse.
 *
 * @param record the service's record of the task
 * @param sent the fields of the item, with the `input` that was sent; the record may repeat it
 * @param number tells the task among the tasks of its run
 */
export function fileStem(
	taskId: string,
	record: IDataObject,
	sent: IDataObject = {},
	number?: string,
): string {
	const prompt = [sent, ...layersOf(record)].map(promptIn).find((each) => each !== undefined);
	const id = wordsIn(taskId).at(-1)?.slice(-ID_SIGNS);
	const parts = [number, firstWords(prompt ?? ''), id];
	return parts.filter(Boolean).join('-') || 'result';
}

function promptIn({ prompt, input }: IDataObject): string | undefined {
	if (typeof prompt === 'string') return prompt;
	return isRecord(input) && typeof input.prompt === 'string' ? input.prompt : undefined;
}

const wordsIn = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];

/** Whole words, unless the first word alone is longer. */
function firstWords(prompt: string): string {
	const [first = '', ...others] = wordsIn(prompt.slice(0, PROMPT_LOOKED_AT).normalize());
	let words = [...first].slice(0, PROMPT_CHARACTERS).join('');
	for (const word of others) {
		if (words.length + 1 + word.length > PROMPT_CHARACTERS) break;
		words += `-${word}`;
	}
	return words;
}
