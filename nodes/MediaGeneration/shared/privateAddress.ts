import { UserError } from 'n8n-workflow';

import { findInChain } from './itemError';

/** Names and addresses that exist only on one machine or in one private network. */
const PRIVATE_HOST =
	/^([^.:]+|.+\.(localhost|local|internal)|(127|10|169\.254|192\.168|172\.(1[6-9]|2\d|3[01]))\.[\d.]+|0\.0\.0\.0|\[(::1?|f[cd].*|fe80:.*)\])$/;

const isPrivate = (url: string) => PRIVATE_HOST.test(new URL(url).hostname);

/**
 * Whether a callback cannot arrive: its address is on a private network, and the service is not (specification,
 * section 6: the address must be reachable by the service, and a local one needs a tunnel). Both are valid URLs.
 */
export const isOutOfReach = (callbackUrl: string, baseUrl: string): boolean =>
	isPrivate(callbackUrl) && !isPrivate(baseUrl);

/**
 * n8n's protection against server-side request forgery forbids private addresses, n8n's own among them, unless they are
 * allowed. Its errors stand in a package that is closed to nodes, so they are known by their names.
 *
 * @returns what to tell the user, and what to allow; undefined where it was something else
 */
export function forbiddenAddress(error: unknown, message: string): UserError | undefined {
	// A redirect may have led elsewhere than the request.
	const host = findInChain(error, (link) => {
		const { name, hostname, ip } = link as Record<string, unknown>;
		return String(name).startsWith('SsrfBlocked') ? String(hostname ?? ip) : undefined;
	});
	if (host === undefined) return undefined;
	return new UserError(message, {
		description: `Its protection against requests to private addresses refused '${host}'. On every process of n8n, add the name to N8N_SSRF_ALLOWED_HOSTNAMES, or the address with /32 to N8N_SSRF_ALLOWED_IP_RANGES.`,
	});
}
