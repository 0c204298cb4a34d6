import type { IDataObject } from 'n8n-workflow';

import { isRecord, parsedJson, plainFields, toNumber } from '../shared/json';
import { cutDataUris } from '../shared/media';
import {
	findServiceMessage,
	findStated,
	layersOf,
	NOTHING_SAID,
	valuesOf,
	WHY_FIELDS,
} from './answerFields';
import { ServiceError } from './serviceError';

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
	const record = cutDataUris(body, 'resulturls');
	const base = { taskId, creditsConsumed: creditsIn(body), record };
	switch (String(source.state).trim().toUpperCase()) {
		case 'SUCCESS':
			return { ...base, state: 'SUCCESS', ...resultsIn(body, baseUrl) };
		case 'FAILURE':
			return { ...base, state: 'FAILURE', reason: findReason(body) };
		default:
			return { ...base, state: 'PENDING' };
	}
}

/** @returns the credits that an answer names, whether it has a state or not; null if it names none */
export const creditsIn = (body: unknown): number | null =>
	valuesOf(body, 'creditsConsumed')
		.map(toNumber)
		.find((credits) => credits !== null) ?? null;

function resultsIn(body: IDataObject, baseUrl: string | undefined) {
	const origin = baseUrl === undefined ? undefined : new URL(baseUrl).origin;
	const results = readResults(resultFieldOf(body), origin);
	const resultUrls = results.filter((link) => link !== null);
	const emptyIndexes = [...results.keys()].filter((index) => results[index] === null);
	// Without any link there are no results, and none is missing.
	const hasGaps = emptyIndexes.length > 0 && resultUrls.length > 0;
	return { resultUrls, ...(hasGaps && { emptyIndexes }) };
}

/** The reason in a record: where the state is, or around it. */
function findReason(record: IDataObject): string | undefined {
	const stated = findStated(record);
	return [stated, stated === record ? undefined : layersOf(record)[0]]
		.map((layer) => layer && findServiceMessage(layer, WHY_FIELDS))
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

/** The fields of an object that hold its link, most telling first, as `plainFields` writes them. */
const LINK_FIELDS = [
	'url',
	'link',
	'href',
	'src',
	'uri',
	'downloadurl',
	'fileurl',
	'resulturl',
	'imageurl',
	'videourl',
	'audiourl',
	'originurl',
];

/** Links to something smaller than the result. */
const SIDE_FIELD = /thumb|preview|cover|poster|callback|webhook/;

/** The results of an answer, in whatever shape. */
export const resultFieldOf = (body: unknown): unknown => valuesOf(body, 'resultUrls')[0];

/** Deeper than any list of results. */
const MAX_RESULT_DEPTH = 5;

/**
 * The results of a task, in the order of the service's own list. An entry of the list that has no link is `null`.
 *
 * @param origin of the service, for links without a host; undefined if it is not known
 * @see docs/service.md, section 2
 */
function readResults(value: unknown, origin: string | undefined): Array<string | null> {
	if (!Array.isArray(value)) return readResultUrls(value, origin);
	return value.flatMap((entry): Array<string | null> => {
		const links = readResultUrls(entry, origin);
		return links.length > 0 ? links : [null];
	});
}

/**
 * Reads the links to results, in whatever shape a service writes them: a list, one text, a text with several links, an
 * object for each link, an object of links, the JSON text of any of these. What is no link is left out.
 *
 * @param origin of the service, for links without a host; undefined if it is not known
 * @returns links that can be fetched: http, https or data
 * @see docs/service.md, section 2
 */
function readResultUrls(value: unknown, origin: string | undefined, depth = 0): string[] {
	if (depth > MAX_RESULT_DEPTH) return [];
	const inside = (entry: unknown) => readResultUrls(entry, origin, depth + 1);
	if (Array.isArray(value)) return value.flatMap(inside);
	if (typeof value === 'string') {
		const isJson = /^\s*["[{]/.test(value);
		const spoken = isJson ? parsedJson(value) : undefined;
		return spoken === undefined ? linksIn(value, origin) : inside(spoken);
	}
	if (!isRecord(value)) return [];
	const fields = plainFields(value);
	for (const field of LINK_FIELDS) {
		const links = inside(fields.get(field));
		if (links.length > 0) return links;
	}
	const others = Object.entries(value).filter(([name]) => !SIDE_FIELD.test(name.toLowerCase()));
	return others.flatMap(([, entry]) => inside(entry));
}

/** A comma is part of many links, and separates two links only before the begin of the second. */
const SEPARATOR = /[\r\n]|[\s,;|](?=https?:\/\/|data:)/i;

function linksIn(text: string, origin: string | undefined): string[] {
	const trimmed = text.trim();
	const parts = /^data:/i.test(trimmed) ? [trimmed] : trimmed.split(SEPARATOR);
	return parts.flatMap(
		(part) =>
			asLink(
				part
					.trim()
					.replace(/[,;|]$/, '')
					.trim(),
				origin,
			) ?? [],
	);
}

/** A path to a file, and not a word such as `none`. */
const PATH = /^(?:\/|\.{1,2}\/|[^\s:?#/]+\/\S*$|[^\s:/?#]+\.[a-z0-9]{2,5}(?:\?|$))/i;

function asLink(text: string, origin: string | undefined): string | undefined {
	if (/^data:[^,]*,/i.test(text)) return text;
	if (/^https?:\/\/[^\s/]/i.test(text)) return URL.canParse(text) ? text : undefined;
	const isPath = PATH.test(text) && !NOTHING_SAID.test(text);
	if (origin === undefined || !isPath || !URL.canParse(text, origin)) return undefined;
	return new URL(text, origin).href;
}
