import type { IDataObject } from 'n8n-workflow';

import { cutDataUris } from '../shared/dataUri';
import { isRecord, toNumber } from '../shared/json';
import { readResults, resultFieldOf } from './resultUrls';
import { ServiceError } from './serviceError';
import { findServiceMessage, WHY_FIELDS } from './serviceMessage';
import { findStated, placesOf } from './taskId';

interface RecordBase {
	taskId: string;
	/** The credits charged, or null if the service did not say. */
	creditsConsumed: number | null;
	/** The service's record as received, with all fields. Long data URIs are cut, except for the results. */
	record: IDataObject;
}

/** A task whose end is a failure. */
export interface FailedTask extends RecordBase {
	state: 'FAILURE';
	/** The service's own reason, if the record has one. */
	reason: string | undefined;
}

/** A task that has succeeded. */
interface SucceededTask extends RecordBase {
	state: 'SUCCESS';
	resultUrls: string[];
	/** The places of the service's list of results that have no link, if there are such places. */
	emptyPlaces?: number[];
}

/** A task in one of the two final states (specification, section 3). */
export type FinishedTask = FailedTask | SucceededTask;

/** The places of a task's results in the service's own list. */
export const placesOfResults = ({ resultUrls, emptyPlaces = [] }: SucceededTask): number[] =>
	[...Array(resultUrls.length + emptyPlaces.length).keys()].filter(
		(place) => !emptyPlaces.includes(place),
	);

/** A task as the service reports it, parsed once (specification, section 2). */
export type TaskRecord = FinishedTask | (RecordBase & { state: 'PENDING' });

/** Whether a record tells how its task has ended. A success without links may get them a little later. */
export const hasEnded = (task: TaskRecord | undefined): task is FinishedTask =>
	task?.state === 'FAILURE' || (task?.state === 'SUCCESS' && task.resultUrls.length > 0);

/**
 * Parses a task record. A state in lower case counts as in upper case. A state that the specification does not name
 * counts as `PENDING`, because the service may show intermediate states (section 3). A success may have no results.
 *
 * @param taskId the id of the task that was read
 * @param body the parsed JSON body of the answer
 * @param baseUrl the address of the service, for results without a host
 * @throws ServiceError `unusableRecord` if there is no usable `state`
 * @see docs/service.md, sections 2 and 4.2
 */
export function parseTaskRecord(taskId: string, body: unknown, baseUrl?: string): TaskRecord {
	const source = findStated(body);
	if (!isRecord(body) || source === undefined) {
		throw new ServiceError('unusableRecord', `The record of task ${taskId} has no state`, {
			description:
				"The service answered, but not with a task record. Check that the 'Base URL' of the credential is the address of the media generation service.",
		});
	}
	// Files in the record would stay in memory during the wait, and would be stored with a run that sleeps.
	const record = cutDataUris(body, 'resultUrls');
	const base = { taskId, creditsConsumed: toNumber(source.creditsConsumed), record };
	switch (String(source.state).trim().toUpperCase()) {
		case 'SUCCESS':
			return { ...base, state: 'SUCCESS', ...resultsIn(source, baseUrl) };
		case 'FAILURE':
			return { ...base, state: 'FAILURE', reason: findReason(body) };
		default:
			return { ...base, state: 'PENDING' };
	}
}

/** @returns the credits that an answer names, whether it has a state or not; null if it names none */
export const creditsIn = (body: unknown): number | null =>
	placesOf(body)
		.map(({ creditsConsumed }) => toNumber(creditsConsumed))
		.find((credits) => credits !== null) ?? null;

function resultsIn(source: IDataObject, baseUrl: string | undefined) {
	const origin = baseUrl === undefined ? undefined : new URL(baseUrl).origin;
	const results = readResults(resultFieldOf(source), origin);
	const resultUrls = results.filter((link) => link !== null);
	const emptyPlaces = [...results.keys()].filter((place) => results[place] === null);
	// Without any link there are no results, and no places that lack a result.
	const hasGaps = emptyPlaces.length > 0 && resultUrls.length > 0;
	return { resultUrls, ...(hasGaps && { emptyPlaces }) };
}

/** The reason in a record: where the state is, or around it. */
function findReason(record: IDataObject): string | undefined {
	const stated = findStated(record);
	return [stated, stated === record ? undefined : placesOf(record)[0]]
		.map((place) => place && findServiceMessage(place, WHY_FIELDS))
		.find((reason) => reason !== undefined);
}

/** How much of a record is quoted. */
const MAX_QUOTED = 300;

/**
 * What a record says of its task, for a warning about a success without results: the service's reason, or the beginning
 * of the record.
 */
export function reasonOf(record: IDataObject): string {
	return findReason(record) ?? JSON.stringify(record).slice(0, MAX_QUOTED);
}
