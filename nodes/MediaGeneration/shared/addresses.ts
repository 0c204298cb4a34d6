import { UserError } from 'n8n-workflow';

import { findInChain } from './itemError';

/** The path of the trigger's webhook, as the node declares it: each callback address ends in it. */
export const CALLBACK_PATH = 'callback';

/** The query parameter of a callback address, and of a link to a file, that carries the secret. */
export const TOKEN_PARAMETER = 'token';

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
