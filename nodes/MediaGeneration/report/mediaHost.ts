import type { IExecuteFunctions } from 'n8n-workflow';

import { stopSignal } from '../n8n/internals';
import { closeAnswer, type OpenAnswer, openInTime, readAnswer } from '../service/boundedAnswer';
import type { OpenFile } from '../service/connect';
import { classifyAnswer, wordsOf } from '../service/meaning';
import { forbiddenAddress } from '../shared/addresses';
import { anyOf, settled } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { isDataUri, quoted, registeredType, TELLING_BYTES, typesOf } from '../shared/media';

/** The way out: a node that stops has no output with the result URLs. */
export const AGAIN =
	'The task is done and paid for: fetch its results again with the operation Get Task.';

/** How long to wait for the head of an answer. */
const HOST_TIMEOUT_MS = 60_000;

/** How much of a host's refusal is read, and how long. */
const REFUSAL_BYTES = 64 * 1024;
const REFUSAL_MS = 5_000;

/** The used part of a Node.js stream; n8n forbids importing the module itself. */
interface ByteStream extends AsyncIterable<Uint8Array> {
	map(
		each: (chunk: Uint8Array) => Uint8Array,
	): Parameters<IExecuteFunctions['helpers']['prepareBinaryData']>[0] & { readableEnded?: boolean };
	iterator(options: { destroyOnReturn: false }): AsyncIterable<Uint8Array>;
	readonly readableEnded: boolean;
	unshift(chunk: Uint8Array): void;
	destroy(): void;
}

/**
 * Waits for the first bytes of a file: n8n stores with a file what the file is.
 *
 * @returns so many bytes as tell what the file is; the whole file if it is shorter, and its stream has ended
 * @throws the error of a transfer that breaks off
 */
export async function firstBytes(answer: MediaAnswer): Promise<Buffer> {
	const { body } = answer;
	if (Buffer.isBuffer(body)) return body;
	// The words of a refusal are read as far as they come.
	if (kindOf(answer).kind !== 'answered') return Buffer.alloc(0);
	const chunks: Uint8Array[] = [];
	let bytes = 0;
	for await (const chunk of body.iterator({ destroyOnReturn: false })) {
		chunks.push(chunk);
		bytes += chunk.length;
		if (bytes >= TELLING_BYTES) break;
	}
	const beginning = Buffer.concat(chunks);
	// A stream that has ended takes nothing back.
	if (!body.readableEnded) body.unshift(beginning);
	return beginning;
}

/** The answer of a media host, with its body as a stream, or the file of a data URI. */
export interface MediaAnswer {
	statusCode: number;
	headers: Record<string, string | undefined>;
	body: ByteStream | Buffer;
}

/**
 * What a host says in place of a file, ready to be added to a message.
 *
 * @param beginning the first bytes, or the whole answer if its stream has ended
 */
async function refusalIn({ body, ...head }: MediaAnswer, beginning: Buffer): Promise<string> {
	const isWhole = Buffer.isBuffer(body) || (body.readableEnded && beginning.length > 0);
	const left = async () => ({ ...head, body: isWhole ? beginning : body });
	const read = await settled(readAnswer(left, REFUSAL_MS, REFUSAL_BYTES));
	const said = 'value' in read ? wordsOf(read.value.body) : undefined;
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
): Promise<MediaAnswer | { trouble: ItemError }> {
	if (isDataUri(url)) return fileIn(url);
	const open = async (giveUp: AbortSignal): Promise<MediaAnswer> =>
		(await follow(context, openFile, url, anyOf(giveUp, stopSignal(context)))) as MediaAnswer;
	const response = await settled(openInTime(open, HOST_TIMEOUT_MS));
	if ('value' in response) return response.value;
	const forbidden = forbiddenAddress(
		response.error,
		`n8n does not let this node fetch the result: ${quoted(url)}`,
	);
	if (forbidden !== undefined) throw forbidden;
	const trouble = new ItemError(`The host of the result cannot be reached: ${quoted(url)}`, {
		description: `Check that n8n may connect to this host. ${AGAIN}`,
	});
	if (!URL.canParse(url) || !new URL(url).protocol.startsWith('http')) throw trouble;
	return { trouble };
}

function fileIn(uri: string): MediaAnswer {
	const comma = uri.indexOf(',');
	const label = uri.slice(uri.indexOf(':') + 1, comma);
	const content = uri.slice(comma + 1);
	const isBase64 = /;\s*base64\s*$/i.test(label);
	const bytes = percentDecoded(content);
	const body = isBase64 ? Buffer.from(bytes.toString(), 'base64') : bytes;
	return { statusCode: 200, headers: { 'content-type': label }, body };
}

/** The bytes of a text in an address. A percent sign before anything but two hex digits stands for itself. */
function percentDecoded(text: string): Buffer {
	if (!text.includes('%')) return Buffer.from(text);
	const decoded = Buffer.from(text)
		.toString('latin1')
		.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
	return Buffer.from(decoded, 'latin1');
}

const kindOf = ({ statusCode, headers }: MediaAnswer) =>
	classifyAnswer({ statusCode, headers, body: '' }, Date.now());

/** Why a try has brought no file. */
export interface Trouble {
	trouble: ItemError;
	retryAfterMs?: number | undefined;
	/** Whether the host says that it has no such file. Of a fresh link that may pass. */
	isOfLink?: boolean;
}

/** Files that are texts, by their names. A text under any other name is a message of the host. */
const TEXT_FILE = /\.(?:txt|json|csv|md|srt|vtt|ass|lrc|svg|xml|gltf|obj)$/i;

/** @returns why there is no file, if the host has answered with something else than media, or with a part of it */
export async function refusalOf(
	opened: MediaAnswer,
	url: string,
	beginning: Buffer,
): Promise<Trouble | undefined> {
	const { statusCode, headers } = opened;
	const { kind, again, retryAfterMs } = kindOf(opened);
	const because = endingOf(opened, url);
	if (kind === 'answered' && isPart(opened)) {
		return {
			trouble: because('The result host answered with a part of the file', AGAIN),
			isOfLink: true,
		};
	}
	const type = registeredType(headers['content-type'] ?? '');
	const isText = /^text\/(html|plain)$|[/+]json$/.test(type);
	const isFile = () =>
		isDataUri(url) || TEXT_FILE.test(new URL(url).pathname) || typesOf(beginning).length > 0;
	if (kind === 'answered' && (!isText || isFile())) return undefined;
	const said = isText ? await refusalIn(opened, beginning) : '';
	const came = type === 'text/html' ? '. A web page came, perhaps of a proxy' : '';
	const trouble =
		kind === 'answered'
			? because(
					'The result host answered with a message instead of media',
					`Open the URL in a browser to see what it says. ${AGAIN}`,
					came + said,
				)
			: because(
					`The result could not be downloaded (HTTP ${statusCode})`,
					'The task is done and paid for. Its result URLs may have expired: read the task again with the operation Get Task.',
					came + said,
				);
	return { trouble, retryAfterMs, isOfLink: !again };
}

/** Whether an answer says that it is a part of the file, although the whole file was asked for. */
function isPart({ statusCode, headers }: MediaAnswer): boolean {
	const [, first, last, size] =
		/^bytes (\d+)-(\d+)\/(\d+|\*)/.exec(headers['content-range'] ?? '') ?? [];
	if (first === undefined) return statusCode === PARTIAL_CONTENT;
	return Number(first) > 0 || (size !== '*' && Number(last) + 1 < Number(size));
}

const PARTIAL_CONTENT = 206;

type Because = ReturnType<typeof endingOf>;

export const brokeOff = (because: Because, bytes: number): Trouble => ({
	trouble: because(`The download broke off after ${bytes} bytes`, AGAIN),
});

/** Ends a transfer without its file. @returns a function that does so, and makes the error that says why */
export const endingOf =
	({ body }: MediaAnswer, url: string) =>
	(what: string, next: string, said = ''): ItemError => {
		if (!Buffer.isBuffer(body)) body.destroy();
		return new ItemError(`${what}: ${quoted(url)}${said}`, { description: next });
	};
