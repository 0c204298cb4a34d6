import type { IDataObject } from 'n8n-workflow';

import { layersOf } from '../service/answerFields';
import { messageOf } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { AGAIN } from './mediaHost';

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

/** @param index the number of the result among the results of its task, from 0; undefined if it is the only one */
export const fileName = (stem: string, index: number | undefined, extension: string | undefined) =>
	[index === undefined ? stem : `${stem}-${index + 1}`, extension].filter(Boolean).join('.');

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

/** n8n's setting for the largest file in its database: 512 MiB by default, 1024 MiB at most. */
const DATABASE_LIMIT = 'N8N_BINARY_DATA_DATABASE_MAX_FILE_SIZE';

/** The error codes of a full disk. */
export const isStorageFull = (error: unknown) =>
	error instanceof Error &&
	'code' in error &&
	['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES'].includes(String(error.code));

/** The advice if the file arrived and n8n's own storage refused it. */
export function explainStorage(error: unknown): string {
	const said = messageOf(error);
	const next = said.includes(DATABASE_LIMIT)
		? `Raise ${DATABASE_LIMIT} (in MiB, at most 1024), or set N8N_DEFAULT_BINARY_DATA_MODE to 'filesystem' or 's3': n8n keeps files in its database here, up to a limit.`
		: `n8n's storage of files did not take the file: ${said.slice(0, 200)}. See N8N_DEFAULT_BINARY_DATA_MODE.`;
	return `${next} ${AGAIN}`;
}
