import type { IExecuteFunctions, IHttpRequestOptions, IWebhookFunctions } from 'n8n-workflow';

import type { HttpResponse } from '../service/client';
import { ANY_ANSWER, asText } from '../service/connect';
import { settled } from '../shared/promises';
import { Stopped } from '../shared/clock';
import { forbiddenAddress } from '../shared/privateAddress';

/**
 * Sends a request to an n8n, this one as a rule. It carries no API key.
 *
 * @param forbidden what to tell the user where n8n's own protection refuses the address
 * @returns the answer, whatever its status; undefined where there was none
 * @throws UserError where the protection refuses the address; Stopped where the execution was stopped
 */
export async function callN8n(
	context: IExecuteFunctions | IWebhookFunctions,
	request: IHttpRequestOptions,
	forbidden: string,
): Promise<HttpResponse | undefined> {
	const abortSignal =
		'getExecutionCancelSignal' in context ? context.getExecutionCancelSignal() : undefined;
	const options = { ...request, ...ANY_ANSWER, ...(abortSignal && { abortSignal }) };
	const called = await settled(async () => asText(await context.helpers.httpRequest(options)));
	if ('value' in called) return called.value;
	if (abortSignal?.aborted) throw new Stopped();
	const refused = forbiddenAddress(called.error, forbidden);
	if (refused) throw refused;
	return undefined;
}
