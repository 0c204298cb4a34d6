import { errorLayers, toNumber } from '../shared/json';
import { settled, withTimeLimit } from '../shared/clock';

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

/** An answer as it came, from whatever speaks HTTP. */
export interface Answer {
	statusCode: number;
	headers: Record<string, unknown>;
	body: string;
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

/** Longer than any wait for a task. A longer time may not be a valid date. */
const LONGEST_PAUSE_MS = 30 * 86_400_000;

/** A larger number of seconds is a moment since 1970, and not a length of time. */
const EARLIEST_MOMENT_S = 1e9;
/** The same for a moment in milliseconds. */
const EARLIEST_MOMENT_MS = 1e12;

/** The fields of a body that say how long to wait, as `plainFields` writes them, with the milliseconds of their unit. */
const PAUSE_FIELDS: Array<[field: string, unitMs: number]> = [
	['retryafterms', 1],
	['retryafter', 1000],
	['retryafterseconds', 1000],
];

/**
 * How long an answer asks to wait: `retry-after-ms`, `Retry-After` (seconds, or a date by the sender's clock, which the
 * `Date` header tells), `retry_after` in the body; and of a limit `RateLimit-Reset` or `X-RateLimit-Reset` (seconds, or
 * a moment), unless the limit was not reached.
 *
 * @param headers the answer's headers, with names in lower case
 * @param now milliseconds since 1970
 * @param body the parsed body
 * @param isOfLimit whether the answer is about a limit: other answers name limits, too, without asking to wait
 * @returns milliseconds, or undefined if the answer does not say it, or says what makes no sense
 */
export function retryAfterMs(
	headers: Record<string, unknown>,
	now: number,
	body?: unknown,
	isOfLimit = true,
): number | undefined {
	const sentAt = Date.parse(String(headers.date)) || now;
	const ms =
		numberIn(headers['retry-after-ms']) ??
		lengthMs(headers['retry-after'], sentAt) ??
		inBody(body) ??
		(isOfLimit ? untilReset(headers, sentAt) : undefined);
	return ms === undefined ? undefined : Math.min(LONGEST_PAUSE_MS, Math.max(0, ms));
}

/** The number of a header that is not negative. */
function numberIn(header: unknown): number | undefined {
	const number = typeof header === 'string' ? toNumber(header) : null;
	return number !== null && number >= 0 ? number : undefined;
}

/** Reads seconds, or a date. */
function lengthMs(header: unknown, sentAt: number): number | undefined {
	const seconds = numberIn(header);
	if (seconds !== undefined) return seconds * 1000;
	// A date in a header names its day or month; `-5` would pass for a date otherwise.
	if (typeof header !== 'string' || !/[a-z]{3}/i.test(header)) return undefined;
	const date = Date.parse(header);
	return Number.isNaN(date) ? undefined : date - sentAt;
}

function untilReset(headers: Record<string, unknown>, sentAt: number): number | undefined {
	for (const prefix of ['ratelimit', 'x-ratelimit']) {
		// Another limit has refused the request.
		if ((numberIn(headers[`${prefix}-remaining`]) ?? 0) > 0) continue;
		const reset = headers[`${prefix}-reset`];
		const moment = numberIn(reset);
		if (moment !== undefined && moment >= EARLIEST_MOMENT_MS) return moment - sentAt;
		if (moment !== undefined && moment >= EARLIEST_MOMENT_S) return moment * 1000 - sentAt;
		const ms = lengthMs(reset, sentAt);
		if (ms !== undefined) return ms;
	}
	return undefined;
}

function inBody(body: unknown): number | undefined {
	for (const fields of errorLayers(body)) {
		for (const [field, unitMs] of PAUSE_FIELDS) {
			const number = toNumber(fields.get(field));
			if (number !== null && number >= 0) return number * unitMs;
		}
	}
	return undefined;
}
