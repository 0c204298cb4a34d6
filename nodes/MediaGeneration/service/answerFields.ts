import type { IDataObject } from 'n8n-workflow';

import { isRecord, plainFields, plainName, toNumber } from '../shared/json';

/** Longer than any id of a service, and short enough for a URL. */
const MAX_TASK_ID_LENGTH = 512;

/**
 * Reads a task id from a JSON value or a parameter.
 *
 * @returns the id, or undefined if the value cannot be an id. `.` and `..` cannot: in a URL path they lead to another
 *   endpoint, encoded or not.
 */
export function asTaskId(value: unknown): string | undefined {
	const id = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value;
	if (typeof id !== 'string') return undefined;
	const trimmed = id.trim();
	if (['', '.', '..'].includes(trimmed) || trimmed.length > MAX_TASK_ID_LENGTH) return undefined;
	return trimmed.isWellFormed() ? trimmed : undefined;
}

/** A UUID, with or without hyphens. */
const UUID = /^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$/i;

/** The form of an id for comparisons: a UUID is the same in small and in capital letters. */
export const comparableId = (taskId: string): string =>
	UUID.test(taskId) ? taskId.toLowerCase() : taskId;

/** The names of a task's id, most telling first. */
const ID_NAMES = ['taskId', 'task_id', 'taskID', 'taskid', 'TaskId'];

/**
 * Finds the task id in a create response or a callback body: first `taskId`, wherever a task may stand; then `task_id` and
 * other spellings; then `id`, of the innermost place first. `id` comes last, because an event or an answer around the task
 * often has an `id` of its own, and `data` may have that of a customer. The specification does not show the body of a
 * callback (section 6).
 */
export function findTaskId(body: unknown): string | undefined {
	const ids = layersOf(body).map(({ id }) => asTaskId(id));
	return findNamedId(body) ?? ids.findLast((id) => id !== undefined);
}

function findNamedId(body: unknown): string | undefined {
	return ID_NAMES.flatMap((name) => layersOf(body).map((layer) => asTaskId(layer[name]))).find(
		(id) => id !== undefined,
	);
}

/**
 * The layers of an answer that may have a task, the outermost one first: the body itself, and what is inside `data` or `task`.
 */
export function layersOf(body: unknown): IDataObject[] {
	if (!isRecord(body)) return [];
	const { data, task } = body;
	return [body, data, isRecord(data) ? data.task : undefined, task].filter(isRecord);
}

/** The part of an answer that has the state of a task, if there is one. */
export const findStated = (body: unknown): IDataObject | undefined =>
	layersOf(body).find(({ state }) => typeof state === 'string' && state.trim() !== '');

/**
 * The values of a field of a task, also in another writing, such as `result_urls`: that beside the state first, since the
 * state and the rest may stand in different layers.
 */
export const valuesOf = (body: unknown, name: string): unknown[] =>
	[findStated(body), ...layersOf(body)]
		.filter(isRecord)
		.map((layer) => layer[name] ?? plainFields(layer).get(plainName(name)))
		.filter((value) => value !== undefined && value !== null);

/** Whether an answer is about a task: it names a task, or has a state. */
export const isOfTask = (body: unknown): boolean =>
	findStated(body) !== undefined || findNamedId(body) !== undefined;

/** The fields of a failed task's record that may hold the reason, most telling first, as `plainFields` writes them. */
export const WHY_FIELDS = [
	'failurereason',
	'failreason',
	'failmsg',
	'failmessage',
	'failuremessage',
	'errormessage',
	'errormsg',
	'error',
	'errors',
	'message',
	'msg',
	'detail',
	'reason',
];

/** The same for other answers. In a task record these fields repeat what the user sent. */
const FURTHER_FIELDS = ['details', 'description', 'title', 'data'];

/** An envelope says this of itself, also around a failure; and a field without a value. */
export const NOTHING_SAID =
	/^(ok|okay|success(ful|fully)?|succeeded|done|null|none|n\/a|true|false)[.!]?$/i;

const MAX_MESSAGE_DEPTH = 4;
const MAX_MESSAGE_LENGTH = 500;

/**
 * Finds the message in an answer whose shape is not known.
 *
 * @param fields the fields of an object to look in, as `plainFields` writes them
 * @returns one line of at most 500 characters, or undefined if there is no message
 */
export function findServiceMessage(
	body: unknown,
	fields = [...WHY_FIELDS, ...FURTHER_FIELDS],
	depth = 0,
): string | undefined {
	if (typeof body === 'string') {
		const line = body.replace(/\s+/g, ' ').trim().slice(0, MAX_MESSAGE_LENGTH);
		return line === '' || NOTHING_SAID.test(line) ? undefined : line;
	}
	if (depth >= MAX_MESSAGE_DEPTH) return undefined;
	const named = isRecord(body) ? plainFields(body) : undefined;
	const values = named ? fields.map((field) => named.get(field)) : Array.isArray(body) ? body : [];
	for (const value of values) {
		const message = findServiceMessage(value, undefined, depth + 1);
		if (message !== undefined) return message;
	}
	return undefined;
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

/** The fields of a body that may hold such a field. */
const AROUND_PAUSE = ['error', 'detail', 'details', 'data'];

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
	for (const prefix of ['ratelimit', 'x-ratelimit', 'x-rate-limit']) {
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

function inBody(body: unknown, depth = 0): number | undefined {
	if (!isRecord(body) || depth > 2) return undefined;
	const fields = plainFields(body);
	for (const [field, unitMs] of PAUSE_FIELDS) {
		const number = toNumber(fields.get(field));
		if (number !== null && number >= 0) return number * unitMs;
	}
	for (const field of AROUND_PAUSE) {
		const ms = inBody(fields.get(field), depth + 1);
		if (ms !== undefined) return ms;
	}
	return undefined;
}
