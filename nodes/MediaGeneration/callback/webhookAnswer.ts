import type { IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';

/** What a callback is answered. */
export interface WebhookAnswer {
	status: number;
	body: Record<string, string | boolean>;
	/** Seconds after which the sender may try again. */
	retryAfterSeconds?: number;
}

const RETRY_AFTER_SECONDS = 5;

export const DUPLICATE: WebhookAnswer = {
	status: 200,
	body: { accepted: false, reason: 'duplicate' },
};

/** The answer where nothing was decided: the sender is to deliver the callback again. */
export const tryAgain = (message: string): WebhookAnswer => ({
	status: 503,
	body: { message },
	retryAfterSeconds: RETRY_AFTER_SECONDS,
});

/** Answers a callback here and now: n8n starts and resumes nothing. */
export function respond(
	context: IWebhookFunctions,
	{ status, body, retryAfterSeconds }: WebhookAnswer,
): IWebhookResponseData {
	const response = context.getResponseObject();
	if (retryAfterSeconds !== undefined) response.set('Retry-After', String(retryAfterSeconds));
	response.status(status).json(body);
	return { noWebhookResponse: true };
}
