import { type ICredentialDataDecryptedObject, UserError } from 'n8n-workflow';

import { isRecord, parsedJson } from '../shared/json';
import { FIXED, placeholdersIn } from './door';
import { type Service, SERVICES, SPECIFICATION } from './services';

const refusalOf = (field: string) => (what: string, description: string) =>
	new UserError(`The '${field}' of the Media Generation credential ${what}`, { description });

const ofBaseUrl = refusalOf('Base URL');
const ofApiKey = refusalOf('API Key');
const ofInterface = refusalOf('Interface');

/** What a credential says of the account, checked. */
export interface Account {
	service: Service;
	/** As `parseBaseUrl` returns it. */
	baseUrl: string;
	apiKey: string;
}

/** The value of *Service* for which the credential has the row. */
const OTHER = 'other';

/**
 * Reads the base URL that a user typed into the credential: http or https, with or without a path prefix.
 *
 * @param service whose paths are appended
 * @returns the URL without white space and trailing slash, ready to have the service's paths appended
 * @throws UserError that says what is wrong with the value and what to enter instead
 * @see docs/service.openapi.yaml, section 4: the base address
 */
export function parseBaseUrl(
	value: unknown,
	{ create, balance }: Pick<Service, 'create' | 'balance'> = SPECIFICATION,
): string {
	const text = typeof value === 'string' ? value.trim() : '';
	if (text === '') {
		throw ofBaseUrl('is empty', 'Enter the address of the service, e.g. https://api.example.com.');
	}
	// Without this test `localhost:8080` would be a URL whose scheme is `localhost`.
	if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) {
		throw ofBaseUrl(
			'is not an address with https:// or http:// before it',
			'Start it with https:// (or http:// inside your own network), e.g. https://api.example.com.',
		);
	}
	const url = new URL(text);
	if (url.username !== '' || url.password !== '') {
		throw ofBaseUrl(
			'contains a user name or password',
			'Leave them out: the service is called with the API key alone.',
		);
	}
	if (url.search !== '' || url.hash !== '') {
		// The rest may be a key.
		const [sign] = url.search || url.hash;
		throw ofBaseUrl(`contains '${sign}'`, 'Remove this character and all that follows.');
	}
	const path = url.pathname.replace(/(?<!\/)\/+$/, '');
	const endpoint = [create, balance].find((each) => path.endsWith(each));
	if (endpoint === undefined) return url.origin + path;
	throw ofBaseUrl(`ends in '${endpoint}'`, 'Leave that out: the node adds the endpoint by itself.');
}

/**
 * Whether an address is the base URL or lies below it: the API key goes there, and nowhere else.
 *
 * @param baseUrl as `parseBaseUrl` returns it
 */
export const isBelow = (baseUrl: string, { origin, pathname }: URL): boolean =>
	`${origin}${pathname}/`.startsWith(`${baseUrl}/`);

/**
 * Reads the API key that a user pasted into the credential.
 *
 * @returns the key without white space around it
 * @throws UserError if the key is empty or cannot be sent in a header; the message never contains the key
 * @see docs/service.openapi.yaml, section 5
 */
export function parseApiKey(value: unknown): string {
	const key = typeof value === 'string' ? value.trim() : '';
	if (key === '') {
		throw ofApiKey('is empty', 'Paste the key of your account at the service.');
	}
	if (!/^[\x21-\x7e]+$/.test(key)) {
		throw ofApiKey(
			'contains white space or characters that no key has',
			'Copy it again from your account.',
		);
	}
	return key;
}

/**
 * Reads the fields of a credential.
 *
 * @throws UserError that names the field, what is wrong with it and what to enter
 */
export function readAccount(credential: ICredentialDataDecryptedObject): Account {
	const service = readService(credential);
	const entered = credential.baseUrl;
	const isEmpty = typeof entered !== 'string' || entered.trim() === '';
	const baseUrl = parseBaseUrl(isEmpty ? service.base : entered, service);
	return { service, baseUrl, apiKey: parseApiKey(credential.apiKey) };
}

/**
 * The row of the service that the credential names or describes. A credential without *Service* has the specification's.
 *
 * @throws UserError if there is no such row, or the description is none
 */
export function readService(credential: ICredentialDataDecryptedObject): Service {
	const { service: chosen = '', interface: text } = credential;
	const name = typeof chosen === 'string' ? chosen : JSON.stringify(chosen);
	if (name === OTHER) return parseRow(text);
	if (Object.hasOwn(SERVICES, name)) return { ...SPECIFICATION, ...SERVICES[name] };
	throw refusalOf('Service')(
		`is '${name}'`,
		"Choose one of the list. For a service that is not in the list choose 'Other' and describe it in 'Interface'.",
	);
}

const START_AGAIN =
	"Copy a row from the package's page on services, from the first { to the last }, and change what is different.";

/** A path below the base URL, which leads to no other: no part of dots, and none that is empty but the last. */
const PATH = /^(?:\/(?!\.{1,2}(?:[/?]|$))[\w\-.{}%:~+,@]+)+\/?(?:\?[\w\-.{}=&%:~+,@]*)?$/;

const isPath = (value: unknown): value is string => typeof value === 'string' && PATH.test(value);
const isText = (value: unknown): value is string =>
	typeof value === 'string' && value.trim() !== '';
const isListOfNames = (value: unknown): boolean => Array.isArray(value) && value.every(isText);

/** What each field of a row must be, in words, and whether a value is. */
const FIELDS: Record<keyof Service, [what: string, isSuch: (value: unknown) => boolean]> = {
	base: ['an address, or empty', (value) => typeof value === 'string'],
	create: ["a path that begins with '/'", isPath],
	read: ["a path that begins with '/'", isPath],
	result: ["a path that begins with '/', or empty", (value) => value === '' || isPath(value)],
	balance: ["a path that begins with '/'", isPath],
	body: ["an object whose '...', if there is one, is '{input}'", isBody],
	headers: ["an object of texts, one of which has '{key}'", isHeaders],
	id: ['a list of names', isListOfNames],
	state: ['a name', isText],
	results: [
		'names with commas between them, or a path',
		(value) => isText(value) && (!value.startsWith('/') || isPath(value)),
	],
};

/** The key stands in headers only: it must not be in an address, or in what the service shows again. */
function isBody(value: unknown): boolean {
	if (!isRecord(value) || placeholdersIn(value).includes('key')) return false;
	return value['...'] === undefined || value['...'] === '{input}';
}

function isHeaders(value: unknown): boolean {
	if (!isRecord(value)) return false;
	const isHeader = ([name, text]: [string, unknown]) =>
		/^[\w-]+$/.test(name) && isText(text) && /^[\x20-\x7e]*$/.test(text);
	const names = placeholdersIn(value);
	return (
		Object.entries(value).every(isHeader) && names.includes('key') && new Set(names).size === 1
	);
}

/** The placeholders that a path may have; without this, a misspelt one would be left out of the path. */
const IN_PATHS = FIXED.filter((name) => name !== 'key' && name !== 'input');

/**
 * Reads a row. What it does not say is as in the specification.
 *
 * @throws UserError that names the first thing that no row has
 */
function parseRow(text: unknown): Service {
	const row = isRecord(text) ? text : parsedJson(String(text ?? ''));
	if (!isRecord(row)) throw ofInterface('is not a JSON object', START_AGAIN);
	const unknown = Object.keys(row).find((name) => !Object.hasOwn(FIELDS, name));
	if (unknown !== undefined) {
		const names = Object.keys(FIELDS).join(', ');
		throw ofInterface(`has '${unknown}', which no row has`, `The fields of a row are: ${names}.`);
	}
	const lacking = ['create', 'read'].find((name) => row[name] === undefined);
	if (lacking !== undefined) throw ofInterface(`has no '${lacking}'`, START_AGAIN);
	for (const [name, [what, isSuch]] of Object.entries(FIELDS)) {
		const value = row[name];
		if (value === undefined) continue;
		if (!isSuch(value)) throw ofInterface(`has a '${name}' that is not ${what}`, START_AGAIN);
		if (!isPath(value)) continue;
		const wrong = placeholdersIn(value).find((each) => !IN_PATHS.includes(each));
		if (wrong === undefined) continue;
		const known = IN_PATHS.map((each) => `{${each}}`).join(', ');
		throw ofInterface(`has {${wrong}} in '${name}'`, `A path may have: ${known}.`);
	}
	return { ...SPECIFICATION, ...row } as Service;
}
