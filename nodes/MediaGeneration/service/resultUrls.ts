import type { IDataObject } from 'n8n-workflow';

import { isRecord, parsedJson, plainFields } from '../shared/json';

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

/** The field of a record that holds the results, in whatever shape. */
export const resultFieldOf = (record: IDataObject): unknown =>
	record.resultUrls ?? plainFields(record).get('resulturls');

/** Deeper than any list of results. */
const MAX_DEPTH = 5;

/**
 * The results of a task, by their places in the service's own list. A place of the list that has no link is `null`.
 *
 * @param origin of the service, for links without a host; undefined if it is not known
 * @see docs/service.md, section 2
 */
export function readResults(value: unknown, origin: string | undefined): Array<string | null> {
	const list = typeof value === 'string' && /^\s*\[/.test(value) ? parsedJson(value) : value;
	if (!Array.isArray(list)) return readResultUrls(value, origin);
	return list.flatMap((entry): Array<string | null> => {
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
	if (depth > MAX_DEPTH) return [];
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
	if (origin === undefined || !PATH.test(text) || !URL.canParse(text, origin)) return undefined;
	return new URL(text, origin).href;
}
