import type { IDataObject } from 'n8n-workflow';

import { cutDataUris } from '../shared/dataUri';
import { isRecord, toNumber } from '../shared/json';
import { findServiceMessage, WHY_FIELDS, ServiceError } from './serviceError';

interface RecordBase {
	taskId: string;
	/** The credits charged, or null if the service did not say. */
	creditsConsumed: number | null;
	/** The service's record as received, with all fields. Long data URIs are cut, except for the results. */
	record: IDataObject;
}

export interface FailedTask extends RecordBase {
	state: 'FAILURE';
	/** The service's own reason, if the record has one. */
	reason: string | undefined;
}

export type FinishedTask = FailedTask | (RecordBase & { state: 'SUCCESS'; resultUrls: string[] });

/** A task as the service reports it, parsed once (specification, section 2). */
export type TaskRecord = FinishedTask | (RecordBase & { state: 'PENDING' });

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

/**
 * Finds the task id in a create response or a callback body: first `taskId`, at the top or inside `data` or `task`; then
 * `task_id`; then `id`. `id` comes last, because an event or an answer around the task often has an `id` of its own. The
 * specification does not show the body of a callback (section 6).
 */
export function findTaskId(body: unknown): string | undefined {
	if (!isRecord(body)) return undefined;
	const { data, task } = body;
	const places = {
		taskId: [body, data, task],
		task_id: [body, data, task],
		id: [data, task, body],
	};
	return Object.entries(places)
		.flatMap(([field, inside]) => inside.map((place) => isRecord(place) && asTaskId(place[field])))
		.find((id) => typeof id === 'string');
}

/** Many services make a result an object, with its `url` beside its size or type. */
function readUrls(value: unknown): string[] {
	if (Array.isArray(value)) return value.flatMap(readUrls);
	const url = isRecord(value) ? value.url : value;
	return typeof url === 'string' && url.trim() !== '' ? [url] : [];
}

/**
 * Parses a task record. A state in lower case counts as in upper case. A state that the specification does not name
 * counts as `PENDING`, because the service may show intermediate states (section 3). A success without `resultUrls` has
 * no results.
 *
 * @param taskId the id of the task that was read
 * @param body the parsed JSON body of the answer
 * @throws ServiceError `unusableRecord` if there is no usable `state`
 * @see specification, sections 2 and 4.2
 */
export function parseTaskRecord(taskId: string, body: unknown): TaskRecord {
	// The record is the body itself, or inside `data` or `task`.
	const places = isRecord(body) ? [body, body.data, body.task].filter(isRecord) : [];
	const source = places.find(({ state }) => typeof state === 'string' && state.trim() !== '');
	if (!isRecord(body) || source === undefined) {
		throw new ServiceError('unusableRecord', `The record of task ${taskId} has no state`, {
			description:
				"The service answered, but not with a task record. Check that the 'Base URL' of the credential is the address of the media generation service.",
		});
	}
	// Files in the record would stay in memory during the wait, and would be stored with a suspended run.
	const record = cutDataUris(body, 'resultUrls');
	const base = { taskId, creditsConsumed: toNumber(source.creditsConsumed), record };
	switch (String(source.state).trim().toUpperCase()) {
		case 'SUCCESS':
			return { ...base, state: 'SUCCESS', resultUrls: readUrls(source.resultUrls) };
		case 'FAILURE':
			return { ...base, state: 'FAILURE', reason: findServiceMessage(source, WHY_FIELDS) };
		default:
			return { ...base, state: 'PENDING' };
	}
}
