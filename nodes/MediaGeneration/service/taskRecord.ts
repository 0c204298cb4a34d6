import type { IDataObject } from 'n8n-workflow';

import { isRecord, plainFields, toNumber } from '../shared/json';
import { cutDataUri, cutDataUris, quoted } from '../shared/media';
import { findField, findReason, layersOf, rootOf } from './answerFields';
import { asSpecified } from './door';
import { readResults } from './resultLinks';
import { ServiceError } from './serviceError';
import type { Service } from './services';

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
	/** The indexes in the service's list of results that have no link, if there are such indexes. */
	emptyIndexes?: number[];
}

/** A task in one of the two final states (specification, section 3). */
export type FinishedTask = FailedTask | SucceededTask;

/** The indexes of a task's results in the service's own list. */
export const resultIndexes = ({ resultUrls, emptyIndexes = [] }: SucceededTask): number[] =>
	[...Array(resultUrls.length + emptyIndexes.length).keys()].filter(
		(index) => !emptyIndexes.includes(index),
	);

/** A task as the service reports it, parsed once (specification, section 2). */
export type TaskRecord = FinishedTask | (RecordBase & { state: 'PENDING' });

/** Whether a record tells how its task has ended. A success without links may get them a little later. */
export const hasEnded = (task: TaskRecord | undefined): task is FinishedTask =>
	task?.state === 'FAILURE' || (task?.state === 'SUCCESS' && task.resultUrls.length > 0);

/**
 * Parses a task record. A word that is none of an end counts as `PENDING`, because the service may show intermediate states
 * (section 3). A success may have no results.
 *
 * @param taskId the id of the task that was read
 * @param body the parsed JSON body of the answer
 * @param baseUrl the address of the service, for results without a host
 * @param service whose names the record has; the specification's by default
 * @throws ServiceError `unusableRecord` if there is no usable state
 * @see docs/service.openapi.yaml, sections 2 and 4.2
 */
export function parseTaskRecord(
	taskId: string,
	body: unknown,
	baseUrl?: string,
	service?: Service,
): TaskRecord {
	const specified = asSpecified(body, service, taskId);
	const whole = rootOf(body);
	if (whole === undefined || specified === undefined) throw unusable(whole);
	const { state, stated, word, results } = specified;
	// Files in the record would stay in memory during the wait, and would be stored with a run that sleeps.
	const record = cutDataUris(whole, 'resulturls');
	const base = { taskId, creditsConsumed: creditsIn(body, stated), record };
	switch (state) {
		case 'SUCCESS':
			return { ...base, state, ...linksIn(results, baseUrl) };
		case 'FAILURE':
			return { ...base, state, reason: findReason(whole, stated) ?? reasonInWord(word) };
		default:
			return { ...base, state };
	}
}

/** Some services say why with the state: a word such as `Content Moderated` or `expired`. */
const reasonInWord = (word: string): string | undefined =>
	/^(?:fail|err)/i.test(word) ? undefined : word;

/** The error for a record without a state, with what the record says. */
function unusable(record: IDataObject | undefined): ServiceError {
	const layers = [...layersOf(record)];
	const reason = findReason(record);
	const words = reason === undefined ? '' : `: ${reason}`;
	const isRefusal = reason !== undefined && layers.some(hasErrorCode);
	return new ServiceError('unusableRecord', `The task record has no state${words}`, {
		description: isRefusal
			? 'The service answered with the code of a refusal in place of a state.'
			: "The service answered, but not with a task record. Check that the 'Base URL' of the credential is the address of the media generation service.",
		isRefusal,
	});
}

/** Whether an object of an answer has the code of an error. */
const hasErrorCode = (fields: IDataObject): boolean =>
	[...plainFields(fields)].some(([name, value]) => {
		if (name === 'error' && isRecord(value)) return hasErrorCode({ errorCode: value.code });
		const isOfError = name === 'errorcode' || name === 'errcode';
		const isOfAnswer = ['code', 'status', 'statuscode'].includes(name);
		const number = toNumber(value);
		if (number !== null) return isOfError ? number !== 0 : isOfAnswer && number >= 400;
		return isOfError && typeof value === 'string' && value.trim() !== '';
	});

/**
 * A task without the files that stand in its record and in its links as data URIs: they would be stored each time n8n
 * stores the run. Whoever needs such a result reads the task again.
 */
export const withoutFiles = <T extends TaskRecord>(task: T): T => ({
	...task,
	record: cutDataUris(task.record),
	...(task.state === 'SUCCESS' && { resultUrls: task.resultUrls.map(cutDataUri) }),
});

/**
 * @param stated the part of the answer that has the state, if there is one
 * @returns the credits that an answer names, whether it has a state or not; null if it names none
 */
export const creditsIn = (body: unknown, stated?: IDataObject): number | null =>
	findField(body, 'creditsConsumed', (value) => toNumber(value) ?? undefined, stated) ?? null;

/** @param results in whatever shape */
export function linksIn(results: unknown, baseUrl: string | undefined) {
	const origin = baseUrl === undefined ? undefined : new URL(baseUrl).origin;
	const links = readResults(results, origin);
	const resultUrls = links.filter((link) => link !== null);
	const emptyIndexes = [...links.keys()].filter((index) => links[index] === null);
	// Without any link there are no results, and none is missing.
	const hasGaps = emptyIndexes.length > 0 && resultUrls.length > 0;
	return { resultUrls, ...(hasGaps && { emptyIndexes }) };
}

/** How much of a record is quoted. */
const MAX_QUOTED = 300;

/** The beginning of a record, for a message about a task whose record says no reason. */
export const shownRecord = (record: IDataObject): string =>
	quoted(JSON.stringify(cutDataUris(record)), MAX_QUOTED);

/**
 * What a record says of its task, for a warning about a success without results: the service's reason, or the beginning
 * of the record.
 */
export const reasonOf = (record: IDataObject): string => findReason(record) ?? shownRecord(record);
