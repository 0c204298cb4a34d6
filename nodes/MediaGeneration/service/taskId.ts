import type { IDataObject } from 'n8n-workflow';

import { isRecord } from '../shared/json';

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
const NAMES = ['taskId', 'task_id', 'taskID', 'taskid', 'TaskId'];

/**
 * Finds the task id in a create response or a callback body: first `taskId`, at the top or inside `data` or `task`; then
 * `task_id` and other spellings; then `id`. `id` comes last, because an event or an answer around the task often has an
 * `id` of its own, and `data` may have that of a customer. The specification does not show the body of a callback
 * (section 6).
 */
export function findTaskId(body: unknown): string | undefined {
	const named = findNamedId(body);
	if (named !== undefined || !isRecord(body)) return named;
	const { data, task } = body;
	return [task, isRecord(data) ? data.task : undefined, data, body]
		.filter(isRecord)
		.map(({ id }) => asTaskId(id))
		.find((id) => id !== undefined);
}

function findNamedId(body: unknown): string | undefined {
	return NAMES.flatMap((name) => placesOf(body).map((place) => asTaskId(place[name]))).find(
		(id) => id !== undefined,
	);
}

/** Where a task may stand in an answer: it is the body itself, or inside `data` or `task`. */
export const placesOf = (body: unknown): IDataObject[] =>
	isRecord(body) ? [body, body.data, body.task].filter(isRecord) : [];

/** The part of an answer that has the state of a task, if there is one. */
export const findStated = (body: unknown): IDataObject | undefined =>
	placesOf(body).find(({ state }) => typeof state === 'string' && state.trim() !== '');

/** Whether an answer is about a task: it names a task, or has a state. */
export const isOfTask = (body: unknown): boolean =>
	findStated(body) !== undefined || findNamedId(body) !== undefined;
