import { createHmac, timingSafeEqual } from 'crypto';
import { UserError } from 'n8n-workflow';

/** The query parameter of a callback address that carries the token. */
export const TOKEN_PARAMETER = 'token';

/** The query parameter of a callback address that carries what the user wants to get back with the result. */
export const REFERENCE_PARAMETER = 'reference';

/**
 * The address to give to the service as `webhook_url`.
 *
 * @param url the URL of a Media Generation Trigger, with or without a token
 * @param reference comes back with the callback, under the token; where left out, the URL keeps what it has
 * @returns the URL with its token
 * @throws UserError where it is no http or https address
 */
export function callbackAddress(url: string, apiKey: string, reference?: string): string {
	if (!/^https?:/i.test(url.trim()) || !URL.canParse(url.trim())) {
		throw new UserError(`The parameter 'Callback URL' is not a valid address: '${url}'`, {
			description:
				'Copy the production URL from the Media Generation Trigger, which starts with https:// or http://.',
		});
	}
	const address = new URL(url.trim());
	const { pathname, searchParams } = address;
	const kept = reference ?? searchParams.get(REFERENCE_PARAMETER) ?? undefined;
	// Half of a character cannot travel.
	const carried = kept?.toWellFormed();
	searchParams.delete(REFERENCE_PARAMETER);
	searchParams.set(TOKEN_PARAMETER, callbackToken(pathname, apiKey, carried));
	// Last: where somebody shows the address decoded, nobody sees where the reference ends, and the token must be found.
	if (carried !== undefined) searchParams.set(REFERENCE_PARAMETER, carried);
	return address.href;
}

/**
 * The token that proves that a callback address was given out by somebody who has the API key. The specification
 * shows no signature on callbacks (section 6), so the address itself carries the proof.
 *
 * @param path the path of the callback URL, e.g. `/webhook/…/callback`
 * @param reference the address's reference, if it carries one. A line break sets it apart: a path has none.
 * @returns hex HMAC-SHA-256 of the path, and of the reference behind it, keyed with the API key
 */
export function callbackToken(path: string, apiKey: string, reference?: string): string {
	return sign(reference === undefined ? path : `${path}\n${reference}`, apiKey);
}

/**
 * Whether a callback came to an address that was given out with its token.
 *
 * @param token the query parameter as n8n parsed it: a string, or a list where it was there more than once
 * @param path the path under which the trigger is reached
 * @param reference the other query parameter, in the same way; undefined where it is not there
 */
export function isTokenValid(
	token: unknown,
	path: string,
	apiKey: string,
	reference?: unknown,
): boolean {
	if (reference !== undefined && typeof reference !== 'string') return false;
	return isSame(token, callbackToken(path, apiKey, reference));
}

/** @returns hex HMAC-SHA-256 of the text */
export function sign(text: string, apiKey: string): string {
	return createHmac('sha256', apiKey).update(text).digest('hex');
}

/** Whether somebody sent the right signature. */
export function isSame(sent: unknown, expected: string): boolean {
	if (typeof sent !== 'string') return false;
	const [given, right] = [Buffer.from(sent), Buffer.from(expected)];
	// Constant time, so that a signature cannot be guessed byte by byte.
	return given.length === right.length && timingSafeEqual(given, right);
}
