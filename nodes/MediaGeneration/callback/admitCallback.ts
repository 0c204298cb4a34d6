import { randomUUID } from 'crypto';
import { type IWebhookFunctions, type IWebhookResponseData, UserError } from 'n8n-workflow';

import { taskJson } from '../report/items';
import type { Connection } from '../service/connect';
import { ServiceError } from '../service/serviceError';
import type { FinishedTask } from '../service/taskRecord';
import { settled } from '../shared/concurrency';
import { type Clock, systemClock, withTimeLimit } from '../shared/clock';
import { isEngineV2 } from '../shared/n8nInternals';
import { accountOf, credentialIdOf } from './startOnce';
import { type WebhookAnswer, respond, tryAgain } from './webhookAnswer';
import { type VerifiedCallback, verifyCallback, warn } from './verifyCallback';
import { RecentTasks, settleByAnswer } from './recentCallbacks';

/** For the read of the task, and for waiting on a callback of the same task: the answer must be out in 10 s. */
const READ_LIMIT_MS = 8_000;

const recent = new RecentTasks();

const NOT_SELECTED: WebhookAnswer = {
	status: 200,
	body: { accepted: false, reason: 'event not selected' },
};

/**
 * Admits a callback, or answers it. Cheap checks come first, and nothing is asked of the service for a callback
 * without a valid token. The body is a hint: only the task id is read from it, the record is read from the service.
 *
 * @returns an item with the task's record for n8n to start the workflow with, or nothing where the callback was
 *   answered
 * @see specification, section 6 and its handler rules
 */
export async function admitCallback(
	context: IWebhookFunctions,
	clock: Clock = systemClock,
): Promise<IWebhookResponseData> {
	const required = await settled(
		async () => context.getNodeParameter('options.requireToken', true) !== false,
	);
	if ('error' in required) return respond(context, unreadable(context, required.error));
	const checked = await verifyCallback(context, required.value, () =>
		context.getNodeWebhookUrl('default'),
	);
	if ('status' in checked) return respond(context, checked);
	// It would start the workflow without asking the ledger.
	if (isEngineV2(context)) {
		return respond(context, tryAgain("The trigger does not work with n8n's engine v2"));
	}
	const selected = await settled(async () => selectedEvents(context));
	if ('error' in selected) return respond(context, unreadable(context, selected.error));

	const { connection, taskId, startAgain } = checked;
	const account = accountOf(connection.baseUrl, credentialIdOf(context.getNode()));
	const giveUpAt = clock.now() + READ_LIMIT_MS;
	// What is left of the time where it was spent on waiting for another callback.
	const read = async () =>
		await readFinished(
			connection,
			taskId,
			selected.value,
			Math.max(1, giveUpAt - clock.now()),
			clock,
		);
	// A test run shows every event, also one that was seen before.
	if (context.getMode() === 'manual') return admit(context, await read(), { ...checked, account });

	const trigger = `${context.getWorkflow().id}/${context.getNode().id}`;
	// Who asks to start again is held back by nobody but himself.
	const key = JSON.stringify([trigger, account, taskId, startAgain]);
	for (let earlier = recent.earlier(key); earlier; earlier = recent.earlier(key)) {
		const outcome = await withTimeLimit(earlier, giveUpAt - clock.now(), clock);
		const answer = outcome ?? tryAgain('A callback of this task is being worked on');
		if (answer !== 'notStored') return respond(context, answer);
	}
	const response = context.getResponseObject();
	const settle = recent.begin(key);
	// From here to the settling nothing may throw: whoever comes with this task would wait for it for ever.
	const result = await read();
	if ('status' in result) {
		settle(result);
		return respond(context, result);
	}
	settleByAnswer(settle, response);
	return admit(context, result, { ...checked, account });
}

/** To come again is right: nothing was recorded, and the task is paid for. */
function unreadable(context: IWebhookFunctions, error: unknown): WebhookAnswer {
	warn(context, "a callback waits until the trigger's parameters can be read", error);
	return tryAgain("The trigger's parameters cannot be read");
}

function selectedEvents(context: IWebhookFunctions): string[] {
	const events: unknown = context.getNodeParameter('events', ['SUCCESS', 'FAILURE']);
	if (typeof events === 'string') return [events];
	if (!Array.isArray(events)) throw new UserError("The parameter 'Events' is not a list");
	return events.map(String);
}

async function readFinished(
	{ client }: Connection,
	taskId: string,
	events: string[],
	limitMs: number,
	clock: Clock,
): Promise<FinishedTask | WebhookAnswer> {
	const read = await settled(withTimeLimit(client.readTask(taskId, limitMs), limitMs, clock));
	if ('error' in read) return explainRead(read.error);
	const task = read.value;
	if (task === undefined) return tryAgain('The service did not answer in time');
	if (task.state === 'PENDING') return tryAgain('The task is not finished yet');
	return events.includes(task.state) ? task : NOT_SELECTED;
}

/** Why the task of a callback could not be read. */
function explainRead(error: unknown): WebhookAnswer {
	if (error instanceof ServiceError && error.kind === 'notFound' && !error.isForeign) {
		return { status: 404, body: { message: 'The service knows no such task for this account' } };
	}
	return tryAgain('The task could not be read from the service');
}

function admit(
	context: IWebhookFunctions,
	result: FinishedTask | WebhookAnswer,
	{ account, reference, startAgain }: VerifiedCallback & { account: string },
): IWebhookResponseData {
	if ('status' in result) return respond(context, result);
	const { taskId } = result;
	// n8n stores an execution now, answers, and begins the execution. Where it is killed in between, nothing else names
	// the task, and the sender that was answered does not come again.
	if (context.getMode() !== 'manual') {
		context.logger.info(`${context.getNode().name}: task ${taskId} is to start the workflow`);
	}
	const json = {
		...taskJson(result, reference === undefined ? {} : { reference }),
		// n8n stores both with the execution, so that the ledger knows it again however often it is tried.
		callbackId: randomUUID(),
		account,
		...(startAgain !== undefined && { startAgain }),
	};
	return {
		workflowData: [[{ json }]],
		webhookResponse: { accepted: true, taskId },
	};
}
