import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { webhookBase } from '../n8n/internals';
import { startSubExecution } from '../n8n/subExecution';
import { LEAST_SLEEP_MS, LONGEST_SLEEP_MS } from '../read/readWindow';
import { TOKEN_PARAMETER } from '../shared/addresses';
import { clock, settled } from '../shared/clock';
import { ItemError, messageOf, writeLog } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { isTestAddress, type Recipient, recipientAt } from './callbackAddress';
import { callN8n } from '../service/connect';
import { classifyAnswer, isOk, type Kind } from '../service/meaning';
import type { FinishedTask } from '../service/taskRecord';

/** What is known of the deliveries of one task. Times are milliseconds of the clock. */
export interface Deliveries {
	/** When the ledger was asked last. */
	askedAt?: number;
	/** Why the trigger has not started so far: it refuses the task, or it could not say yes or no. */
	answer?: { words: string; isRefused: boolean };
	/** When this answer came last, and since when the trigger answers like this. */
	at?: number;
	since?: number;
}

/** An answer is final when the trigger has given it for so long, milliseconds. */
const FINAL_AFTER_MS = 15 * 60_000;

/** Between two deliveries of a result, milliseconds. */
const DELIVERY_PAUSE_MS = 60_000;

/** Writes down why a trigger has not started. @param now milliseconds of the clock */
export function noteAnswer(
	deliveries: Deliveries,
	words: string,
	isRefused: boolean,
	now: number,
): void {
	const { answer: before, since = now } = deliveries;
	const isSame = before?.isRefused === isRefused;
	Object.assign(deliveries, { answer: { words, isRefused }, at: now, since: isSame ? since : now });
}

/**
 * What happens next to a task that has ended, and whose result goes to a trigger. A refusal is final after a quarter of an
 * hour; another answer not before the time of the task is up.
 *
 * @param until when the time of the task is up, milliseconds of the clock
 * @param now milliseconds of the clock
 */
export function deliveryStep(deliveries: Deliveries = {}, until = Infinity, now: number) {
	const { answer, at = -Infinity, since = at } = deliveries;
	const isFinal = at >= since + FINAL_AFTER_MS && (answer?.isRefused === true || at >= until);
	if (answer && isFinal) return { kind: 'failed' as const, error: new ItemError(answer.words) };
	return { kind: 'deliver' as const, at: Math.max(now, at + DELIVERY_PAUSE_MS) };
}

/** The trigger could not say yes or no: n8n does not answer, or the trigger could not read the task at the moment. */
export class TriggerBusy extends ItemError {
	/** Whether the service has refused the trigger a read, because of too many requests. */
	asksToSlowDown = false;
}

/** A trigger answers within 10 s, whatever the service does. The rest is for a busy n8n. */
const TRIGGER_LIMIT_MS = 30_000;

/**
 * What a trigger made of a callback that it answered with 200. `accepted`: n8n has stored an execution for the task,
 * which goes on unless the task has started the workflow before. `duplicate`: n8n had let the task in
 * less than a minute before.
 */
export type Delivery = 'accepted' | 'duplicate' | 'notSelected';

/**
 * Sends the callback of a finished task to a trigger once more, as the service would send it. The request carries the
 * token and no API key. Its body has the task id, because the trigger reads nothing else.
 *
 * @param address the trigger's URL with its token
 * @returns undefined if the answer is not that of a trigger of this package
 * @throws ItemError, UserError if the trigger did not take the callback; the message does not contain the token
 * @throws Stopped if the execution was stopped
 * @see docs/service.openapi.yaml, section 6
 */
export async function redeliver(
	context: IExecuteFunctions,
	{ taskId, state }: Pick<FinishedTask, 'taskId' | 'state'>,
	address: string,
): Promise<Delivery | undefined> {
	const { origin, pathname, searchParams } = new URL(address);
	// Without the token, for messages.
	const shown = origin + pathname;
	const begunAt = clock.now();
	const answer = await callN8n(
		context,
		{ method: 'POST', url: address, body: { taskId, state }, timeout: TRIGGER_LIMIT_MS },
		`n8n does not let this node call the trigger: ${shown}`,
	);
	if (answer === undefined && clock.now() - begunAt >= TRIGGER_LIMIT_MS) {
		throw new TriggerBusy(
			`The trigger does not answer within ${TRIGGER_LIMIT_MS / 1000} s: ${shown}`,
			{
				description:
					"n8n answers when the trigger's execution has a place. With N8N_CONCURRENCY_PRODUCTION_LIMIT a run may wait for the very place that it holds. The workflow may still start when this run has ended: look in the list of executions.",
			},
		);
	}
	if (answer === undefined) {
		throw new TriggerBusy(`The trigger cannot be reached: ${shown}`, {
			description:
				"Check that the workflow of the trigger is published, and that this n8n can reach the address in 'Callback URL'.",
		});
	}
	const { statusCode } = answer;
	// The answer may repeat the token.
	const text = answer.body.replaceAll(String(searchParams.get(TOKEN_PARAMETER)), '***');
	const read = { ...answer, body: text };
	const { kind, taken, again, said, spoken } = classifyAnswer(read, Date.now());
	if (isOk(answer)) {
		if (!/^\s*</.test(text)) return deliveryOf(spoken);
		throw new ItemError(`A web page answers in place of the trigger: ${shown}`, {
			description:
				"Check that 'Callback URL' is the production URL of a Media Generation Trigger, and that no login page stands before it.",
		});
	}
	const words = said === undefined ? '' : `: ${said}`;
	const message = `The trigger did not take the callback of task ${taskId} (HTTP ${statusCode})${words}`;
	const details = { description: NEXT[kind] ?? NEXT.answered };
	if (!again) throw new ItemError(message, details);
	throw Object.assign(new TriggerBusy(message, details), { asksToSlowDown: taken === 'no' });
}

/** @returns undefined if the answer is not that of a trigger: many servers answer 200 */
function deliveryOf(body: unknown): Delivery | undefined {
	if (!isRecord(body) || typeof body.accepted !== 'boolean') return undefined;
	if (body.accepted) return 'accepted';
	return body.reason === 'duplicate' ? 'duplicate' : 'notSelected';
}

const LATER =
	'The trigger could not answer, or could not read the task from the service at the moment. Try again later.';

/** The advice for each meaning of the trigger's answer, and else the first one. */
const NEXT: Partial<Record<Kind, string>> & Pick<Record<Kind, string>, 'answered'> = {
	answered: "Check that 'Callback URL' is the production URL of a Media Generation Trigger.",
	unauthorized: 'The trigger must use a credential with the same API key as this node.',
	notFound:
		"Check that the workflow of the trigger is published, that 'Callback URL' is its production URL, and that its credential belongs to the account that created the task.",
	serviceDown: LATER,
	tooManyRequests: LATER,
};

/**
 * The created tasks of a run whose callbacks a trigger waits for. A check for missing callbacks is started at the end of
 * the run, and now and then before, since a large batch may take hours.
 */
export class ExpectedCallbacks {
	/** The tasks that nobody checks yet. */
	private deliveries: AwaitedCallback[] = [];

	private early: Promise<void> | undefined;

	private readonly end = new AbortController();

	constructor(private readonly context: IExecuteFunctions) {}

	/**
	 * @param webhookUrl the address that the service calls, with its token
	 * @param timeoutMs how long to wait for the callback, milliseconds
	 */
	add(taskId: string, webhookUrl: string, timeoutMs: number): void {
		if (isTestAddress(webhookUrl)) return;
		const address = new URL(webhookUrl);
		// Each turn makes the token anew, with the key of that time.
		address.searchParams.delete(TOKEN_PARAMETER);
		const { href } = address;
		const base = webhookBase(this.context);
		const isOwn = base !== undefined && href.startsWith(`${base}/`);
		this.deliveries.push({
			taskId,
			until: clock.now() + timeoutMs,
			...recipientAt(this.context, href),
			address: isOwn ? href.slice(base.length) : href,
		});
		this.early ??= this.leaveEarly();
	}

	/** To be called at the end of the run, however it ended: the created tasks go on in any case. */
	async leave(): Promise<void> {
		this.end.abort();
		await this.early;
		await this.leaveBehind();
	}

	private async leaveEarly(): Promise<void> {
		let waitMs = LEAST_SLEEP_MS;
		while ('value' in (await settled(clock.sleep(waitMs, this.end.signal)))) {
			await this.leaveBehind();
			waitMs = Math.min(2 * waitMs, LONGEST_SLEEP_MS);
		}
	}

	private async leaveBehind(): Promise<void> {
		const { context } = this;
		const deliveries = this.deliveries.splice(0);
		if (deliveries.length === 0) return;
		const begun = await settled(startCallbackWait(context, context.getNode().name, deliveries));
		if ('value' in begun) return;
		// n8n may be able to start the check at the end of the run.
		this.deliveries = [...deliveries, ...this.deliveries];
		writeLog(
			context,
			'warn',
			`n8n did not start the execution that checks the tasks, so nothing makes up for a callback that does not come. ${messageOf(begun.error)} Deliver such tasks with the operation Repeat Callback.`,
		);
	}
}

/** A task whose result a trigger waits for. */
export interface AwaitedCallback extends Recipient {
	taskId: string;
	/** When its time is up, milliseconds of the clock. */
	until: number;
}

const NOTE =
	'## n8n made this execution by itself\nA Media Generation node has ordered results for a Media Generation Trigger. This execution makes up for callbacks that do not come: it waits for the tasks, and hands what is finished to the trigger. It ends by itself when the trigger has all of them.\n\n**Do not stop or delete it** while you wait for results.';

/** The parameters of the node in the sub-execution: an ordinary *Wait for Task*, whose results go to a trigger. */
export const WAIT_PARAMETERS = {
	resource: 'task',
	operation: 'wait',
	taskId: '={{ $json.taskId }}',
	deliverTo: '={{ $json }}',
	downloadResults: false,
	includeInput: false,
	// The run is stored before it looks for the first time, so no kill ends it.
	options: { suspendAfter: 0, timeout: '={{ $json.seconds }}' },
};

/** The items of that node. @param nodeName the node that has created the tasks, for messages */
export function waitItems(
	nodeName: string,
	callbacks: readonly AwaitedCallback[],
): INodeExecutionData[] {
	const now = clock.now();
	return callbacks.map(({ until, ...callback }) => {
		const seconds = Math.max(1, (until - now) / 1000);
		return { json: { ...callback, seconds, createdBy: nodeName } };
	});
}

/**
 * Starts the sub-execution that makes up for callbacks that do not come.
 *
 * @throws n8n's error if n8n starts no sub-execution
 */
export async function startCallbackWait(
	context: IExecuteFunctions,
	nodeName: string,
	callbacks: readonly AwaitedCallback[],
): Promise<void> {
	const how = {
		title: `${nodeName}: waiting for callbacks`,
		nodeName: 'Makes up for lost callbacks',
		note: NOTE,
		parameters: WAIT_PARAMETERS,
	};
	await startSubExecution(context, how, waitItems(nodeName, callbacks));
}
