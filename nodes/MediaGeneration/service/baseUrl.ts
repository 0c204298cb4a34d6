import { UserError } from 'n8n-workflow';

const FIELD = "The 'Base URL' of the Media Generation credential";

/**
 * Reads the base URL that a user typed into the credential.
 *
 * @param value what stands in the credential: http or https, with or without a path prefix and a trailing slash
 * @returns the URL without white space, query and trailing slash, ready to have `/api/…` appended
 * @throws UserError that says what is wrong with the value and what to enter instead
 * @see specification, the base address `{base_url}`
 */
export function parseBaseUrl(value: unknown): string {
	const text = typeof value === 'string' ? value.trim() : '';
	if (text === '') {
		throw new UserError(`${FIELD} is empty`, {
			description: 'Enter the address of the service, e.g. https://api.example.com.',
		});
	}
	// Without this look `localhost:8080` would pass for a URL whose scheme is `localhost`.
	if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
		throw new UserError(`${FIELD} has no scheme: '${text}'`, {
			description: `Start it with https:// (or http:// inside your own network), e.g. https://${text}.`,
		});
	}
	if (!URL.canParse(text)) {
		throw new UserError(`${FIELD} is not a valid address: '${text}'`, {
			description: 'Enter an address such as https://api.example.com.',
		});
	}
	const url = new URL(text);
	if (url.protocol !== 'https:' && url.protocol !== 'http:') {
		throw new UserError(`${FIELD} starts with '${url.protocol}//'`, {
			description: 'Only https:// and http:// can be used.',
		});
	}
	if (url.username !== '' || url.password !== '') {
		throw new UserError(`${FIELD} contains a user name or password`, {
			description: 'Leave them out: the service is called with the API key alone.',
		});
	}
	if (url.search !== '' || url.hash !== '') {
		throw new UserError(`${FIELD} contains '${url.search || url.hash}'`, {
			description: 'Remove everything from there on.',
		});
	}
	const path = url.pathname.replace(/(?<!\/)\/+$/, '');
	const endpoint = /\/api\/(generate|credits)$/.exec(path);
	if (endpoint) {
		throw new UserError(`${FIELD} ends in '${endpoint[0]}'`, {
			description: 'Leave that out: the node adds the endpoint by itself.',
		});
	}
	return url.origin + path;
}

/**
 * Reads the API key that a user pasted into the credential.
 *
 * @returns the key without the white space that copying often brings along
 * @throws UserError where it is empty or cannot be sent in a header; the message never holds the key
 * @see specification, section 5
 */
export function parseApiKey(value: unknown): string {
	const key = typeof value === 'string' ? value.trim() : '';
	if (key === '') {
		throw new UserError("The 'API Key' of the Media Generation credential is empty", {
			description: 'Paste the key of your account, which begins with sk-live-.',
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
