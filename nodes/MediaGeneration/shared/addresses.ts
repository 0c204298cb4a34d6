import { createHmac, timingSafeEqual } from 'crypto';
import { UserError } from 'n8n-workflow';

import { findInChain } from './itemError';

/** The path of the trigger's webhook, as the node declares it: each callback address ends in it. */
export const CALLBACK_PATH = 'callback';

/** The query parameter of a callback address, and of a link to a file, that carries the secret. */
export const TOKEN_PARAMETER = 'token';

/** The query parameter of a callback address that carries the user's reference, which comes back with the result. */
export const REFERENCE_PARAMETER = 'reference';

/** How many hex digits a token has. */
export const TOKEN_LENGTH = 64;

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

/** Names and addresses that exist only on one machine or in a private network. */
const PRIVATE_HOST =
	/^([^.:]+|.+\.(localhost|local|internal|lan|home\.arpa)|(127|10|169\.254|192\.168|172\.(1[6-9]|2\d|3[01])|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\.[\d.]+|0\.0\.0\.0|\[(::1?|f[cd].*|fe80:.*)\])$/;

const isPrivate = (url: string) => PRIVATE_HOST.test(new URL(url).hostname);

/**
 * Whether a callback cannot arrive, because its address is in a private network, and the service is not (specification,
 * section 6: the service must reach the address, and a local address needs a tunnel).
 */
export const isOutOfReach = (callbackUrl: string, baseUrl: string): boolean =>
	isPrivate(callbackUrl) && !isPrivate(baseUrl);

/**
 * n8n's protection against server-side request forgery forbids private addresses, n8n's own address included, unless
 * they are allowed. Nodes cannot import its error classes, so the name of the error tells.
 *
 * @returns the error for the user, which says what to allow; undefined if the cause is another
 */
export function forbiddenAddress(error: unknown, message: string): UserError | undefined {
	// A redirect may have led to another host.
	const host = findInChain(error, (link) => {
		const { name, hostname, ip } = link as Record<string, unknown>;
		return String(name).startsWith('SsrfBlocked') ? String(hostname ?? ip) : undefined;
	});
	if (host === undefined) return undefined;
	return new UserError(message, {
		description: `Its protection against requests to private addresses refused '${host}'. On every process of n8n, add the name to N8N_SSRF_ALLOWED_HOSTNAMES, or the address with /32 to N8N_SSRF_ALLOWED_IP_RANGES.`,
	});
}
