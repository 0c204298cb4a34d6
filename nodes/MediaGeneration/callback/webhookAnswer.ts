import type { IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';

import { settled } from '../shared/promises';

/** What a callback is answered. */
export interface WebhookAnswer {
	status: number;
	body: Record<string, string | boolean>;
	/** Seconds after which the sender may try again. */
	retryAfterSeconds?: number;
}

const RETRY_AFTER_SECONDS = 5;

/** The answer where nothing was decided: the sender is to deliver the callback again. */
export const tryAgain = (message: string): WebhookAnswer => ({
	status: 503,
	body: { message },
	retryAfterSeconds: RETRY_AFTER_SECONDS,
});

/** Answers a callback here and now: n8n starts and resumes nothing. */
function respond(
	context: IWebhookFunctions,
	{ status, body, retryAfterSeconds }: WebhookAnswer,
): IWebhookResponseData {
	const response = context.getResponseObject();
	if (retryAfterSeconds !== undefined) response.set('Retry-After', String(retryAfterSeconds));
	response.status(status).json(body);
	return { noWebhookResponse: true };
}

/**
 * Has a callback decided, and answered if need be. Where nothing can be decided the callback is to come again: of an
 * error n8n would make an answer that ends it, and it resumes a waiting execution with one empty item.
 */
export async function decided(
	context: IWebhookFunctions,
	decide: () => Promise<WebhookAnswer | IWebhookResponseData>,
): Promise<IWebhookResponseData> {
	const result = await settled(decide);
	if ('value' in result) {
		return 'status' in result.value ? respond(context, result.value) : result.value;
	}
	const why = result.error instanceof Error ? result.error.message : '';
	context.logger.warn(`${context.getNode().name}: a callback waits. ${why}`);
	return respond(context, tryAgain('The callback cannot be checked at the moment'));
}
