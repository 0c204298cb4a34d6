import { type IWebhookFunctions, type IWebhookResponseData, UserError } from 'n8n-workflow';

import { taskJson } from '../report/taskItems';
import { MIN_READ_INTERVAL_MS } from '../service/client';
import type { Connection } from '../service/connect';
import { ServiceError } from '../service/serviceError';
import { type FinishedTask, hasEnded } from '../service/taskRecord';
import { clock, ExpiringCache, sleepUntil, withTimeLimit } from '../shared/clock';
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

/**
 * Senders repeat a callback within minutes. A longer time would do harm: n8n may lose an execution that it has
 * stored, and then another callback must be able to start the workflow.
 */
const MAX_AGE_MS = 5 * 60_000;

/** The answer to other callbacks of the same task; or n8n did not store the execution. */
type Outcome = WebhookAnswer | 'notStored';

/**
 * What became of the latest callbacks of this process. If several callbacks of a task come together, the first one
 * reads the task, and the others wait for its outcome. This only saves work: the ledger decides.
 */
const recent = new ExpiringCache<Promise<Outcome>>(MAX_AGE_MS);

const EVENTS = ['SUCCESS', 'FAILURE'];

const notAccepted = (reason: string): WebhookAnswer => ({
	status: 200,
	body: { accepted: false, reason },
});
const DUPLICATE = notAccepted('duplicate');
const NOT_SELECTED = notAccepted('event not selected');

/** What the execution that a callback has begun tells the gate. The keys are those of `keyInProcess`. */
export const recentStarts = {
	/** Lets the next callback of a task in: the execution has failed before it started the workflow. */
	forget: (key: string): void => void recent.delete(key),

	/** The execution still downloads the results: callbacks remain duplicates for a while. */
	keep: (key: string): void => recent.set(key, Promise.resolve(DUPLICATE)),
};

/**
 * Admits a callback, or answers it. The cheap checks come first, and a callback without a valid token causes no
 * request to the service. Only the task id is taken from the body: the record is read from the service.
 *
 * @returns an item with the task's record, with which n8n starts the workflow; nothing if the callback was answered
 * @see docs/service.md, section 6 and its handler rules
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
	const node = context.getNode();
	const { baseUrl } = connection;
	// A test run shows every event, also an event that was seen before.
	const isTest = modeOf(context) === 'manual';
	const key = keyInProcess(context, { baseUrl, taskId });
	for (let earlier = recent.get(key); earlier && !isTest; earlier = recent.get(key)) {
		const outcome = await earlier;
		if (outcome !== 'notStored') return outcome;
	}
	const reading = readFinished(connection, taskId, events, giveUpAt);
	if (!isTest) recent.set(key, outcomeOf(key, reading, context.getResponseObject()));
	const task = await reading;
	if ('status' in task) return task;
	// n8n now stores an execution, answers, and begins the execution. If n8n is killed in between, nothing else names
	// the task, and the sender does not come again.
	if (!isTest) context.logger.info(`${node.name}: task ${taskId} is to start the workflow`);
	const json = {
		...taskJson(task, { reference }),
		// The whole record: the execution parses it again, and only here are results that are data URIs complete.
		record: task.record,
		// For the ledger, and for results whose links have no host.
		baseUrl,
	};
	return { workflowData: [[{ json }]], webhookResponse: { accepted: true, taskId } };
}

/** Before another read of a success without a link, and how much time the last read must have; milliseconds. */
const LINKLESS_PAUSE_MS = MIN_READ_INTERVAL_MS;
const LAST_READ_MS = 2_000;

/** Never rejects: other callbacks of the task wait for it. */
async function readFinished(
	{ client }: Connection,
	taskId: string,
	events: unknown[],
	giveUpAt: number,
): Promise<FinishedTask | WebhookAnswer> {
	for (;;) {
		// The look-up of the credential, or the wait for another callback, may have used a part of the time.
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

/** How often to look whether n8n has answered a sender that has hung up, milliseconds. */
const LOOK_MS = 1_000;

/** A sender that hangs up does not keep n8n from storing the execution, nor from answering then. */
async function untilAnswered(
	response: ReturnType<IWebhookFunctions['getResponseObject']>,
): Promise<void> {
	// The response of a sender that has hung up never closes again.
	if (!response.destroyed) await new Promise((resolve) => response.once('close', resolve));
	const giveUpAt = clock.now() + MAX_AGE_MS;
	while (!response.writableEnded && clock.now() < giveUpAt) await clock.sleep(LOOK_MS, undefined);
}

/** n8n answers an admitted callback when the execution is stored. From then on other callbacks are duplicates. */
async function outcomeOf(
	key: string,
	reading: Promise<FinishedTask | WebhookAnswer>,
	response: ReturnType<IWebhookFunctions['getResponseObject']>,
): Promise<Outcome> {
	const task = await reading;
	if (!('status' in task)) {
		// Not each engine shows how it answers.
		if (typeof response?.once !== 'function') return DUPLICATE;
		await untilAnswered(response);
		if (response.writableEnded && response.statusCode < 300) return DUPLICATE;
	}
	recent.delete(key);
	return 'status' in task ? task : 'notStored';
}
