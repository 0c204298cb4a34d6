import type { IDataObject, IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';

import { MODEL_PARAMETER } from '../service/client';
import { connect, type Connection } from '../service/connect';
import { isTokenValid, REFERENCE_PARAMETER, TOKEN_PARAMETER } from '../shared/addresses';
import { withTimeLimit } from '../shared/clock';
import { messageOf } from '../shared/itemError';
import { parsedJson } from '../shared/json';
import { writeLog } from '../shared/log';
import { settled } from '../shared/promises';

/** Larger bodies are refused. The record is read from the service anyway. */
const MAX_BODY_BYTES = 1024 * 1024;

/** What a valid callback tells: the task id in its body, and what its address carries under the token. */
interface VerifiedCallback {
	connection: Connection;
	taskId: string;
	reference?: string;
}

/**
 * Makes the checks that need no request: the address and its token, the size, the task id.
 *
 * @param publicUrl gives the address that was given out; called only if needed, because it may cost n8n an evaluation
 * @returns the verified callback; or the answer that refuses it
 * @throws UserError if the credential cannot be used; the error of n8n's look-up
 * @see docs/service.openapi.yaml, section 6
 */
export async function verifyCallback(
	context: IWebhookFunctions,
	requireToken: boolean,
	publicUrl: () => string | undefined,
): Promise<WebhookAnswer | VerifiedCallback> {
	const connection = await connect(context);
	const { apiKey } = connection;
	// A request that express has not made lacks the original address.
	const { headers = {}, rawBody, url = '', originalUrl = url } = context.getRequestObject();
	const query = context.getQueryData() as IDataObject;
	const { [TOKEN_PARAMETER]: token, [REFERENCE_PARAMETER]: reference } = query;
	connection.client.hideToken(token);
	// Only the task id is taken from a callback without a token.
	const isFree = !requireToken && reference === undefined;
	const isGood = (each: string) => isTokenValid(token, each, apiKey, reference);
	if (!isFree && !isProven(isGood, originalUrl, publicUrl)) {
		return answerWith(401, "The callback URL's token is missing or does not match");
	}
	const size = rawBody?.length ?? Number(headers['content-length'] ?? 0);
	if (size > MAX_BODY_BYTES) return answerWith(413, 'The callback is larger than 1 MiB');
	// n8n parses `application/json` only, and not `application/cloudevents+json` or JSON without a type.
	// And n8n's parser does not keep a large number exact.
	const { client } = connection;
	const idIn = (body: unknown) => client.taskIdIn(body, query[MODEL_PARAMETER]);
	const taskId = idIn(parsedJson(String(rawBody))) ?? idIn(context.getBodyData());
	if (taskId === undefined) return answerWith(400, 'The callback names no task id');
	return { connection, taskId, ...(typeof reference === 'string' && { reference }) };
}

/**
 * Whether the token is valid for the path of this request, or for the public path. The two differ behind a proxy that
 * removes a prefix, and for a test URL.
 */
function isProven(
	isGood: (path: string) => boolean,
	asked: string,
	publicUrl: () => string | undefined,
): boolean {
	const [path = ''] = asked.split('?', 1);
	if (isGood(path)) return true;
	const url = String(publicUrl());
	return isGood(URL.canParse(url) ? new URL(url).pathname : '');
}

/** How long the decision about a callback may take: the answer is due within 10 s (docs/reference.md, Limits). */
export const ANSWER_LIMIT_MS = 8_000;

/** What the trigger answers to a callback. */
export interface WebhookAnswer {
	status: number;
	body: Record<string, string | boolean>;
}

const TRY_AGAIN = 503;
const RETRY_AFTER_SECONDS = 5;

/** An answer that starts nothing. */
export const answerWith = (status: number, message: string): WebhookAnswer => ({
	status,
	body: { message },
});

/** The answer if nothing was decided: the sender is to deliver the callback again. */
export const tryAgain = (message: string): WebhookAnswer => answerWith(TRY_AGAIN, message);

/**
 * Has a callback decided, and answers it at once unless it starts or resumes something. If the decision fails or takes too
 * long, the answer asks for the callback again: n8n's own answer to an error would end the callback, and would resume a
 * waiting execution with one empty item.
 */
export const deciding =
	(decide: (context: IWebhookFunctions) => Promise<WebhookAnswer | IWebhookResponseData>) =>
	async (context: IWebhookFunctions): Promise<IWebhookResponseData> => {
		const result = await settled(withTimeLimit(decide(context), ANSWER_LIMIT_MS));
		if ('error' in result) {
			const why = messageOf(result.error);
			writeLog(context, 'warn', `a callback waits. ${why}`);
		}
		const undecided = tryAgain('The callback cannot be checked at the moment');
		const decided = ('value' in result && result.value) || undecided;
		if (!('status' in decided)) return decided;
		const response = context.getResponseObject();
		const setHeader = response.set ?? response.setHeader;
		if (decided.status === TRY_AGAIN) {
			setHeader.call(response, 'Retry-After', String(RETRY_AFTER_SECONDS));
		}
		response.status(decided.status).json(decided.body);
		return { noWebhookResponse: true };
	};
