import type { IExecuteFunctions, IWebhookFunctions } from 'n8n-workflow';

import { callbackAddress } from '../callback/callbackToken';
import type { Account } from '../service/connect';
import { isOutOfReach } from '../shared/privateAddress';

/** The path of the node's resuming webhook, as its description declares it. */
export const RESUME_PATH = 'callback';

/**
 * The URL that resumes a suspended execution: n8n's, with the path of the webhook before the query, where n8n 2 keeps a
 * signature.
 */
export function resumeUrl(context: IExecuteFunctions | IWebhookFunctions): string {
	const url = new URL(String(context.evaluateExpression('{{ $execution.resumeUrl }}', 0)));
	url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, '')}/${RESUME_PATH}`;
	return url.href;
}

/** Where the service calls a suspended execution back, if it can: without a callback the checks find the results. */
export function resumeCallbackUrl(
	context: IExecuteFunctions,
	{ apiKey, baseUrl }: Account,
): string | undefined {
	const url = resumeUrl(context);
	return isOutOfReach(url, baseUrl) ? undefined : callbackAddress(url, apiKey);
}
