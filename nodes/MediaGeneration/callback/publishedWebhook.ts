import { type IExecuteFunctions, type IHttpRequestMethods, UserError } from 'n8n-workflow';

import { attempt } from '../shared/attempt';
import { Stopped } from '../shared/clock';
import { isRecord } from '../shared/json';
import { forbiddenAddress } from '../shared/requestError';

/** How long n8n may take to answer, in ms. */
const LIMIT_MS = 10_000;

/** n8n's request helper sends it, although its type does not have it. */
const OPTIONS = 'OPTIONS' as IHttpRequestMethods;

/**
 * Asks n8n whether it has a webhook for POST requests at an address, as a browser does before it sends one (a CORS
 * preflight): that starts nothing.
 *
 * @param url a production URL
 * @throws UserError where the answer is not n8n's, or there is none; Stopped where the execution was stopped
 */
export async function isPublished(
	context: Pick<IExecuteFunctions, 'helpers' | 'getExecutionCancelSignal'>,
	url: string,
): Promise<boolean> {
	const abortSignal = context.getExecutionCancelSignal();
	const response = await attempt(
		async () =>
			(await context.helpers.httpRequest({
				method: OPTIONS,
				url,
				headers: { Origin: new URL(url).origin },
				encoding: 'text',
				timeout: LIMIT_MS,
				returnFullResponse: true,
				ignoreHttpStatusErrors: true,
				disableFollowRedirect: true,
				abortSignal,
			})) as { headers: unknown },
	);
	if ('error' in response) {
		if (abortSignal?.aborted) throw new Stopped();
		throw (
			forbiddenAddress(response.error, `n8n does not let this node ask for the trigger: ${url}`) ??
			unanswered(url)
		);
	}
	const { headers } = response.value;
	const methods = isRecord(headers) ? headers['access-control-allow-methods'] : undefined;
	if (typeof methods !== 'string') throw unanswered(url);
	return methods.split(',').some((method) => method.trim() === 'POST');
}

const unanswered = (url: string) =>
	new UserError(`It is not known whether the Media Generation Trigger is published: ${url}`, {
		description:
			"In a run by hand on a worker, n8n is asked at the trigger's production URL, and did not answer there. Let the worker reach that address, or paste it into 'Callback URL'.",
	});
