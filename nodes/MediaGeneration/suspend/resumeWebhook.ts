import type { IExecuteFunctions, IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';

import {
	ANSWER_LIMIT_MS,
	deciding,
	tryAgain,
	verifyCallback,
	type WebhookAnswer,
} from '../callback/verifyCallback';
import { MIN_READ_INTERVAL_MS } from '../service/client';
import { isOutOfReach } from '../shared/privateAddress';
import { callbackAddress } from '../callback/callbackToken';
import { CALLBACK_PATH } from '../callback/triggerCallbackUrl';
import { inGrowingGroups, Semaphore, settled } from '../shared/promises';
import { type Clock, ExpiringCache, sleepUntil, systemClock, withTimeLimit } from '../shared/clock';
import type { TaskRecord } from '../service/taskRecord';
import { type Account, callN8n, type Context } from '../service/connect';
import { ItemError } from '../shared/itemError';
import { checkNote, type CheckNote } from './checkState';
import { CHECK } from './checkWorkflow';

/**
 * The URL that resumes a suspended execution: n8n's, with the path of the webhook before the query, where n8n 2 keeps a
 * signature.
 */
export function resumeUrl(context: Context): string {
	const given = String(context.evaluateExpression('{{ $execution.resumeUrl }}', 0));
	if (!URL.canParse(given)) return '';
	const url = new URL(given);
	url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, '')}/${CALLBACK_PATH}`;
	return url.href;
}

/** Where the service calls a suspended execution back, if it can: without a callback the checks find the results. */
export function resumeCallbackUrl(
	context: IExecuteFunctions,
	{ apiKey, baseUrl }: Account,
): string | undefined {
	const url = resumeUrl(context);
	return url === '' || isOutOfReach(url, baseUrl) ? undefined : callbackAddress(url, apiKey);
}

/**
 * What this process has heard of the tasks of one suspended run. It only spares checks that would find nothing: what this
 * process does not know or has forgotten costs reads.
 */
export class RunProgress {
	private readonly unfinished: Set<string>;
	private readonly turns = new Semaphore(1);

	/** The check that has not begun yet. */
	private next: Promise<boolean> | undefined;

	/** When a task was found pending, on the clock's time. */
	private pendingAt = -Infinity;

	constructor(
		readonly note: CheckNote,
		private readonly clock: Clock,
	) {
		this.unfinished = new Set(note.taskIds);
	}

	/**
	 * Whether all tasks of the run are finished, as far as can be told. A single pending task proves that they are not, so
	 * a check costs one read as a rule.
	 *
	 * @param told the task whose callback has come
	 * @throws whatever a read throws
	 */
	async isComplete(told: string, read: (taskId: string) => Promise<TaskRecord>): Promise<boolean> {
		this.unfinished.delete(told);
		if (this.unfinished.size === 0) return true;
		// A callback joins no check that is under way: that check may have missed what the callback tells.
		this.next ??= this.turns.run(async () => {
			await sleepUntil(this.pendingAt + MIN_READ_INTERVAL_MS, this.clock, undefined);
			this.next = undefined;
			let isPending = false;
			const readOne = async (taskId: string) => {
				if ((await read(taskId)).state === 'PENDING') isPending = true;
				else this.unfinished.delete(taskId);
			};
			await inGrowingGroups([...this.unfinished], readOne, () => isPending);
			if (isPending) this.pendingAt = this.clock.now();
			return !isPending;
		});
		return await this.next;
	}
}

/** For how long after its last callback a run is remembered, and how many runs: each may have thousands of tasks. */
const MAX_AGE_MS = 3_600_000;
const MAX_RUNS = 100;

/** The suspended runs that this process has had callbacks for, by execution and node. */
const runs = new ExpiringCache<RunProgress>(systemClock, MAX_AGE_MS, MAX_RUNS);

/**
 * Decides about a callback that came to a suspended execution. Only the end of the sub-execution that checks its tasks
 * resumes the execution: when the last callback has come, the sub-execution is made to check at once.
 *
 * @returns nothing where the callback was answered; where it came to the sub-execution itself, the item it checks with
 * @see specification, section 6 and its handler rules
 */
export const handleResumeWebhook = deciding(decide);

async function decide(context: IWebhookFunctions): Promise<WebhookAnswer | IWebhookResponseData> {
	const checked = await verifyCallback(context, true, () => resumeUrl(context));
	if ('status' in checked) return checked;
	const { taskId, connection } = checked;
	const place = `${context.getExecutionId()}/${context.getNode().id}`;
	let run = runs.get(place);
	// In a loop there is one run after the other at the same place. To ask n8n for what it has stored takes long.
	if (!run?.note.taskIds.includes(taskId)) {
		const note = checkNote(context);
		if (note === undefined && context.getNode().parameters.operation === CHECK) {
			return { workflowData: [[{ json: { woken: true } }]], webhookResponse: { accepted: true } };
		}
		if (!note?.taskIds.includes(taskId)) {
			return { status: 404, body: { message: 'The execution does not wait for this task' } };
		}
		run = new RunProgress(note, systemClock);
	}
	runs.set(place, run);
	const read = async (id: string) => await connection.client.readTask(id, ANSWER_LIMIT_MS);
	const asked = await settled(
		withTimeLimit(run.isComplete(taskId, read), ANSWER_LIMIT_MS, systemClock),
	);
	const isComplete = 'value' in asked ? asked.value : undefined;
	if (isComplete === undefined) return tryAgain('A task could not be read');
	const { url } = run.note;
	const canWake = isComplete && url !== '';
	const told = canWake ? await wakeCheck(context, url, taskId, connection.apiKey) : undefined;
	// That check may have missed what the callback tells.
	if (told === 'checking') return tryAgain('The tasks are being checked at the moment');
	const isWoken = told === 'woken';
	if (isWoken) runs.delete(place);
	else if (canWake) {
		context.logger.info(
			`${context.getNode().name}: n8n could not be told at its own address that the tasks are finished; the execution goes on at the next check`,
		);
	}
	return { status: 200, body: { accepted: true, resumed: isWoken } };
}

/**
 * The socket that this very callback came in at, and then n8n's public address: that one may lead through a tunnel or a
 * proxy that does not let n8n call itself, and the socket may want TLS, or another path than the proxy.
 */
function* addressesOf(context: IWebhookFunctions, url: string): Iterable<string> {
	const { localAddress, localPort } = context.getRequestObject().socket ?? {};
	if (localAddress !== undefined && localPort !== undefined) {
		const { pathname, search } = new URL(url);
		// An IPv4 address may be written as an IPv6 one.
		const host = localAddress.replace(/^::ffff:/i, '');
		yield `http://${host.includes(':') ? `[${host}]` : host}:${localPort}${pathname}${search}`;
	}
	yield url;
}

/** n8n stores the execution before it answers. */
const N8N_LIMIT_MS = 5_000;

/** What n8n says of an execution that does not sleep. */
const DOES_NOT_SLEEP = /running already|already being resumed/;

/**
 * Has a checking execution check at once.
 *
 * @param url its resume URL
 * @param taskId the task that is said to be finished
 * @returns `woken` where it took the call, `checking` where it checks at this moment; where nobody could tell it, it checks
 *   at its own time
 */
async function wakeCheck(
	context: IWebhookFunctions,
	url: string,
	taskId: string,
	apiKey: string,
): Promise<'woken' | 'checking' | undefined> {
	for (const address of addressesOf(context, url)) {
		const request = {
			method: 'POST' as const,
			url: callbackAddress(address, apiKey),
			body: { taskId },
			timeout: N8N_LIMIT_MS,
		};
		const forbidden = 'n8n does not let this node call n8n itself';
		const called = await settled(callN8n(context, request, forbidden));
		if ('error' in called) {
			const { message, description } = ItemError.from(called.error);
			context.logger.info(`${message}. ${description}`);
			continue;
		}
		const { statusCode, body = '' } = called.value ?? {};
		if (statusCode === 200) return 'woken';
		if (DOES_NOT_SLEEP.test(body)) return 'checking';
	}
	return undefined;
}
