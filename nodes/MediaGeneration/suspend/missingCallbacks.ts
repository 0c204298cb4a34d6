import type { IExecuteFunctions } from 'n8n-workflow';

import { callbackAddress, TOKEN_PARAMETER } from '../callback/callbackToken';
import { redeliver } from '../callback/redeliver';
import { accountOf, hasStarted } from '../callback/startOnce';
import { triggerAt } from '../callback/triggerCallbackUrl';
import type { Connection } from '../service/connect';
import { ServiceError } from '../service/serviceError';
import type { Clock } from '../shared/clock';
import { messageOf } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { webhookBase } from '../shared/n8nInternals';
import { inGrowingGroups, Semaphore, settled } from '../shared/promises';
import {
	afterPause,
	MAX_CHECK_INTERVAL_MS,
	MAX_UNANSWERED,
	MIN_CHECK_INTERVAL_MS,
	pauseAfter,
} from './checkSchedule';
import { type AwaitedDelivery, CHECK_VERSION, type DeliveryCheck } from './checkState';
import { startCheck } from './checkSupervisor';

/**
 * One check for tasks whose callback has not been seen to arrive. The check ends where the service asks to
 * wait, or is in trouble.
 *
 * @param attempt comes to nothing where the trigger has the task now, else to why it has not
 * @returns the state after the check, with the deliveries that are left
 * @see specification, section 6: keep polling as a fallback
 */
export async function checkDeliveries(
	state: DeliveryCheck,
	attempt: (delivery: AwaitedDelivery) => Promise<string | undefined>,
): Promise<DeliveryCheck> {
	const untried = new Set(state.deliveries);
	const left: AwaitedDelivery[] = [];
	let pauseMs = 0;
	let patience = MAX_UNANSWERED;
	const tryOne = async (delivery: AwaitedDelivery) => {
		untried.delete(delivery);
		const tried = await settled(attempt(delivery));
		const error = 'error' in tried && tried.error;
		pauseMs = Math.max(pauseMs, pauseAfter(error));
		if (error instanceof ServiceError && !error.isOfOneTask) patience--;
		const last = 'value' in tried ? tried.value : messageOf(tried.error);
		if (last !== undefined) left.push({ ...delivery, last });
	};
	await inGrowingGroups(state.deliveries, tryOne, () => patience <= 0 || pauseMs > 0);
	// The next check begins with what was not tried: it may be cut short, too.
	return afterPause({ ...state, deliveries: [...untried, ...left] }, pauseMs);
}

/** What is said of a task that the service has not finished. */
export const NOT_FINISHED = 'not finished';

/** Where the trigger has stored an execution: n8n may be killed before the execution begins. */
const STORED = 'delivered, and has not started the workflow yet';

/**
 * Delivers a task to its trigger, where it is finished and its callback has not been seen to arrive. The ledger of a
 * trigger of the same workflow is asked first: n8n may not reach its own address, and the trigger's process knows what
 * was stored, and not what has begun. So it says at the next check whether the delivery has arrived. If the trigger takes
 * the task twice, that counts, too: its process forgets a task that was stored after ten minutes.
 *
 * @param service its API key signs the address anew, with the key of now
 * @returns undefined where the trigger has it, else why it has not
 * @throws ServiceError; as `redeliver` does; the database's error
 */
export async function deliverTask(
	context: IExecuteFunctions,
	{ taskId, address, triggerId, triggerCredentialId = '', last }: AwaitedDelivery,
	{ apiKey, baseUrl, client }: Connection,
): Promise<string | undefined> {
	const account = accountOf(baseUrl, triggerCredentialId);
	if (triggerId !== undefined && (await hasStarted(context, triggerId, { account, taskId }))) {
		return undefined;
	}
	const task = await client.readTask(taskId);
	if (task.state === 'PENDING') return NOT_FINISHED;
	// A trigger of this very n8n is called at n8n's present address, and at no other: whoever has the former one now
	// would get the token.
	const url = address.startsWith('/') ? `${webhookBase(context)}${address}` : address;
	const answer = await redeliver(context, task, callbackAddress(url, apiKey));
	if (answer === undefined) return 'something else answers in place of the trigger';
	if (triggerId === undefined || answer === 'notSelected') return undefined;
	return answer === 'accepted' && last === STORED ? undefined : STORED;
}

/** n8n answers at a test address only while somebody listens. */
const TEST_ADDRESS = '/webhook-test/';

/** How long the end of a run may go unnoticed, milliseconds. */
const SECOND = 1000;

/** The place in the node's context of the tasks that a check was left behind for. */
const KEY = 'checkedCallbacks';

/**
 * The created tasks of a run whose callbacks a trigger waits for. A check for callbacks that do not come is left behind
 * at the end of the run, and now and then before, since to create a large batch may take hours.
 */
export class ExpectedCallbacks {
	/** The tasks that nobody checks yet. */
	private deliveries: AwaitedDelivery[] = [];

	/** The checks are begun one after the other. */
	private readonly turns = new Semaphore(1);

	private early: Promise<unknown> | undefined;
	private isOver = false;

	/** @param intervalMs milliseconds between two checks; 0 lets the pause grow with the time waited */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly intervalMs: number,
		private readonly clock: Clock,
	) {}

	/**
	 * @param webhookUrl the address that the service calls, token included
	 * @param timeoutMs how long the callback is waited for, milliseconds
	 */
	add(taskId: string, webhookUrl: string, timeoutMs: number): void {
		const address = new URL(webhookUrl);
		// *Retry On Fail* continues with the tasks of the try before, which has left a check behind for them.
		if (address.pathname.includes(TEST_ADDRESS) || this.checked.includes(taskId)) return;
		// Each check makes the token anew, with the key of then.
		address.searchParams.delete(TOKEN_PARAMETER);
		const { href } = address;
		const base = webhookBase(this.context);
		const isOwn = base !== undefined && href.startsWith(`${base}/`);
		this.deliveries.push({
			taskId,
			// The time of day: other processes read what is stored.
			until: Date.now() + timeoutMs,
			address: isOwn ? href.slice(base.length) : href,
			...triggerAt(this.context, href),
		});
		this.early ??= settled(this.leaveEarly());
	}

	/** At the end of the run, however it ended: the tasks that were created go on in any case. */
	async leave(): Promise<void> {
		this.isOver = true;
		await this.turns.run(this.leaveBehind);
	}

	private async leaveEarly(): Promise<void> {
		const { clock } = this;
		let pauseMs = MIN_CHECK_INTERVAL_MS;
		for (let dueAt = clock.now() + pauseMs; !this.isOver; await clock.sleep(SECOND, undefined)) {
			if (clock.now() < dueAt) continue;
			await this.turns.run(this.leaveBehind);
			pauseMs = Math.min(2 * pauseMs, MAX_CHECK_INTERVAL_MS);
			dueAt = clock.now() + pauseMs;
		}
	}

	private readonly leaveBehind = async (): Promise<void> => {
		const { context, intervalMs, clock } = this;
		const deliveries = this.deliveries.splice(0);
		if (deliveries.length === 0) return;
		const nodeName = context.getNode().name;
		const check = {
			version: CHECK_VERSION,
			purpose: 'delivery',
			nodeName,
			startedAt: Date.now(),
			intervalMs,
			deliveries,
		} as const;
		const left = await settled(startCheck(context, check, clock));
		if ('value' in left) {
			const taskIds = [...this.checked, ...deliveries.map(({ taskId }) => taskId)];
			context.getContext('node')[KEY] = { of: context.getExecutionId(), taskIds };
			return;
		}
		// At the end of the run it may go better.
		this.deliveries = [...deliveries, ...this.deliveries];
		context.logger.warn(
			`${nodeName}: n8n did not start the execution that checks the tasks, so nothing makes up for a callback that does not come. ${messageOf(left.error)} Deliver such tasks with the operation Task → Send Result Again.`,
		);
	};

	/** The tasks that this execution has left a check behind for. A retry from the list is another execution. */
	private get checked(): string[] {
		const stored = this.context.getContext('node')[KEY];
		const isOurs = isRecord(stored) && stored.of === this.context.getExecutionId();
		return isOurs ? (stored.taskIds as string[]) : [];
	}
}
