import type { IDataObject } from 'n8n-workflow';

import { isRecord, parsedJson, plainFields, plainName } from '../shared/json';
import { isBase64, isBase64File, isDataUri, registeredType } from '../shared/media';

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
const MAX_DEPTH = 5;

/**
 * The results of a task, in the order of the service's own list. An entry of the list that has no link is `null`.
 *
 * @param origin of the service, for links without a host; undefined if it is not known
 * @see docs/service.openapi.yaml, section 2
 */
export function readResults(value: unknown, origin: string | undefined): Array<string | null> {
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
	if (depth > MAX_DEPTH) return [];
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
	const named = Object.entries(value).map(([name, entry]) => ({
		name,
		plain: plainName(name),
		entry,
	}));
	const main = named.filter(({ plain }) => !SIDE_NAME.test(plain));
	yield main.filter(({ plain }) => LINK_NAME.test(plain)).flatMap(({ entry }) => inside(entry));
	const type = named.map(({ entry }) => entry).find((entry) => isMediaType(entry));
	yield main.flatMap(({ name, entry }) => (DATA_NAME.test(name) ? asFile(entry, type) : []));
	yield main
		.filter(({ plain, entry }) => !ABOUT_RESULT.test(plain) && mayBeLink(entry))
		.flatMap(({ entry }) => inside(entry));
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
