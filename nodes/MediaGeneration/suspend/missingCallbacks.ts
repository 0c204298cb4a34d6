import type { IExecuteFunctions } from 'n8n-workflow';

import { callbackAddress, TOKEN_PARAMETER } from '../callback/callbackToken';
import { redeliver } from '../callback/redeliver';
import { accountOf, hasStarted } from '../callback/startOnce';
import { isTestAddress, triggerAt } from '../callback/triggerCallbackUrl';
import type { Connection } from '../service/connect';
import { clock } from '../shared/clock';
import { messageOf } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { webhookBase } from '../n8n/internals';
import { settled } from '../shared/promises';
import {
	afterPause,
	MAX_CHECK_INTERVAL_MS,
	MIN_CHECK_INTERVAL_MS,
	NOT_FINISHED,
	walk,
} from './checkSchedule';
import { type AwaitedDelivery, CHECK_VERSION, type DeliveryCheck } from './checkState';
import { startCheck } from './checkSupervisor';

/**
 * One check for tasks whose callback has not been seen to arrive.
 *
 * @param deliver resolves to undefined if the trigger has the task, else to the reason why not
 * @returns the state after the check, with the deliveries that are left
 * @see specification, section 6: keep polling as a fallback
 */
export async function checkDeliveries(
	state: DeliveryCheck,
	deliver: (delivery: AwaitedDelivery) => Promise<string | undefined>,
): Promise<DeliveryCheck> {
	const untried = new Set(state.deliveries);
	const left: AwaitedDelivery[] = [];
	const tryOne = async (delivery: AwaitedDelivery) => {
		untried.delete(delivery);
		const tried = await settled(deliver(delivery));
		const last = 'value' in tried ? tried.value : messageOf(tried.error);
		if (last !== undefined) left.push({ ...delivery, last });
		return 'error' in tried ? tried.error : undefined;
	};
	const pauseMs = await walk(state.deliveries, tryOne);
	// The next check begins with the deliveries that were not tried: that check may be cut short, too.
	return afterPause({ ...state, deliveries: [...untried, ...left] }, pauseMs);
}

/** The trigger has stored an execution. n8n may be killed before the execution begins. */
const STORED = 'delivered, and has not started the workflow yet';

/**
 * Delivers a finished task to its trigger. For a trigger of the same workflow the ledger is asked first: n8n may not
 * reach its own address. The answer of the trigger only says that n8n has stored an execution, and the next check asks
 * the ledger whether the execution has begun. If the trigger accepts the task twice, the task counts as delivered, too:
 * the trigger's process forgets a stored task after five minutes.
 *
 * @param service its API key signs the address anew, because the key may have been replaced
 * @returns undefined if the trigger has the task, else the reason why not
 * @throws ServiceError; the errors of `redeliver`; the database's error
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
	// If somebody else has the former address of n8n now, the token must not go there.
	const url = address.startsWith('/') ? `${webhookBase(context)}${address}` : address;
	const answer = await redeliver(context, task, callbackAddress(url, apiKey));
	if (answer === undefined) return 'something else answers in place of the trigger';
	if (triggerId === undefined || answer === 'notSelected') return undefined;
	return answer === 'accepted' && last === STORED ? undefined : STORED;
}

/** The key in the node's context of the tasks for which a check was started. */
const KEY = 'checkedCallbacks';

/**
 * The created tasks of a run whose callbacks a trigger waits for. A check for missing callbacks is started at the end of
 * the run, and now and then before, since a large batch may take hours.
 */
export class ExpectedCallbacks {
	/** The tasks that nobody checks yet. */
	private deliveries: AwaitedDelivery[] = [];

	private early: Promise<void> | undefined;

	/** Aborted at the end of the run. */
	private readonly end = new AbortController();

	/** @param intervalMs milliseconds between two checks; 0 lets the pause grow with the time waited */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly intervalMs: number,
	) {}

	/**
	 * @param webhookUrl the address that the service calls, with its token
	 * @param timeoutMs how long to wait for the callback, milliseconds
	 */
	add(taskId: string, webhookUrl: string, timeoutMs: number): void {
		const address = new URL(webhookUrl);
		// A second try by *Retry On Fail* takes up the tasks of the first try, for which a check was started.
		if (isTestAddress(webhookUrl) || this.checked.includes(taskId)) return;
		// Each check makes the token anew, with the key of that time.
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
		this.early ??= this.leaveEarly();
	}

	/** To be called at the end of the run, however it ended: the created tasks go on in any case. */
	async leave(): Promise<void> {
		this.end.abort();
		await this.early;
		await this.leaveBehind();
	}

	private async leaveEarly(): Promise<void> {
		let pauseMs = MIN_CHECK_INTERVAL_MS;
		while ('value' in (await settled(clock.sleep(pauseMs, this.end.signal)))) {
			await this.leaveBehind();
			pauseMs = Math.min(2 * pauseMs, MAX_CHECK_INTERVAL_MS);
		}
	}

	private async leaveBehind(): Promise<void> {
		const { context, intervalMs } = this;
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
		const left = await settled(startCheck(context, check));
		if ('value' in left) {
			const taskIds = [...this.checked, ...deliveries.map(({ taskId }) => taskId)];
			context.getContext('node')[KEY] = { of: context.getExecutionId(), taskIds };
			return;
		}
		// n8n may be able to start the check at the end of the run.
		this.deliveries = [...deliveries, ...this.deliveries];
		context.logger.warn(
			`${nodeName}: n8n did not start the execution that checks the tasks, so nothing makes up for a callback that does not come. ${messageOf(left.error)} Deliver such tasks with the operation Task → Send Result Again.`,
		);
	}

	/** The tasks for which this execution has started a check. A retry from the list is another execution. */
	private get checked(): string[] {
		const stored = this.context.getContext('node')[KEY];
		const isOurs = isRecord(stored) && stored.of === this.context.getExecutionId();
		return isOurs ? (stored.taskIds as string[]) : [];
	}
}
