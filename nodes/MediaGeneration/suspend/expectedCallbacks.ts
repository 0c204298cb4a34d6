import type { IExecuteFunctions } from 'n8n-workflow';

import { TOKEN_PARAMETER } from '../callback/callbackToken';
import { triggerAt } from '../callback/triggerCallbackUrl';
import { Semaphore, settled } from '../shared/promises';
import type { Clock } from '../shared/clock';
import { webhookBase } from '../shared/n8nInternals';
import { messageOf } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { startCheck } from './checkSupervisor';
import { type AwaitedDelivery, CHECK_VERSION } from './checkState';
import { MAX_CHECK_INTERVAL_MS, MIN_CHECK_INTERVAL_MS } from './checkSchedule';

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
