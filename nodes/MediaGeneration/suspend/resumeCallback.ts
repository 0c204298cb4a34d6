import type { INodeExecutionData, IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';

import { type WebhookAnswer, respond, tryAgain } from '../callback/webhookAnswer';
import { verifyCallback, warn } from '../callback/verifyCallback';
import { callbackAddress } from '../callback/callbackUrl';
import { callN8n } from '../callback/callN8n';
import { settled } from '../shared/concurrency';
import { type Clock, systemClock, withTimeLimit } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { Memory } from '../shared/memory';
import { RunProgress } from './runProgress';
import { wokenItem } from './checkState';
import { checkUrl, pendingTaskId, resumeUrl } from './suspension';

/** The answer must be out in 10 s. */
const LIMIT_MS = 8_000;

/** For how long after its last callback a run is remembered, and how many runs: each may have thousands of tasks. */
const MAX_AGE_MS = 3_600_000;
const MAX_RUNS = 100;

/** The suspended runs that this process has had callbacks for, by execution and node. */
type Runs = Memory<RunProgress>;

export const newRuns = (clock: Clock): Runs => new Memory(clock, MAX_AGE_MS, MAX_RUNS);

const WAITING: WebhookAnswer = { status: 200, body: { accepted: true, resumed: false } };

const NOT_WAITING: WebhookAnswer = {
	status: 404,
	body: { message: 'The execution does not wait for this task' },
};

const suspendedRuns = newRuns(systemClock);

/**
 * Decides about a callback that came to a suspended execution. Only the end of the sub-execution that checks its tasks
 * resumes the execution: when the last callback has come, the sub-execution is made to check at once.
 *
 * @returns nothing where the callback was answered; where it came to the sub-execution itself, the item it checks with
 * @see specification, section 6 and its handler rules
 */
export async function admitResume(
	context: IWebhookFunctions,
	runs = suspendedRuns,
	clock: Clock = systemClock,
): Promise<IWebhookResponseData> {
	const decided = await settled(decide(context, runs, clock));
	if ('value' in decided) return decided.value;
	// Where `webhook` throws, n8n resumes the execution with one empty item, and drops all that the nodes before put out.
	warn(context, 'a callback waits', decided.error);
	return respond(context, tryAgain('n8n could not tell what the execution waits for'));
}

async function decide(
	context: IWebhookFunctions,
	runs: Runs,
	clock: Clock,
): Promise<IWebhookResponseData> {
	const checked = await verifyCallback(context, true, () => resumeUrl(context));
	if ('status' in checked) return respond(context, checked);
	const { taskId, connection } = checked;
	const read = async (id: string) => await connection.client.readTask(id, LIMIT_MS);
	const place = `${context.getExecutionId()}/${context.getNode().id}`;
	const known = runs.get(place);
	const run = known?.taskIds.includes(taskId) ? known : firstCallback(context, taskId, clock);
	if ('workflowData' in run) return run;
	if ('status' in run) return respond(context, run);
	runs.set(place, run);
	const isComplete = await settled(withTimeLimit(run.isComplete(taskId, read), LIMIT_MS, clock));
	if ('error' in isComplete) return respond(context, tryAgain('A task could not be read'));
	if (isComplete.value === undefined) {
		return respond(context, tryAgain('The service did not answer in time'));
	}
	if (!isComplete.value || run.checkUrl === '') return respond(context, WAITING);
	const isWoken = await wakeCheck(context, run.checkUrl, taskId, connection.apiKey);
	if (isWoken) runs.delete(place);
	else {
		context.logger.info(
			`${context.getNode().name}: n8n could not be told at its own address that the tasks are finished; the execution goes on at the next check`,
		);
	}
	return respond(context, { status: 200, body: { accepted: true, resumed: isWoken } });
}

/**
 * What is to be done with the first callback of a run that this process gets. To ask n8n for what it has stored takes
 * long. In a loop there is one run after the other at the same place.
 *
 * @returns the run; or the answer; or what n8n is to go on with
 */
function firstCallback(
	context: IWebhookFunctions,
	taskId: string,
	clock: Clock,
):
	RunProgress | WebhookAnswer | { workflowData: INodeExecutionData[][]; webhookResponse: unknown } {
	const stored = storedItems(context);
	const woken = wokenItem(stored);
	if (woken) return { workflowData: [[woken]], webhookResponse: { accepted: true } };
	const taskIds = stored.flatMap((item) => pendingTaskId(item) ?? []);
	const url = taskIds.includes(taskId) ? checkUrl(context) : undefined;
	return url === undefined ? NOT_WAITING : new RunProgress(taskIds, url, clock);
}

/** The items that n8n has stored as the input of the waiting node. */
function storedItems(context: IWebhookFunctions): INodeExecutionData[] {
	return context.evaluateExpression('{{ $input.all() }}') as unknown as INodeExecutionData[];
}

/** n8n stores the execution before it answers. */
const ANSWER_LIMIT_MS = 5_000;

/**
 * Has the sub-execution check at once that waits for the tasks of this execution.
 *
 * @param url its resume URL
 * @param taskId the task that is said to be finished
 * @returns whether it took the call; where it did not, it checks later, at its own time
 */
async function wakeCheck(
	context: IWebhookFunctions,
	url: string,
	taskId: string,
	apiKey: string,
): Promise<boolean> {
	for (const address of addressesOf(context, url)) {
		const called = await settled(
			async () =>
				await callN8n(
					context,
					{
						method: 'POST',
						url: callbackAddress(address, apiKey),
						body: { taskId },
						timeout: ANSWER_LIMIT_MS,
					},
					'n8n does not let this node call n8n itself',
				),
		);
		if ('error' in called) {
			const { message, description } = ItemError.from(called.error);
			context.logger.info(`${message}. ${description}`);
		} else if (called.value?.statusCode === 200) return true;
	}
	return false;
}

/**
 * The socket that this very callback came in at, and then n8n's public address: that one may lead through a tunnel or a
 * proxy that does not let n8n call itself, and the socket may want TLS, or another path than the proxy.
 */
function* addressesOf(context: IWebhookFunctions, url: string): Iterable<string> {
	const { localAddress, localPort } = context.getRequestObject().socket ?? {};
	if (localAddress !== undefined && localPort !== undefined) {
		const { pathname, search } = new URL(url);
		yield `http://${hostOf(localAddress)}:${localPort}${pathname}${search}`;
	}
	yield url;
}

/** An IPv4 address may be written as an IPv6 one. */
function hostOf(address: string): string {
	const plain = address.replace(/^::ffff:/i, '');
	return plain.includes(':') ? `[${plain}]` : plain;
}
