import type { IDataObject } from 'n8n-workflow';

import { placesOf } from '../service/taskId';
import { isRecord } from '../shared/json';

/** How much of a prompt stands in a name, characters. */
const PROMPT_CHARACTERS = 40;

/** How much of a prompt is looked at. */
const LOOKED_AT = 400;

/** How many signs of the task id stand in a name: they tell files of the same prompt apart. */
const ID_SIGNS = 4;

/**
 * The beginning of the names of a task's files: the number of the item, the first words of the prompt, and a few signs of
 * the task id. The names have no characters that a file system may refuse.
 *
 * @param record the service's record of the task
 * @param sent the fields of the item, with the `input` that was sent; the record may repeat it
 * @param itemIndex undefined on the trigger, whose tasks are of no item
 */
export function fileStem(
	taskId: string,
	record: IDataObject,
	sent: IDataObject = {},
	itemIndex?: number,
): string {
	const prompt = [sent, ...placesOf(record)].map(promptIn).find((each) => each !== undefined);
	const id = wordsIn(taskId).at(-1)?.slice(-ID_SIGNS);
	const number = itemIndex === undefined ? undefined : String(itemIndex + 1);
	const parts = [number, firstWords(prompt ?? ''), id];
	return parts.filter(Boolean).join('-') || 'result';
}

/** @param place the number of the result among the results of its task, from 0; undefined if it is the only one */
export const fileName = (stem: string, place: number | undefined, extension: string | undefined) =>
	[place === undefined ? stem : `${stem}-${place + 1}`, extension].filter(Boolean).join('.');

function promptIn({ prompt, input }: IDataObject): string | undefined {
	if (typeof prompt === 'string') return prompt;
	return isRecord(input) && typeof input.prompt === 'string' ? input.prompt : undefined;
}

const wordsIn = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];

/** Whole words, unless the first word alone is longer. */
function firstWords(prompt: string): string {
	const [first = '', ...others] = wordsIn(prompt.slice(0, LOOKED_AT).normalize());
	let words = [...first].slice(0, PROMPT_CHARACTERS).join('');
	for (const word of others) {
		if (words.length + 1 + word.length > PROMPT_CHARACTERS) break;
		words += `-${word}`;
	}
	return words;
}
