import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { stopSignal } from '../n8n/internals';
import { layersOf } from '../service/answerFields';
import { closeAnswer, type OpenAnswer, openInTime, readAnswer } from '../service/boundedAnswer';
import type { OpenFile } from '../service/connect';
import { classifyAnswer } from '../service/meaning';
import { forbiddenAddress } from '../shared/addresses';
import { anyOf } from '../shared/clock';
import { ItemError, messageOf } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { cutDataUri, TELLING_BYTES } from '../shared/media';
import { settled } from '../shared/promises';

/** How long to wait for the head of an answer. */
const HOST_TIMEOUT_MS = 60_000;

/** How much of a host's refusal is read, and how long. */
const REFUSAL_BYTES = 64 * 1024;
const REFUSAL_MS = 5_000;

/** The events after which a stream has more bytes, or no more. */
const EVENTS = ['readable', 'end', 'error', 'close'] as const;

/** The used part of a Node.js stream; n8n forbids importing the module itself. */
interface ByteStream extends AsyncIterable<Uint8Array> {
	map(
		each: (chunk: Uint8Array) => Uint8Array,
	): Parameters<IExecuteFunctions['helpers']['prepareBinaryData']>[0] & { readableEnded?: boolean };
	readonly readableEnded: boolean;
	readonly destroyed: boolean;
	read(): Uint8Array | null;
	unshift(chunk: Uint8Array): void;
	on(event: (typeof EVENTS)[number], listener: () => void): void;
	off(event: (typeof EVENTS)[number], listener: () => void): void;
	destroy(): void;
}

/** A body that was read to its end, in place of its stream. */
function streamOf(bytes: Buffer): ByteStream {
	const left: Uint8Array[] = [bytes];
	return {
		map: (each) => Object.assign(Buffer.from(each(bytes)), { readableEnded: true }),
		readableEnded: true,
		destroyed: false,
		read: () => left.pop() ?? null,
		unshift: (chunk) => left.push(chunk),
		on: () => undefined,
		off: () => undefined,
		destroy: () => undefined,
		async *[Symbol.asyncIterator]() {
			yield bytes;
		},
	};
}

/**
 * Waits for the first bytes of a file.
 *
 * @returns so many bytes as tell what the file is, or fewer if the file is shorter or the transfer breaks off; and the whole
 *   file, the first bytes included
 */
export async function beginningOf(
	body: ByteStream,
): Promise<{ beginning: Uint8Array; whole: ByteStream }> {
	const chunks: Uint8Array[] = [];
	let bytes = 0;
	let isBroken = false;
	while (bytes < TELLING_BYTES && !isBroken) {
		const chunk = body.read();
		bytes += chunk?.length ?? 0;
		if (chunk !== null) chunks.push(chunk);
		else if (body.readableEnded) break;
		else isBroken = body.destroyed || (await changeOf(body)) === 'broken';
	}
	const beginning = Buffer.concat(chunks);
	// A stream that has ended takes nothing back.
	if (body.readableEnded) return { beginning, whole: streamOf(beginning) };
	if (bytes > 0 && !isBroken) body.unshift(beginning);
	return { beginning, whole: body };
}

/** Waits until a stream has more bytes, has ended, or breaks. */
const changeOf = async (body: ByteStream): Promise<'more' | 'broken'> =>
	await new Promise((resolve) => {
		const listeners = EVENTS.map((event) => {
			const listener = () => {
				for (const [each, known] of listeners) body.off(each, known);
				resolve(event === 'readable' || event === 'end' ? 'more' : 'broken');
			};
			return [event, listener] as const;
		});
		for (const [event, listener] of listeners) body.on(event, listener);
	});

/** The answer of a media host, with its body as a stream. */
export interface StreamResponse {
	statusCode: number;
	headers: Record<string, string | undefined>;
	body: ByteStream;
}

/** What a host says in place of a file, ready to be added to a message. */
export async function wordsOf(opened: StreamResponse): Promise<string> {
	const read = await settled(readAnswer(async () => opened, REFUSAL_MS, REFUSAL_BYTES));
	const said = 'value' in read ? classifyAnswer(read.value, Date.now()).said : undefined;
	return said === undefined ? '' : `. The host says: ${said}`;
}

/** So many redirects lead from one address to the next at most. */
const MOST_REDIRECTS = 5;

/**
 * Opens an address, and follows redirects. Addresses below the base URL are opened with the API key, and others without
 * it, also if an address below the base URL redirects there.
 */
async function follow(
	context: IExecuteFunctions,
	openFile: OpenFile | undefined,
	url: string,
	giveUp: AbortSignal | undefined,
): Promise<OpenAnswer> {
	let address = url;
	for (let redirects = 0; ; redirects++) {
		const withKey = openFile?.(address, HOST_TIMEOUT_MS, giveUp);
		if (withKey === undefined) break;
		const answer = await withKey;
		const { kind } = classifyAnswer({ ...answer, body: '' }, Date.now());
		const next = URL.parse(String(answer.headers.location ?? ''), address);
		if (kind !== 'redirected' || next === null || redirects >= MOST_REDIRECTS) return answer;
		closeAnswer(answer);
		address = next.href;
	}
	return (await context.helpers.httpRequest({
		url: address,
		method: 'GET',
		encoding: 'stream',
		returnFullResponse: true,
		ignoreHttpStatusErrors: true,
		timeout: HOST_TIMEOUT_MS,
		abortSignal: giveUp,
	})) as OpenAnswer;
}

/**
 * Opens the stream of a result.
 *
 * @param openFile opens results below the base URL; undefined if no credential can be used
 * @throws ItemError, UserError if no other try can bring the file
 */
export async function openResult(
	context: IExecuteFunctions,
	url: string,
	openFile?: OpenFile,
): Promise<StreamResponse | { trouble: ItemError }> {
	const open = async (giveUp: AbortSignal): Promise<StreamResponse> =>
		(await follow(context, openFile, url, anyOf(giveUp, stopSignal(context)))) as StreamResponse;
	const response = await settled(openInTime(open, HOST_TIMEOUT_MS));
	if ('value' in response) return response.value;
	const forbidden = forbiddenAddress(
		response.error,
		`n8n does not let this node fetch the result: ${cutDataUri(url)}`,
	);
	if (forbidden !== undefined) throw forbidden;
	const trouble = new ItemError(`The host of the result cannot be reached: ${cutDataUri(url)}`, {
		description: `Check that n8n may connect to this host. ${AGAIN}`,
	});
	if (!URL.canParse(url) || !new URL(url).protocol.startsWith('http')) throw trouble;
	return { trouble };
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
 * @param itemIndex undefined on the trigger, whose tasks are of no item
 */
export function fileStem(
	taskId: string,
	record: IDataObject,
	sent: IDataObject = {},
	itemIndex?: number,
): string {
	const prompt = [sent, ...layersOf(record)].map(promptIn).find((each) => each !== undefined);
	const id = wordsIn(taskId).at(-1)?.slice(-ID_SIGNS);
	const number = itemIndex === undefined ? undefined : String(itemIndex + 1);
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

/** The way out: a node that stops has no output with the result URLs. */
export const AGAIN =
	'The task is done and paid for: fetch its results again with the operation Task → Get.';

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
