import { createHmac, timingSafeEqual } from 'crypto';
import { UserError } from 'n8n-workflow';

/** The query parameter of a callback address that carries the token. */
export const TOKEN_PARAMETER = 'token';

/**
 * The token that proves that a callback address was given out by somebody who has the API key. The specification
 * shows no signature on callbacks (section 6), so the address itself carries the proof.
 *
 * @param path the path of the callback URL, e.g. `/webhook/…/callback`
 * @returns hex HMAC-SHA-256 of the path, keyed with the API key
 */
export function callbackToken(path: string, apiKey: string): string {
	return createHmac('sha256', apiKey).update(path).digest('hex');
}

/**
 * The address to give to the service as `webhook_url`.
 *
 * @param url the URL of a Media Generation Trigger, with or without a token
 * @returns the URL with its token
 * @throws UserError where it is no http or https address
 */
export function callbackAddress(url: string, apiKey: string): string {
	if (!URL.canParse(url.trim())) {
		throw new UserError(`The parameter 'Callback URL' is not a valid address: '${url}'`, {
			description: 'Copy the production URL from the Media Generation Trigger.',
		});
	}
	const address = new URL(url.trim());
	if (address.protocol !== 'https:' && address.protocol !== 'http:') {
		throw new UserError(`The parameter 'Callback URL' starts with '${address.protocol}'`, {
			description:
				'Copy the production URL from the Media Generation Trigger, which starts with https:// or http://.',
		});
	}
	address.searchParams.set(TOKEN_PARAMETER, callbackToken(address.pathname, apiKey));
	return address.href;
}

/**
 * Whether a callback came to an address that was given out with its token.
 *
 * @param token the query parameter as n8n parsed it: a string, or a list where it was there more than once
 * @param paths the paths under which this trigger is reached: its public one, and the one of this request
 *   (they differ behind a reverse proxy that cuts a prefix off, and for a test URL); asked for one by one, because
 *   some take n8n an evaluation
 */
export function isTokenValid(token: unknown, paths: Iterable<string>, apiKey: string): boolean {
	if (typeof token !== 'string') return false;
	const given = Buffer.from(token);
	for (const path of paths) {
		const expected = Buffer.from(callbackToken(path, apiKey));
		// Constant time, so that the token cannot be guessed byte by byte.
		if (given.length === expected.length && timingSafeEqual(given, expected)) return true;
	}
	return false;
}
