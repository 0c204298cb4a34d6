import type { IWebhookFunctions } from 'n8n-workflow';

import { type Connection, connectWith } from '../service/connect';
import { isRecord, parsedJson } from '../shared/json';
import { findTaskId } from '../service/taskRecord';
import { settled } from '../shared/concurrency';
import { systemClock } from '../shared/clock';
import { REFERENCE_PARAMETER } from './callbackUrl';
import { isTokenValid, TOKEN_PARAMETER } from './callbackToken';
import { type WebhookAnswer, tryAgain } from './webhookAnswer';
import { CallbackCredentials } from './credentialCache';
import { checkStartAgain, START_AGAIN_HEADER } from './startAgain';

/** Larger bodies are refused: the record is read from the service anyway. */
const MAX_BODY_BYTES = 1024 * 1024;

const credentials = new CallbackCredentials(systemClock);

/** A callback that may be believed. */
export interface VerifiedCallback {
	connection: Connection;
	/** The only thing that is believed of the body. */
	taskId: string;
	/** What the address carries under its token. */
	reference?: string;
	/** Who asks, with a signature of its own, to start for the task although it has started before. */
	startAgain?: string;
}

/**
 * The checks that need no request: the address and its token, size, task id.
 *
 * @param requireToken whether the URL must carry a valid token
 * @param publicUrl the address that was given out; asked for where the path of this request does not do, since it may
 *   take n8n an evaluation
 * @returns what may be believed of the callback; or the answer that refuses it
 * @see specification, section 6
 */
export async function verifyCallback(
	context: IWebhookFunctions,
	requireToken: boolean,
	publicUrl: () => string | undefined,
): Promise<WebhookAnswer | VerifiedCallback> {
	const checked = await settled(check(context, requireToken, publicUrl));
	if ('value' in checked) return checked.value;
	warn(context, 'a callback could not be checked', checked.error);
	return tryAgain('The credential cannot be used at the moment');
}

/** Says in n8n's log why a callback could not be decided. */
export function warn(context: IWebhookFunctions, what: string, error: unknown): void {
	const why = error instanceof Error ? error.message : '';
	context.logger.warn(`${context.getNode().name}: ${what}. ${why}`);
}

async function check(
	context: IWebhookFunctions,
	requireToken: boolean,
	publicUrl: () => string | undefined,
): Promise<WebhookAnswer | VerifiedCallback> {
	const body = checkBody(context);
	const prove = (connection: Connection) =>
		proveRequest(context, connection, requireToken, () => pathsOf(context, publicUrl), body);
	const known = connectWith(context, await credentials.get(context));
	let proof = prove(known);
	if ('status' in proof) {
		// Once more with the present credential before it is refused: the key may have been changed.
		const present = connectWith(context, await credentials.get(context, true));
		if (present.apiKey !== known.apiKey) proof = prove(present);
	}
	return 'status' in proof || !('status' in body) ? proof : body;
}

/** The paths for which a token is good: that of this request, and the public one, of which a proxy may cut a part off. */
function* pathsOf(
	context: IWebhookFunctions,
	publicUrl: () => string | undefined,
): Iterable<string> {
	yield context.getRequestObject().originalUrl.split('?', 1)[0] ?? '';
	const url = publicUrl();
	if (url !== undefined && URL.canParse(url)) yield new URL(url).pathname;
}

/** Checks what the request is signed with. */
function proveRequest(
	context: IWebhookFunctions,
	connection: Connection,
	requireToken: boolean,
	paths: () => Iterable<string>,
	body: WebhookAnswer | { taskId: string },
): WebhookAnswer | VerifiedCallback {
	const { apiKey } = connection;
	const query: unknown = context.getQueryData();
	const { [TOKEN_PARAMETER]: token, [REFERENCE_PARAMETER]: reference } = isRecord(query)
		? query
		: {};
	// A reference is believed under a token alone.
	const isFree = !requireToken && reference === undefined;
	if (!isFree && !isTokenValid(token, paths(), apiKey, reference)) {
		return refuse("The callback URL's token is missing or does not match");
	}
	const taskId = 'taskId' in body ? body.taskId : '';
	const checked = {
		connection,
		taskId,
		...(typeof reference === 'string' && { reference }),
	};
	const { [START_AGAIN_HEADER]: header } = context.getRequestObject().headers;
	if (header === undefined) return checked;
	for (const path of paths()) {
		const startAgain = checkStartAgain(header, { path, taskId, apiKey });
		if (startAgain !== undefined) return { ...checked, startAgain };
	}
	return refuse('The request to start again is not signed with the same API key, or came too late');
}

const refuse = (message: string): WebhookAnswer => ({ status: 401, body: { message } });

function checkBody(context: IWebhookFunctions): WebhookAnswer | { taskId: string } {
	const request = context.getRequestObject();
	const bytes = request.rawBody?.length ?? Number(request.headers['content-length'] ?? 0);
	if (bytes > MAX_BODY_BYTES) {
		return { status: 413, body: { message: 'The callback is larger than 1 MiB' } };
	}
	// n8n parses JSON of the plain type alone, and not application/cloudevents+json or JSON without a type.
	const taskId =
		findTaskId(context.getBodyData()) ?? findTaskId(parsedJson(String(request.rawBody)));
	if (taskId === undefined) {
		return { status: 400, body: { message: 'The callback names no task id' } };
	}
	return { taskId };
}
