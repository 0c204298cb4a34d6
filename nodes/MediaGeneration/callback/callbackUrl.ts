import { UserError } from 'n8n-workflow';

import { callbackToken, TOKEN_PARAMETER } from './callbackToken';

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
	const kept = reference ?? searchParams.get(REFERENCE_PARAMETER);
	if (kept !== null) searchParams.set(REFERENCE_PARAMETER, kept);
	// As it is read back: half of a character cannot travel.
	const carried = searchParams.get(REFERENCE_PARAMETER) ?? undefined;
	searchParams.set(TOKEN_PARAMETER, callbackToken(pathname, apiKey, carried));
	return address.href;
}

/** Names and addresses that exist only on one machine or in one private network. */
const PRIVATE_HOST =
	/^([^.:]+|.+\.(localhost|local|internal)|(127|10|169\.254|192\.168|172\.(1[6-9]|2\d|3[01]))\.[\d.]+|0\.0\.0\.0|\[(::1?|f[cd].*|fe80:.*)\])$/;

const isPrivate = (url: string) => PRIVATE_HOST.test(new URL(url).hostname);

/**
 * Whether a callback cannot arrive: its address is on a private network, and the service is not (specification,
 * section 6: the address must be reachable by the service, and a local one needs a tunnel).
 *
 * @param callbackUrl a valid URL
 * @param baseUrl the service's address, a valid URL
 */
export function isOutOfReach(callbackUrl: string, baseUrl: string): boolean {
	return isPrivate(callbackUrl) && !isPrivate(baseUrl);
}
