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
	const { pathname, searchParams } = address;
	const kept = reference ?? searchParams.get(REFERENCE_PARAMETER);
	if (kept !== null) searchParams.set(REFERENCE_PARAMETER, kept);
	// As it is read back: half of a character cannot travel.
	const carried = searchParams.get(REFERENCE_PARAMETER) ?? undefined;
	searchParams.set(TOKEN_PARAMETER, callbackToken(pathname, apiKey, carried));
	return address.href;
}
