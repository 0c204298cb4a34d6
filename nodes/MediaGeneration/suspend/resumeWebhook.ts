import type { IExecuteFunctions, IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';

import {
	answer,
	ANSWER_LIMIT_MS,
	deciding,
	tryAgain,
	verifyCallback,
	type WebhookAnswer,
} from '../callback/verifyCallback';
import { MIN_READ_INTERVAL_MS } from '../service/client';
import { isOutOfReach } from '../shared/privateAddress';
import { callbackAddress } from '../callback/callbackToken';
import { inGrowingGroups, Semaphore, settled } from '../shared/promises';
import { clock, ExpiringCache, sleepUntil } from '../shared/clock';
import type { TaskRecord } from '../service/taskRecord';
import { type Account, callN8n, type Context } from '../service/connect';
import { ItemError } from '../shared/itemError';
import { isRecord, parsedJson } from '../shared/json';
import { checkNote, type CheckNote } from './checkState';
import { CHECK } from './checkWorkflow';

/** Not a path that a user gives to a Wait node of the same execution: late callbacks would resume that node. */
export const RESUME_PATH = 'media-generation';

/**
 * The URL that resumes a suspended execution, with the path of the webhook before the query: n8n 2 keeps a signature in
 * the query.
 */
export function resumeUrl(context: Context): string {
	const given = String(context.evaluateExpression('{{ $execution.resumeUrl }}', 0));
	if (!URL.canParse(given)) return '';
	const url = new URL(given);
	url.pathname = `${url.pathname.replace(/\/$/, '')}/${RESUME_PATH}`;
	return url.href;
}

/**
 * The URL for callbacks to a suspended execution, if the service can reach it. Without callbacks the checks find the
 * results.
 */
export function resumeCallbackUrl(
	context: IExecuteFunctions,
	{ apiKey, baseUrl }: Account,
): string | undefined {
	const url = resumeUrl(context);
	return url === '' || isOutOfReach(url, baseUrl) ? undefined : callbackAddress(url, apiKey);
}

/** What this process knows about the tasks of a suspended run, which saves checks that would find nothing. */
export class RunProgress {
	private readonly unfinished: Set<string>;
	private readonly oneAtATime = new Semaphore(1);

	/** The check that has not begun yet. */
	private next: Promise<boolean> | undefined;

	/** When a task was last found pending, milliseconds of the clock. */
	private pendingAt = -Infinity;

	constructor(readonly note: CheckNote) {
		this.unfinished = new Set(note.taskIds);
	}

	/**
	 * Whether all tasks of the run are finished, as far as known. One pending task proves that they are not, so most checks
	 * cost one read.
	 *
	 * @param told the task whose callback has come
	 * @throws the error of a read
	 */
	async isComplete(told: string, read: (taskId: string) => Promise<TaskRecord>): Promise<boolean> {
		this.unfinished.delete(told);
		if (this.unfinished.size === 0) return true;
		// A callback does not join a check that has begun: that check may have read the task too early.
		this.next ??= this.oneAtATime.run(async () => {
			await sleepUntil(this.pendingAt + MIN_READ_INTERVAL_MS, undefined);
			this.next = undefined;
			let isPending = false;
			const readOne = async (taskId: string) => {
				if ((await read(taskId)).state === 'PENDING') isPending = true;
				else this.unfinished.delete(taskId);
			};
			await inGrowingGroups([...this.unfinished], readOne, () => isPending);
			if (isPending) this.pendingAt = clock.now();
			return !isPending;
		});
		return await this.next;
	}
}

const MAX_AGE_MS = 3_600_000;

/** The suspended runs that this process has had callbacks for, by execution and node. */
const runs = new ExpiringCache<RunProgress>(MAX_AGE_MS);

/**
 * Decides about a callback to a suspended execution. Only the end of the supervisor resumes the execution: when the last
 * callback has come, the checker is made to check at once.
 *
 * @returns nothing if the callback was answered; for a callback to the checker itself, the item that it checks with
 * @see specification, section 6 and its handler rules
 */
export const handleResumeWebhook = deciding(decide);

async function decide(context: IWebhookFunctions): Promise<WebhookAnswer | IWebhookResponseData> {
	const checked = await verifyCallback(context, true, () => resumeUrl(context));
	if ('status' in checked) return checked;
	const { taskId, connection } = checked;
	const place = `${context.getExecutionId()}/${context.getNode().id}`;
	let run = runs.get(place);
	// A loop has several runs at the same place. To ask n8n for a stored note takes long.
	if (!run?.note.taskIds.includes(taskId)) {
		const note = checkNote(context);
		if (note === undefined && context.getNode().parameters.operation === CHECK) {
			return { workflowData: [[{ json: { woken: true } }]], webhookResponse: { accepted: true } };
		}
		if (!note?.taskIds.includes(taskId)) {
			return answer(404, 'The execution does not wait for this task');
		}
		run = new RunProgress(note);
	}
	runs.set(place, run);
	const read = async (id: string) => await connection.client.readTask(id, ANSWER_LIMIT_MS);
	const asked = await settled(run.isComplete(taskId, read));
	if ('error' in asked) return tryAgain('A task could not be read');
	const { url } = run.note;
	if (!asked.value || url === '') return accepted(false);
	const told = await wakeCheck(context, url, taskId, connection.apiKey);
	// The check under way may have read the task too early.
	if (told === 'checking') return tryAgain('The tasks are being checked at the moment');
	if (told === 'woken') return accepted(true);
	context.logger.info(
		`${context.getNode().name}: n8n could not be told at its own address that the tasks are finished; the execution goes on at the next check`,
	);
	return accepted(false);
}

const accepted = (resumed: boolean): WebhookAnswer => ({
	status: 200,
	body: { accepted: true, resumed },
});

/**
 * The addresses at which n8n may call itself: first the socket of this callback, which may need TLS or another path. Then
 * the public address, which may belong to a tunnel that n8n cannot use.
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
 * Makes the checker check at once.
 *
 * @param url the resume URL of the checker
 * @param taskId the task of the callback
 * @returns `woken` if the checker took the call, or has ended; `checking` if it checks at this moment; undefined if it
 *   could not be called, and checks at its own time
 */
async function wakeCheck(
	context: IWebhookFunctions,
	url: string,
	taskId: string,
	apiKey: string,
): Promise<'woken' | 'checking' | undefined> {
	for (const address of addressesOf(context, url)) {
		const called = await settled(async () => {
			// Not every address of a socket can stand in a URL.
			const to = callbackAddress(address, apiKey);
			const request = { method: 'POST', url: to, body: { taskId }, timeout: N8N_LIMIT_MS } as const;
			return await callN8n(context, request, 'n8n does not let this node call n8n itself');
		});
		if ('error' in called) {
			const { message, description } = ItemError.from(called.error);
			context.logger.info(`${message}. ${description}`);
			continue;
		}
		const { statusCode, body = '' } = called.value ?? {};
		const said = parsedJson(body);
		// A login page or a proxy may answer 200, too.
		if (statusCode === 200 && isRecord(said) && said.accepted === true) return 'woken';
		if (body.includes('has finished already')) return 'woken';
		if (DOES_NOT_SLEEP.test(body)) return 'checking';
	}
	return undefined;
}
