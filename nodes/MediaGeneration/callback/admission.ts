import type { IWebhookFunctions } from 'n8n-workflow';

import { type Connection, connectWith } from '../service/connect';
import { isRecord } from '../shared/json';
import { ServiceError } from '../service/serviceError';
import { findTaskId } from '../service/taskRecord';
import { attempt } from '../shared/attempt';
import { systemClock } from '../shared/clock';
import { isTokenValid, TOKEN_PARAMETER } from './address';
import { type Answer, tryAgain } from './answer';
import { CallbackCredentials } from './credentialCache';

/** Larger bodies are refused: the record is read from the service anyway. */
export const MAX_BODY_BYTES = 1024 * 1024;

const credentials = new CallbackCredentials(systemClock);

/**
 * The checks that need no request, cheapest first: token, size, task id.
 *
 * @param requireToken whether the URL must carry a valid token
 * @param paths the paths for which a token is good
 * @returns the task id, the only thing that is believed of a body, and the service; or the answer that refuses the
 *   callback
 * @see specification, section 6
 */
export async function checkCallback(
	context: IWebhookFunctions,
	requireToken: boolean,
	paths: () => Iterable<string>,
): Promise<Answer | { connection: Connection; taskId: string }> {
	const admission = await attempt(async () => await checkToken(context, requireToken, paths));
	if ('error' in admission) {
		const { error } = admission;
		context.logger.warn(
			`${context.getNode().name}: a callback could not be checked. ${error instanceof Error ? error.message : ''}`,
		);
		return tryAgain('The credential cannot be used at the moment');
	}
	const connection = admission.value;
	if ('status' in connection) return connection;
	const body = checkBody(context);
	return 'status' in body ? body : { connection, taskId: body.taskId };
}

/** Checks the token, once more with the present credential before it is refused: the key may have been changed. */
async function checkToken(
	context: IWebhookFunctions,
	requireToken: boolean,
	paths: () => Iterable<string>,
): Promise<Connection | Answer> {
	const known = connectWith(context, await credentials.get(context));
	if (!requireToken) return known;
	const query = context.getQueryData();
	const token = isRecord(query) ? query[TOKEN_PARAMETER] : undefined;
	if (isTokenValid(token, paths(), known.apiKey)) return known;
	const present = connectWith(context, await credentials.refresh(context));
	const isChanged = present.apiKey !== known.apiKey;
	if (isChanged && isTokenValid(token, paths(), present.apiKey)) return present;
	return {
		status: 401,
		body: { message: "The callback URL's token is missing or does not match" },
	};
}

function checkBody(context: IWebhookFunctions): Answer | { taskId: string } {
	const request = context.getRequestObject();
	const bytes = request.rawBody?.length ?? Number(request.headers['content-length'] ?? 0);
	if (bytes > MAX_BODY_BYTES) {
		return { status: 413, body: { message: 'The callback is larger than 1 MiB' } };
	}
	const taskId = findTaskId(context.getBodyData());
	if (taskId === undefined) {
		return { status: 400, body: { message: 'The callback names no task id' } };
	}
	return { taskId };
}

/** Why the task of a callback could not be read. */
export function explainRead(error: unknown): Answer {
	if (error instanceof ServiceError && error.kind === 'notFound') {
		return {
			status: 404,
			body: { message: 'The service knows no such task for this account' },
		};
	}
	return tryAgain('The task could not be read from the service');
}
