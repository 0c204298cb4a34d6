import type { IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';

import { taskJson } from '../report/items';
import type { Connection } from '../service/connect';
import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import { type Clock, systemClock } from '../shared/clock';
import { within } from '../shared/within';
import { type Answer, answer, DUPLICATE, tryAgain } from './answer';
import { checkCallback, explainRead } from './admission';
import { RecentTasks } from './recentCallbacks';

/** For the read of the task, and for waiting on a callback of the same task: the answer must be out in 10 s. */
const READ_LIMIT_MS = 8_000;

/**
 * For n8n to store an execution, where callbacks come faster than it can take them. Whoever waits no longer than it
 * takes n8n to answer the first callback waits for n8n, and not for the service.
 */
const STORE_LIMIT_MS = 30_000;

const recent = new RecentTasks();

const NOT_SELECTED: Answer = {
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
	const requireToken = context.getNodeParameter('options.requireToken', true) !== false;
	const checked = await checkCallback(context, requireToken, () => pathsOf(context));
	if ('status' in checked) return answer(context, checked);

	const { connection, taskId } = checked;
	const giveUpAt = clock.now() + READ_LIMIT_MS;
	// What is left of the time where it was spent on waiting for another callback.
	const read = async () =>
		await readFinished(
			connection,
			taskId,
			selectedEvents(context),
			Math.max(1, giveUpAt - clock.now()),
			clock,
		);
	// A test run shows every event, also one that was seen before.
	if (context.getMode() === 'manual') return admit(context, await read());

	const key = `${context.getWorkflow().id}/${context.getNode().id}/${taskId}`;
	for (;;) {
		if (recent.has(key)) return answer(context, DUPLICATE);
		const earlier = recent.earlier(key);
		if (earlier === undefined) break;
		let outcome = await within(earlier, giveUpAt - clock.now(), clock);
		if (outcome === undefined && recent.isBeingStored(key)) {
			outcome = await within(earlier, STORE_LIMIT_MS, clock);
		}
		if (outcome === undefined) {
			return answer(context, tryAgain('A callback of this task is being worked on'));
		}
		if (typeof outcome === 'object') return answer(context, outcome);
	}
	const settle = recent.begin(key);
	const result = await read();
	if ('status' in result) {
		settle(result);
		return answer(context, result);
	}
	recent.handOver(key);
	recent.settleByAnswer(settle, context.getResponseObject());
	return admit(context, result);
}

/** The paths for which a token is good: the one of this very request, and the public one. */
function* pathsOf(context: IWebhookFunctions): Iterable<string> {
	yield context.getRequestObject().originalUrl.split('?', 1)[0] ?? '';
	const url = context.getNodeWebhookUrl('default');
	if (url !== undefined && URL.canParse(url)) yield new URL(url).pathname;
}

function selectedEvents(context: IWebhookFunctions): string[] {
	const events = context.getNodeParameter('events', ['SUCCESS', 'FAILURE']);
	return Array.isArray(events) ? events.map(String) : [];
}

async function readFinished(
	{ client }: Connection,
	taskId: string,
	events: string[],
	limitMs: number,
	clock: Clock,
): Promise<FinishedTask | Answer> {
	let task: TaskRecord | undefined;
	try {
		task = await within(client.readTask(taskId, limitMs), limitMs, clock);
	} catch (error) {
		return explainRead(error);
	}
	if (task === undefined) return tryAgain('The service did not answer in time');
	if (task.state === 'PENDING') return tryAgain('The task is not finished yet');
	return events.includes(task.state) ? task : NOT_SELECTED;
}

function admit(context: IWebhookFunctions, result: FinishedTask | Answer): IWebhookResponseData {
	if ('status' in result) return answer(context, result);
	return {
		workflowData: [[{ json: taskJson(result) }]],
		webhookResponse: { accepted: true, taskId: result.taskId },
	};
}
