import type { IExecuteFunctions } from 'n8n-workflow';

import { stopSignal } from '../n8n/internals';
import { classifyAnswer } from '../service/answer';
import { openInTime, readAnswer } from '../service/boundedAnswer';
import { anyOf } from '../shared/clock';
import { cutDataUri } from '../shared/dataUri';
import { ItemError } from '../shared/itemError';
import { forbiddenAddress } from '../shared/privateAddress';
import { settled } from '../shared/promises';
import { AGAIN } from './fileStorage';

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
	readonly readableEnded: boolean;
	destroy(): void;
}

/** A body that n8n has read to its end, in place of its stream. */
const streamOf = (bytes: Buffer): ByteStream => ({
	map: (each) => Object.assign(Buffer.from(each(bytes)), { readableEnded: true }),
	readableEnded: true,
	destroy: () => undefined,
	async *[Symbol.asyncIterator]() {
		yield bytes;
	},
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

/**
 * Opens the stream of a result. Redirects are followed, because the request has no key.
 *
 * @throws ItemError, UserError if no other try can bring the file
 */
export async function openResult(
	context: IExecuteFunctions,
	url: string,
): Promise<StreamResponse | { trouble: ItemError }> {
	const open = async (giveUp: AbortSignal): Promise<StreamResponse> =>
		await context.helpers.httpRequest({
			url,
			method: 'GET',
			encoding: 'stream',
			returnFullResponse: true,
			ignoreHttpStatusErrors: true,
			timeout: HOST_TIMEOUT_MS,
			abortSignal: anyOf(giveUp, stopSignal(context)),
		});
	const response = await settled(openInTime(open, HOST_TIMEOUT_MS));
	if ('value' in response) {
		const { body, ...head } = response.value;
		return { ...head, body: Buffer.isBuffer(body) ? streamOf(body) : body };
	}
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
