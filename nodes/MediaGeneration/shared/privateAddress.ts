import { UserError } from 'n8n-workflow';

/** Looks for something along an error's causes, through the wrappers that n8n puts around it. */
export function findInChain<T>(
	error: unknown,
	pick: (link: unknown) => T | undefined,
): T | undefined {
	const seen = new Set<unknown>();
	let link = error;
	while (typeof link === 'object' && link !== null && !seen.has(link)) {
		seen.add(link);
		const found = pick(link);
		if (found !== undefined) return found;
		link = 'cause' in link ? link.cause : 'errorResponse' in link ? link.errorResponse : undefined;
	}
	return undefined;
}

/**
 * n8n's protection against server-side request forgery forbids private addresses, n8n's own among them, unless they are
 * allowed. Its errors stand in a package that is closed to nodes, so they are known by their names.
 *
 * @param error what n8n's request helper threw
 * @param message what to tell the user then
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
