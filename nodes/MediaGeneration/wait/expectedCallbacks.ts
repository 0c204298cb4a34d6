import type { IExecuteFunctions } from 'n8n-workflow';

import { TOKEN_PARAMETER } from '../callback/callbackToken';
import type { CreatePlan } from '../plan/itemPlan';
import { attempt } from '../shared/attempt';
import { leaveBehind } from './subExecution';
import { WATCH_VERSION, type WatchedDelivery } from './watchState';

/** n8n answers at a test address only while somebody listens. */
const TEST_ADDRESS = '/webhook-test/';

/** The created tasks of a run whose callbacks a trigger waits for. */
export class ExpectedCallbacks {
	private readonly deliveries: WatchedDelivery[] = [];

	/** @param now the time of day, milliseconds since 1970: what is stored is read by other processes */
	constructor(private readonly now: () => number = Date.now) {}

	/** Notes a created task, if a trigger is to be notified of it. */
	add(taskId: string, { completion, webhookUrl, timeoutMs }: CreatePlan): void {
		if (completion !== 'trigger' || webhookUrl === undefined) return;
		const address = new URL(webhookUrl);
		if (address.pathname.includes(TEST_ADDRESS)) return;
		// It is made anew at each look, with the key of then.
		address.searchParams.delete(TOKEN_PARAMETER);
		this.deliveries.push({ taskId, until: this.now() + timeoutMs, address: address.href });
	}

	/**
	 * Leaves sub-executions behind that make up for callbacks that do not come.
	 *
	 * @param intervalMs milliseconds between two looks; 0 lets it grow with the time waited
	 */
	async watch(context: IExecuteFunctions, intervalMs: number): Promise<void> {
		if (this.deliveries.length === 0) return;
		const nodeName = context.getNode().name;
		const left = await attempt(
			async () =>
				await leaveBehind(context, {
					version: WATCH_VERSION,
					purpose: 'delivery',
					nodeName,
					startedAt: this.now(),
					intervalMs,
					deliveries: this.deliveries,
				}),
		);
		if ('value' in left) return;
		const { error } = left;
		context.logger.warn(
			`${nodeName}: callbacks that do not come are not made up for, because n8n did not start a sub-execution. ${error instanceof Error ? error.message : ''} Deliver them with the operation Task → Redeliver.`,
		);
	}
}
