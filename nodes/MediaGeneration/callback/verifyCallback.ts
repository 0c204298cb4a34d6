import type { IDataObject, IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';

import { findTaskId } from '../service/taskRecord';
import { connect, type Connection, type Credential, CREDENTIAL_TYPE } from '../service/connect';
import { ExpiringCache, systemClock } from '../shared/clock';
import { messageOf } from '../shared/itemError';
import { parsedJson } from '../shared/json';
import { settled } from '../shared/promises';
import {
	checkStartAgain,
	isTokenValid,
	REFERENCE_PARAMETER,
	START_AGAIN_HEADER,
	TOKEN_PARAMETER,
} from './callbackToken';
import { credentialIdOf } from './startOnce';

/** Larger bodies are refused: the record is read from the service anyway. */
const MAX_BODY_BYTES = 1024 * 1024;

/** How long a changed base URL may go unnoticed. A changed key is noticed by the first token that is made with it. */
const MAX_AGE_MS = 60_000;

/** Between two look-ups because of wrong tokens: whoever sends wrong tokens must not be able to keep n8n busy. */
const MIN_REFRESH_MS = 2_000;

const MAX_REMEMBERED = 1_000;

/**
 * The credentials of the nodes of this process that callbacks come to. A look-up costs n8n more CPU time than all else
 * that a callback needs, so it is not repeated for each one. Promises, so that callbacks that come together share one.
 */
const credentials = new ExpiringCache<Promise<Credential>>(systemClock, MAX_AGE_MS, MAX_REMEMBERED);

/** The look-ups because of wrong tokens. */
const refreshes = new ExpiringCache<true>(systemClock, MIN_REFRESH_MS, MAX_REMEMBERED);

/** A callback that may be believed: of the body nothing but the task id, and what its address carries under its token. */
interface VerifiedCallback {
	connection: Connection;
	taskId: string;
	reference?: string;
	/** Who asks, with a signature of its own, to start for the task although it has started before. */
	startAgain?: string;
}

/**
 * The checks that need no request: the address and its token, size, task id.
 *
 * @param publicUrl the address that was given out; asked for where the path of this request does not do, since it may
 *   take n8n an evaluation
 * @param isInDoubt whether the credential that this process remembers has refused the callback
 * @returns what may be believed of the callback; or the answer that refuses it
 * @throws UserError where the credential cannot be used; whatever n8n's look-up throws
 * @see specification, section 6
 */
export async function verifyCallback(
	context: IWebhookFunctions,
	requireToken: boolean,
	publicUrl: () => string | undefined,
	isInDoubt = false,
): Promise<WebhookAnswer | VerifiedCallback> {
	const connection = await connect(context, await credentialOf(context, isInDoubt));
	const refuse = async (message: string): Promise<WebhookAnswer | VerifiedCallback> => {
		// The key may have been changed.
		if (!isInDoubt) return await verifyCallback(context, requireToken, publicUrl, true);
		return { status: 401, body: { message } };
	};
	const { apiKey } = connection;
	const { headers, rawBody, originalUrl } = context.getRequestObject();
	const { [START_AGAIN_HEADER]: header } = headers;
	const query = context.getQueryData() as IDataObject;
	const { [TOKEN_PARAMETER]: token, [REFERENCE_PARAMETER]: reference } = query;
	// What is not the task id is believed under a token alone.
	const isFree = !requireToken && reference === undefined && header === undefined;
	const isGood = (each: string) => isTokenValid(token, each, apiKey, reference);
	const path = isFree ? '' : provenPath(isGood, originalUrl, publicUrl);
	if (path === undefined)
		return await refuse("The callback URL's token is missing or does not match");
	if ((rawBody?.length ?? Number(headers['content-length'] ?? 0)) > MAX_BODY_BYTES) {
		return { status: 413, body: { message: 'The callback is larger than 1 MiB' } };
	}
	// n8n parses JSON of the plain type alone, and not application/cloudevents+json or JSON without a type.
	const taskId = findTaskId(context.getBodyData()) ?? findTaskId(parsedJson(String(rawBody)));
	if (taskId === undefined) {
		return { status: 400, body: { message: 'The callback names no task id' } };
	}
	const checked = { connection, taskId, ...(typeof reference === 'string' && { reference }) };
	if (header === undefined) return checked;
	const startAgain = checkStartAgain(header, { path, taskId, apiKey });
	if (startAgain !== undefined) return { ...checked, startAgain };
	return await refuse(
		'The request to start again is not signed with the same API key, or came too late',
	);
}

async function credentialOf(context: IWebhookFunctions, isInDoubt: boolean): Promise<Credential> {
	// By node as well, so that no workflow gets by with what another one was allowed to use.
	const node = context.getNode();
	const key = `${context.getWorkflow().id}/${node.id}/${credentialIdOf(node)}`;
	const isRefresh = isInDoubt && !refreshes.get(key);
	const known = isRefresh ? undefined : credentials.get(key);
	if (known) return await known;
	if (isRefresh) refreshes.set(key, true);
	const credential = context.getCredentials(CREDENTIAL_TYPE);
	credentials.set(key, credential);
	void credential.catch(() => credentials.delete(key));
	return await credential;
}

/**
 * The path that the token is good for: that of this request, or the public one (they differ behind a proxy that cuts a
 * part off, and for a test URL).
 */
function provenPath(
	isGood: (path: string) => boolean,
	asked: string,
	publicUrl: () => string | undefined,
): string | undefined {
	const [path = ''] = asked.split('?', 1);
	if (isGood(path)) return path;
	const url = String(publicUrl());
	const publicPath = URL.canParse(url) ? new URL(url).pathname : '';
	return isGood(publicPath) ? publicPath : undefined;
}

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
