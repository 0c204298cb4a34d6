import {
	type IDataObject,
	type IWebhookFunctions,
	type IWebhookResponseData,
	UserError,
} from 'n8n-workflow';

import { taskJson } from '../report/taskItems';
import { MIN_READ_INTERVAL_MS } from '../service/client';
import type { Connection } from '../service/connect';
import { ServiceError } from '../service/serviceError';
import { type FinishedTask, hasEnded } from '../service/taskRecord';
import { clock, ExpiringCache, sleepUntil, withTimeLimit } from '../shared/clock';
import { writeLog } from '../shared/log';
import { isEngineV2, modeOf } from '../n8n/internals';
import { settled } from '../shared/promises';
import { keyInProcess } from './ledger';
import {
	answerWith,
	ANSWER_LIMIT_MS,
	deciding,
	tryAgain,
	verifyCallback,
	type WebhookAnswer,
} from './verifyCallback';

/** So long a task that was let in is marked: copies of a callback come together, or within seconds. */
const MARKED_MS = 60_000;

/**
 * The tasks that this process has let in, by `keyInProcess`. Each copy of a callback would be an execution, and have to wait
 * for a place where n8n has a limit. If the execution dies that was let in, the check for callbacks makes up for it: the
 * ledger tells whether a task has started, and no mark does.
 */
const marks = new ExpiringCache<true>(MARKED_MS);

const EVENTS = ['SUCCESS', 'FAILURE'];

const notAccepted = (reason: string): WebhookAnswer => ({
	status: 200,
	body: { accepted: false, reason },
});
const DUPLICATE = notAccepted('duplicate');
const NOT_SELECTED = notAccepted('event not selected');

/**
 * Admits a callback, or answers it. The cheap checks come first, and a callback without a valid token causes no
 * request to the service. Only the task id is taken from the body: the record is read from the service.
 *
 * @returns an item with the task's record, with which n8n starts the workflow; nothing if the callback was answered
 * @see docs/service.openapi.yaml, section 6 and its handler rules
 */
export const handleTriggerWebhook = deciding(decide);

async function decide(context: IWebhookFunctions): Promise<WebhookAnswer | IWebhookResponseData> {
	const giveUpAt = clock.now() + ANSWER_LIMIT_MS;
	const requireToken = context.getNodeParameter('options.requireToken', true) !== false;
	const checked = await verifyCallback(context, requireToken, () =>
		context.getNodeWebhookUrl('default'),
	);
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

/** Before another read of a success without a link, and how much time the last read must have; milliseconds. */
const LINKLESS_PAUSE_MS = MIN_READ_INTERVAL_MS;
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
		const again = clock.now() + LINKLESS_PAUSE_MS;
		if (hasEnded(task) || again > giveUpAt - LAST_READ_MS) return task;
		await sleepUntil(again, undefined);
	}
}
