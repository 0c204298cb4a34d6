import type { IExecuteFunctions } from 'n8n-workflow';

import { connect } from '../service/connect';
import { type Clock, systemClock } from '../shared/clock';
import { ExpiringCache } from '../shared/expiringCache';
import { wakeCheck } from './resumeWebhook';

/** For how long a task is remembered, and how many: what is forgotten ends at the next check. */
const MAX_AGE_MS = 24 * 3_600_000;
const MAX_TASKS = 10_000;

/** The checks that this process has left behind for tasks of a trigger, and which of their tasks have not started it. */
export class DeliveryChecks {
	private readonly checks: ExpiringCache<{ url: string; left: Set<string> }>;

	constructor(clock: Clock) {
		this.checks = new ExpiringCache(clock, MAX_AGE_MS, MAX_TASKS);
	}

	/** @param url where the check is told to check */
	note(url: string, taskIds: readonly string[]): void {
		const check = { url, left: new Set(taskIds) };
		for (const taskId of taskIds) this.checks.set(taskId, check);
	}

	/** @returns the URL of the check whose last task this was; undefined where it waits for others, or is not known here */
	started(taskId: string): string | undefined {
		const check = this.checks.get(taskId);
		this.checks.delete(taskId);
		check?.left.delete(taskId);
		return check?.left.size === 0 ? check.url : undefined;
	}
}

export const deliveryChecks = new DeliveryChecks(systemClock);

/**
 * Ends the check of a task that has started its trigger's workflow, where it was the check's last one. The check asks the
 * ledger itself whether all have started, so nothing is lost where n8n is killed now: it checks again at its own time.
 */
export async function endCheckOf(context: IExecuteFunctions, taskId: string): Promise<void> {
	const url = deliveryChecks.started(taskId);
	if (url === undefined) return;
	const { apiKey } = await connect(context);
	await wakeCheck(context, url, taskId, apiKey);
}
