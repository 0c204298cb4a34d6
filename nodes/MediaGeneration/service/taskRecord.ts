import type { IDataObject } from 'n8n-workflow';

import { isRecord, parsedJson, plainFields, plainName, toNumber } from '../shared/json';
import {
	cutDataUri,
	cutDataUris,
	isBase64,
	isBase64File,
	isDataUri,
	quoted,
	registeredType,
} from '../shared/media';
import { findField, findReason, layersOf, rootOf } from './answerFields';
import { asSpecified } from './door';
import { ServiceError } from './serviceError';
import { SPECIFICATION } from './services';

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
	service = SPECIFICATION,
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
			// Some services say why with the state: a word such as `Content Moderated` or `expired`.
			return {
				...base,
				state,
				reason: findReason(whole, stated) ?? (/^(?:fail|err)/i.test(word) ? undefined : word),
			};
		default:
			return { ...base, state };
	}
}

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

const MAX_QUOTED = 300;

/** The beginning of a record, for a message about a task whose record says no reason. */
export const shownRecord = (record: IDataObject): string =>
	quoted(JSON.stringify(cutDataUris(record)), MAX_QUOTED);

/**
 * What a record says of its task, for a warning about a success without results: the service's reason, or the beginning
 * of the record.
 */
export const reasonOf = (record: IDataObject): string => findReason(record) ?? shownRecord(record);

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

/** Further names of links, such as `mediaUrl`, as `plainName` writes them. */
const LINK_NAME = /(?:url|uri|link|href|src)s?$/;

/** Links to something smaller than the result. */
const SIDE_NAME = /thumb|preview|cover|poster|callback|webhook/;

/** Fields that tell something about a result, also where their text looks like a path, as `plainName` writes them. */
const ABOUT_RESULT = /type$|name$|model|prompt|format|^mime|^id$|input|meta/;

/** Fields with a file in base64, such as `b64_json`. */
const DATA_NAME = /b(?:ase)?_?64/i;

/** How a value of any other field begins if it is a link, a list, or an object as text. */
const BEGINS_AS_LINK = /^\s*(?:https?:\/\/|data:|["[{/]|(?:[a-z0-9-]+\.)+[a-z]{2,}\/)/i;

/** A media type, as it stands beside a file in base64. */
const MEDIA_TYPE = /^(?:image|video|audio|model|application|text)\/[\w.+-]+$/i;

/** Deeper than any list of results. */
const MAX_LINK_DEPTH = 5;

/**
 * The results of a task, in the order of the service's own list. An entry of the list that has no link is `null`.
 *
 * @param origin of the service, for links without a host; undefined if it is not known
 * @see docs/service.openapi.yaml, section 2
 */
function readResults(value: unknown, origin: string | undefined): Array<string | null> {
	if (!Array.isArray(value)) return readLinks(value, origin);
	return value.flatMap((entry): Array<string | null> => {
		const links = readLinks(entry, origin);
		return links.length > 0 ? links : [null];
	});
}

/**
 * Reads the links to results, in whatever shape a service writes them: a list, one text, a text with several links, an
 * object for each link, an object of links, the JSON text of any of these. A file in base64 becomes a data URI. What is
 * neither is left out.
 *
 * @param origin of the service, for links without a host; undefined if it is not known
 * @returns links that can be fetched: http, https or data
 * @see docs/service.openapi.yaml, section 2
 */
function readLinks(value: unknown, origin: string | undefined, depth = 0): string[] {
	if (depth > MAX_LINK_DEPTH) return [];
	const inside = (entry: unknown) => readLinks(entry, origin, depth + 1);
	if (Array.isArray(value)) return value.flatMap(inside);
	if (typeof value === 'string') {
		const isJson = /^\s*["[{]/.test(value);
		const spoken = isJson ? parsedJson(value) : undefined;
		return spoken === undefined ? linksInText(value, origin) : inside(spoken);
	}
	if (!isRecord(value)) return [];
	let files: string[] = [];
	for (const links of linksByName(value, inside)) {
		// A file beside a link is a blur, or the preview of what the link leads to.
		const addresses = links.filter((link) => !isDataUri(link));
		if (addresses.length > 0) return addresses;
		if (files.length === 0) files = links;
	}
	return files;
}

/** The links in an object, those of the most telling fields first. */
function* linksByName(
	value: IDataObject,
	inside: (entry: unknown) => string[],
): Generator<string[]> {
	const fields = plainFields(value);
	for (const field of LINK_FIELDS) yield inside(fields.get(field));
	const main = Object.entries(value).filter(([name]) => !SIDE_NAME.test(plainName(name)));
	yield main.flatMap(([name, entry]) => (LINK_NAME.test(plainName(name)) ? inside(entry) : []));
	const type = Object.values(value).find(isMediaType);
	yield main.flatMap(([name, entry]) => (DATA_NAME.test(name) ? asFile(entry, type) : []));
	yield main
		.filter(([name, entry]) => !ABOUT_RESULT.test(plainName(name)) && mayBeLink(entry))
		.flatMap(([, entry]) => inside(entry));
}

const mayBeLink = (value: unknown): boolean =>
	typeof value !== 'string' || BEGINS_AS_LINK.test(value) || isBase64File(value);

const isMediaType = (value: unknown): value is string =>
	typeof value === 'string' && MEDIA_TYPE.test(value);

/** @returns a text of a field for files as a data URI; nothing if it is no base64 */
function asFile(value: unknown, type: string | undefined): string[] {
	if (Array.isArray(value)) return value.flatMap((entry) => asFile(entry, type));
	if (typeof value !== 'string') return [];
	if (/^\s*data:[^,]*,/i.test(value)) return [value.trim()];
	return isBase64(value) ? [dataUri(value, type)] : [];
}

const dataUri = (base64: string, type = 'application/octet-stream') =>
	`data:${registeredType(type)};base64,${base64.trim()}`;

/** A comma is part of many links, and separates two links only before the begin of the second. */
const SEPARATOR = /[\r\n]|[\s,;|](?=https?:\/\/|data:)/i;

function linksInText(text: string, origin: string | undefined): string[] {
	const trimmed = text.trim();
	if (isBase64File(trimmed)) return [dataUri(trimmed)];
	const parts = /^data:/i.test(trimmed) ? [trimmed] : trimmed.split(SEPARATOR);
	return parts.flatMap((part) => {
		const link = part.trim().replace(/[,;|]$/, '');
		return asLink(link.trim(), origin) ?? [];
	});
}

/** A path below a host, with or without the host's `//` before it. */
const FROM_ROOT = /^\/{1,2}[^\s/]\S*$/;

/** A host and a path. */
const FROM_HOST = /^(?:[a-z0-9-]+\.)+[a-z]{2,}(?::\d+)?\/\S+$/i;

/** A path to a file, and no media type or model: its last name has an extension, with a letter. */
const RELATIVE = /^(?!\w+\/(?:vnd|prs|x)\.)[^\s:?#]+\.(?=\d*[a-z])[a-z0-9]{2,5}(?:\?\S*)?$/i;

/** Longer addresses are none. */
const MAX_LINK_LENGTH = 8192;

function asLink(text: string, origin: string | undefined): string | undefined {
	if (/^data:[^,]*,/i.test(text)) return text;
	if (text.length > MAX_LINK_LENGTH) return undefined;
	if (/^https?:\/\/[^\s/]/i.test(text)) return URL.canParse(text) ? text : undefined;
	if (FROM_HOST.test(text)) return asLink(`https://${text}`, origin);
	const isPath = FROM_ROOT.test(text) || (text.includes('/') && RELATIVE.test(text));
	if (origin === undefined || !isPath || !URL.canParse(text, origin)) return undefined;
	return new URL(text, origin).href;
}
