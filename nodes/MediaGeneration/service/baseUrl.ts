import { UserError } from 'n8n-workflow';

import { type Service, SPECIFICATION } from './services';

const refusal = (what: string, description: string) =>
	new UserError(`The 'Base URL' of the Media Generation credential ${what}`, { description });

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
		throw refusal('is empty', 'Enter the address of the service, e.g. https://api.example.com.');
	}
	// Without this test `localhost:8080` would be a URL whose scheme is `localhost`.
	if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) {
		throw refusal(
			'is not an address with https:// or http:// before it',
			'Start it with https:// (or http:// inside your own network), e.g. https://api.example.com.',
		);
	}
	const url = new URL(text);
	if (url.username !== '' || url.password !== '') {
		throw refusal(
			'contains a user name or password',
			'Leave them out: the service is called with the API key alone.',
		);
	}
	if (url.search !== '' || url.hash !== '') {
		// The rest may be a key.
		const [sign] = url.search || url.hash;
		throw refusal(`contains '${sign}'`, 'Remove this character and all that follows.');
	}
	const path = url.pathname.replace(/(?<!\/)\/+$/, '');
	const endpoint = [create, balance].find((each) => path.endsWith(each));
	if (endpoint === undefined) return url.origin + path;
	throw refusal(`ends in '${endpoint}'`, 'Leave that out: the node adds the endpoint by itself.');
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
		throw new UserError("The 'API Key' of the Media Generation credential is empty", {
			description: 'Paste the key of your account at the service.',
		});
	}
	if (!/^[\x21-\x7e]+$/.test(key)) {
		throw new UserError(
			"The 'API Key' of the Media Generation credential contains white space or characters that no key has",
			{ description: 'Copy it again from your account.' },
		);
	}
	return key;
}
