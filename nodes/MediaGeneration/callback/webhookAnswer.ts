import type { IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';

import { messageOf } from '../shared/itemError';
import { settled } from '../shared/promises';

/** What may be waited for while a callback is decided: the answer must be out in 10 s. */
export const ANSWER_LIMIT_MS = 8_000;

export interface WebhookAnswer {
	status: number;
	body: Record<string, string | boolean>;
}

const TRY_AGAIN = 503;
const RETRY_AFTER_SECONDS = 5;

/** The answer where nothing was decided: the sender is to deliver the callback again. */
export const tryAgain = (message: string): WebhookAnswer => ({
	status: TRY_AGAIN,
	body: { message },
});

/**
 * Has a callback decided, and answered here and now, unless it starts or resumes something. Where nothing can be decided
 * the callback is to come again: of an error n8n would make an answer that ends it, and it resumes a waiting execution
 * with one empty item.
 */
export const deciding =
	(decide: (context: IWebhookFunctions) => Promise<WebhookAnswer | IWebhookResponseData>) =>
	async (context: IWebhookFunctions): Promise<IWebhookResponseData> => {
		const result = await settled(decide(context));
		if ('error' in result) {
			const why = messageOf(result.error);
			context.logger.warn(`${context.getNode().name}: a callback waits. ${why}`);
		}
		const undecided = tryAgain('The callback cannot be checked at the moment');
		const answer = 'value' in result ? result.value : undecided;
		if (!('status' in answer)) return answer;
		const response = context.getResponseObject();
		if (answer.status === TRY_AGAIN) response.set('Retry-After', String(RETRY_AFTER_SECONDS));
		response.status(answer.status).json(answer.body);
		return { noWebhookResponse: true };
	};
