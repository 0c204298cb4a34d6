import { withTimeLimit } from '../shared/clock';
import { settled } from '../shared/promises';
import type { Answer } from './meaning';

/** Larger answers are not read to their end. Results that are data URIs stand in an answer. */
const MAX_BYTES = 32 * 1024 ** 2;

/** Why an answer was not read to its end. */
export class UnfinishedAnswer extends Error {
	constructor(
		message: string,
		/** Whether the answer was too large; otherwise it took too long. */
		readonly isTooLarge = false,
	) {
		super(message);
	}
}

/** The used part of a Node.js stream; n8n forbids importing the module itself. */
interface ByteStream extends AsyncIterable<Uint8Array> {
	destroy(): void;
}

/** What n8n's HTTP helper gives for `encoding: 'stream'`. */
export interface OpenAnswer {
	statusCode: number;
	headers: Record<string, unknown>;
	body: unknown;
}

const isStream = (body: unknown): body is ByteStream =>
	typeof body === 'object' && body !== null && Symbol.asyncIterator in body && 'destroy' in body;

/**
 * Reads an answer to its end, within a time and a size: n8n's timeout ends when the connection stands still, so that a
 * service that sends a byte a second would never be given up, and n8n bounds no size.
 *
 * @param open as for `openInTime`
 * @param timeoutMs milliseconds from now to the last byte
 * @throws UnfinishedAnswer if the answer takes too long or is too large; otherwise what the request throws
 */
export const readAnswer = async (
	open: (giveUp: AbortSignal) => Promise<OpenAnswer>,
	timeoutMs: number,
	maxBytes = MAX_BYTES,
): Promise<Answer> =>
	await inTime(open, timeoutMs, async ({ body, ...head }) => ({
		...head,
		// In an evaluation n8n refuses in place of the service.
		body: isStream(body) ? await textOf(body, maxBytes) : writtenOut(body),
	}));

/**
 * Waits for the head of an answer, within a time.
 *
 * @param open sends the request, whose answer is a stream; aborts it with the signal, since a head may trickle for ever
 * @param timeoutMs milliseconds from now
 * @throws UnfinishedAnswer if the head takes too long; otherwise what the request throws
 */
export const openInTime = async <T extends OpenAnswer>(
	open: (giveUp: AbortSignal) => Promise<T>,
	timeoutMs: number,
): Promise<T> => await inTime(open, timeoutMs, async (answer) => await Promise.resolve(answer));

/** Ends an answer that is not read to its end. */
export const closeAnswer = ({ body }: OpenAnswer): void => {
	if (isStream(body)) body.destroy();
};

/** Opens an answer and reads what is wanted of it, with one timer for both. */
async function inTime<T extends OpenAnswer, R>(
	open: (giveUp: AbortSignal) => Promise<T>,
	timeoutMs: number,
	read: (answer: T) => Promise<R>,
): Promise<R> {
	const giveUp = new AbortController();
	const opening = open(giveUp.signal);
	const ended = await withTimeLimit(settled(opening.then(read)), timeoutMs);
	if (ended === undefined) {
		giveUp.abort();
		// The head may still come.
		void opening.then(closeAnswer, () => undefined);
		throw new UnfinishedAnswer('No complete answer came in time');
	}
	if ('error' in ended) throw ended.error;
	return ended.value;
}

function writtenOut(body: unknown): string {
	if (body instanceof Uint8Array) return Buffer.from(body).toString();
	return typeof body === 'string' ? body : JSON.stringify(body ?? '');
}

async function textOf(body: ByteStream, maxBytes: number): Promise<string> {
	const chunks: Uint8Array[] = [];
	let bytes = 0;
	for await (const chunk of body) {
		bytes += chunk.length;
		if (bytes > maxBytes) {
			const size = `${Math.floor(maxBytes / 1024 ** 2)} MiB`;
			throw new UnfinishedAnswer(`The answer is larger than ${size}`, true);
		}
		chunks.push(chunk);
	}
	// A byte order mark is no JSON.
	return Buffer.concat(chunks)
		.toString()
		.replace(/^\uFEFF/, '');
}
