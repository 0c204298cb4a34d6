import {
	type IDataObject,
	type IWebhookFunctions,
	type IWebhookResponseData,
	UserError,
} from 'n8n-workflow';

import { MIN_READ_INTERVAL_MS, MODEL_PARAMETER } from '../service/client';
import { connect, type Connection } from '../service/connect';
import { taskIdIn } from '../service/door';
import { isTokenValid, REFERENCE_PARAMETER, TOKEN_PARAMETER } from '../shared/addresses';
import { clock, ExpiringCache, settled, sleepUntil, withTimeLimit } from '../shared/clock';
import { messageOf, writeLog } from '../shared/itemError';
import { parsedJson } from '../shared/json';
import { taskJson } from '../report/taskItems';
import { ServiceError } from '../service/serviceError';
import { type FinishedTask, hasEnded } from '../service/taskRecord';
import { isEngineV2, modeOf } from '../n8n/internals';
import { keyInProcess } from './ledger';

/** So long a task that was let in is marked: copies of a callback come together, or within seconds. */
const MARKED_MS = 60_000;

/**
 * The tasks that this process has let in, by `keyInProcess`. Each copy of a callback would be an execution, and have to wait
 * for a place where n8n has a limit. If the execution dies that was let in, the check for callbacks makes up for it: the
 * ledger tells whether a task has started, and no mark does.
 */
const marks = new ExpiringCache<true>(MARKED_MS);

const EVENTS = ['SUCCESS', 'FAILURE'];

const DUPLICATE = { status: 200, body: { accepted: false, reason: 'duplicate' } };
const NOT_SELECTED = { status: 200, body: { accepted: false, reason: 'event not selected' } };

async function decide(context: IWebhookFunctions): Promise<WebhookAnswer | IWebhookResponseData> {
	const giveUpAt = clock.now() + ANSWER_LIMIT_MS;
	const checked = await verifyCallback(context);
	if ('status' in checked) return checked;
	// Engine v2 would start the workflow without asking the ledger.
	if (isEngineV2(context)) return tryAgain("The trigger does not work with n8n's engine v2");
	const events: unknown[] = [context.getNodeParameter('events', EVENTS)].flat();
	if (events.length === 0 || !events.every((event) => EVENTS.includes(String(event)))) {
		throw new UserError("The parameter 'Events' is not a list of events");
	}
	const { connection, taskId, reference } = checked;
	// A test run shows every event, also an event that was seen before.
	const isTest = modeOf(context) === 'manual';
	const key = keyInProcess(context, taskId);
	if (!isTest && marks.get(key)) return DUPLICATE;
	const task = await readFinished(connection, taskId, events, giveUpAt);
	if ('status' in task) return task;
	// Of those that came together one comes first to here.
	if (!isTest && marks.get(key)) return DUPLICATE;
	if (!isTest) marks.set(key, true);
	// n8n now stores an execution, answers, and begins the execution. If n8n is killed in between, nothing else names
	// the task, and the sender does not come again.
	if (!isTest) writeLog(context, 'info', `task ${taskId} is to start the workflow`);
	// The whole task: the execution does not know the service's names.
	const json: IDataObject = { ...taskJson(task, { reference }), task: { ...task } };
	return { workflowData: [[{ json }]], webhookResponse: { accepted: true, taskId } };
}

/** How much time the last read must have, milliseconds. */
const LAST_READ_MS = 2_000;

async function readFinished(
	{ client }: Connection,
	taskId: string,
	events: unknown[],
	giveUpAt: number,
): Promise<FinishedTask | WebhookAnswer> {
	for (;;) {
		// The look-up of the credential may have used a part of the time.
		const limitMs = Math.max(1, giveUpAt - clock.now());
		const read = await settled(withTimeLimit(client.readTask(taskId, limitMs), limitMs));
		if ('error' in read) {
			const { error } = read;
			const refusal = error instanceof ServiceError ? error : undefined;
			if (refusal?.isNoSuchTask) {
				return answerWith(404, 'The service knows no such task for this account');
			}
			// The check for callbacks shows the answer: only a person can mend the key.
			return tryAgain(
				refusal?.isOfKey
					? "The service refuses the API key of the trigger's credential"
					: 'The task could not be read from the service',
			);
		}
		const task = read.value;
		if (task === undefined) return tryAgain('The service did not answer in time');
		if (task.state === 'PENDING') return tryAgain('The task is not finished yet');
		if (!events.includes(task.state)) return NOT_SELECTED;
		// The links of a success may come a little later.
		const again = clock.now() + MIN_READ_INTERVAL_MS;
		if (hasEnded(task) || again > giveUpAt - LAST_READ_MS) return task;
		await sleepUntil(again, undefined);
	}
}

/** Larger bodies are refused. The record is read from the service anyway. */
const MAX_BODY_BYTES = 1024 * 1024;

/**
 * Makes the checks that need no request: the address and its token, the size, the task id.
 *
 * @returns the verified callback; or the answer that refuses it
 * @throws UserError if the credential cannot be used; the error of n8n's look-up
 * @see docs/service.openapi.yaml, section 6
 */
async function verifyCallback(
	context: IWebhookFunctions,
): Promise<WebhookAnswer | { connection: Connection; taskId: string; reference?: string }> {
	const requireToken = context.getNodeParameter('options.requireToken', true) !== false;
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
	const [path = ''] = originalUrl.split('?', 1);
	// Behind a proxy that removes a prefix, and for a test URL, the path that was given out is another one.
	const isPublic = () => isGood(pathOf(context.getNodeWebhookUrl('default')));
	if (!isFree && !isGood(path) && !isPublic()) {
		return answerWith(401, "The callback URL's token is missing or does not match");
	}
	const size = rawBody?.length ?? Number(headers['content-length'] ?? 0);
	if (size > MAX_BODY_BYTES) return answerWith(413, 'The callback is larger than 1 MiB');
	// n8n parses `application/json` only, and not `application/cloudevents+json` or JSON without a type.
	// And n8n's parser does not keep a large number exact.
	const idIn = (body: unknown) => taskIdIn(body, connection.service, query[MODEL_PARAMETER]);
	const taskId = idIn(parsedJson(String(rawBody))) ?? idIn(context.getBodyData());
	if (taskId === undefined) return answerWith(400, 'The callback names no task id');
	return { connection, taskId, ...(typeof reference === 'string' && { reference }) };
}

const pathOf = (url = ''): string => (URL.canParse(url) ? new URL(url).pathname : '');

/** How long the decision about a callback may take: the answer is due within 10 s (docs/reference.md, Limits). */
const ANSWER_LIMIT_MS = 8_000;

interface WebhookAnswer {
	status: number;
	body: Record<string, string | boolean>;
}

const TRY_AGAIN = 503;
const RETRY_AFTER_SECONDS = 5;

/** An answer that starts nothing. */
const answerWith = (status: number, message: string): WebhookAnswer => ({
	status,
	body: { message },
});

/** The answer if nothing was decided: the sender is to deliver the callback again. */
const tryAgain = (message: string): WebhookAnswer => answerWith(TRY_AGAIN, message);

/**
 * Admits a callback, or answers it. The cheap checks come first, and a callback without a valid token causes no
 * request to the service. Only the task id is taken from the body: the record is read from the service. If the decision
 * fails or takes too long, the answer asks for the callback again: n8n's own answer to an error would end the callback.
 *
 * @returns an item with the task's record, with which n8n starts the workflow; nothing if the callback was answered
 * @see docs/service.openapi.yaml, section 6 and its handler rules
 */
export async function handleTriggerWebhook(
	context: IWebhookFunctions,
): Promise<IWebhookResponseData> {
	const result = await settled(withTimeLimit(decide(context), ANSWER_LIMIT_MS));
	if ('error' in result) {
		writeLog(context, 'warn', `a callback waits. ${messageOf(result.error)}`);
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
}
