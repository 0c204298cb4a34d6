import type { IExecuteFunctions } from 'n8n-workflow';

import { TOKEN_PARAMETER } from '../callback/callbackToken';
import { triggerIdAt } from '../callback/triggerUrl';
import type { CreatePlan } from '../plan/itemPlan';
import { attempt } from '../shared/attempt';
import type { Clock } from '../shared/clock';
import { webhookBase } from '../shared/insides';
import { leaveBehind } from './subExecution';
import { MAX_WATCH_INTERVAL_MS, MIN_WATCH_INTERVAL_MS } from './watchSchedule';
import { WATCH_VERSION, type WatchedDelivery } from './watchState';

/** n8n answers at a test address only while somebody listens. */
const TEST_ADDRESS = '/webhook-test/';

/** How long the end of a run may go unnoticed, milliseconds. */
const SECOND = 1000;

/**
 * The created tasks of a run whose callbacks a trigger waits for. Sub-executions that make up for callbacks that do not
 * come are left behind at the end of the run, and now and then before, since to create a large batch may take hours.
 */
export class ExpectedCallbacks {
	/** Those that nobody looks for yet. */
	private deliveries: WatchedDelivery[] = [];

	/** The sub-execution that is being begun. */
	private leaving: Promise<void> | undefined;

	private hasBegun = false;

	private isOver = false;

	/**
	 * @param now the time of day, milliseconds since 1970: what is stored is read by other processes
	 */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly intervalMs: number,
		private readonly clock: Clock,
		private readonly now: () => number = Date.now,
	) {}

	/** Notes a created task, if a trigger is to be notified of it. */
	add(taskId: string, { completion, webhookUrl, timeoutMs }: CreatePlan): void {
		if (completion !== 'trigger' || webhookUrl === undefined) return;
		const address = new URL(webhookUrl);
		if (address.pathname.includes(TEST_ADDRESS)) return;
		// It is made anew at each look, with the key of then.
		address.searchParams.delete(TOKEN_PARAMETER);
		const { href } = address;
		const base = webhookBase(this.context);
		const triggerId = triggerIdAt(this.context, href);
		const isOwn = base !== undefined && href.startsWith(`${base}/`);
		this.deliveries.push({
			taskId,
			until: this.now() + timeoutMs,
			address: href,
			...(triggerId !== undefined && { triggerId }),
			...(isOwn && { ownPath: href.slice(base.length) }),
		});
		if (this.hasBegun) return;
		this.hasBegun = true;
		void attempt(async () => await this.watchEarly());
	}

	/** At the end of the run, however it ended: the tasks that were created go on in any case. */
	async watch(): Promise<void> {
		this.isOver = true;
		await this.leaving;
		await this.leaveBehind();
	}

	private async watchEarly(): Promise<void> {
		let pauseMs = MIN_WATCH_INTERVAL_MS;
		let dueAt = this.clock.now() + pauseMs;
		for (;;) {
			while (this.clock.now() < dueAt) {
				await this.clock.sleep(SECOND, undefined);
				if (this.isOver) return;
			}
			this.leaving = this.leaveBehind();
			await this.leaving;
			pauseMs = Math.min(2 * pauseMs, MAX_WATCH_INTERVAL_MS);
			dueAt = this.clock.now() + pauseMs;
		}
	}

	private async leaveBehind(): Promise<void> {
		const { context, intervalMs } = this;
		const deliveries = this.deliveries.splice(0);
		if (deliveries.length === 0) return;
		const nodeName = context.getNode().name;
		const left = await attempt(
			async () =>
				await leaveBehind(context, {
					version: WATCH_VERSION,
					purpose: 'delivery',
					nodeName,
					startedAt: this.now(),
					intervalMs,
					deliveries,
				}),
		);
		if ('value' in left) return;
		// At the end of the run it may go better.
		this.deliveries.unshift(...deliveries);
		const { error } = left;
		context.logger.warn(
			`${nodeName}: callbacks that do not come are not made up for, because n8n did not start a sub-execution. ${error instanceof Error ? error.message : ''} Deliver them with the operation Task → Redeliver.`,
		);
	}
}
