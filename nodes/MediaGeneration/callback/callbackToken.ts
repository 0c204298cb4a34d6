import { createHmac, timingSafeEqual } from 'crypto';
import { UserError } from 'n8n-workflow';

import { TOKEN_PARAMETER } from '../shared/ownAddresses';

/** The query parameter of a callback address that carries the user's reference, which comes back with the result. */
export const REFERENCE_PARAMETER = 'reference';

/**
 * The address to give to the service as `webhook_url`.
 *
 * @param url the URL of a Media Generation Trigger, with or without a token
 * @param reference comes back with the callback, and is signed by the token; if left out, the URL keeps its reference
 * @returns the URL with its token
 * @throws UserError if the URL is not an http or https address
 */
export function callbackAddress(url: string, apiKey: string, reference?: string): string {
	const given = url.trim();
	if (!/^https?:/i.test(given) || !URL.canParse(given)) {
		throw new UserError(
			`The parameter 'Callback URL' is not a valid address: '${url.split('?', 1)[0]}'`,
			{
				description:
					'Copy the production URL from the Media Generation Trigger, which starts with https:// or http://.',
			},
		);
	}
	const address = new URL(given);
	const { pathname, searchParams } = address;
	// A URL cannot hold half of a surrogate pair.
	const carried = (reference ?? searchParams.get(REFERENCE_PARAMETER))?.toWellFormed();
	searchParams.delete(REFERENCE_PARAMETER);
	searchParams.set(TOKEN_PARAMETER, callbackToken(pathname, apiKey, carried));
	// The reference comes last: in a decoded address nobody can tell where a reference ends.
	if (carried !== undefined) searchParams.set(REFERENCE_PARAMETER, carried);
	return address.href;
}

/**
 * The token that proves that the holder of the API key gave out this callback address. The specification shows no
 * signature on callbacks (section 6), so the address itself carries the proof.
 *
 * @param path the path of the callback URL, e.g. `/webhook/…/callback`
 * @param reference the reference in the address, if any. A line break separates path and reference: a path has none.
 * @returns hex HMAC-SHA-256 of the path and the reference, keyed with the API key
 */
export function callbackToken(path: string, apiKey: string, reference?: string): string {
	const signed = reference === undefined ? path : `${path}\n${reference}`;
	return createHmac('sha256', apiKey).update(signed).digest('hex');
}

/** Whether a callback address has a valid token. n8n parses a repeated query parameter to a list. */
export function isTokenValid(
	token: unknown,
	path: string,
	apiKey: string,
	reference?: unknown,
): boolean {
	if (reference !== undefined && typeof reference !== 'string') return false;
	if (typeof token !== 'string') return false;
	const given = Buffer.from(token);
	const right = Buffer.from(callbackToken(path, apiKey, reference));
	// The comparison takes constant time, so that nobody guesses a signature byte by byte.
	return given.length === right.length && timingSafeEqual(given, right);
}
