import type { IExecuteFunctions } from 'n8n-workflow';

import { executionIdOf, nodeContext, webhookBase } from '../n8n/internals';
import { clock } from '../shared/clock';
import { messageOf } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { TOKEN_PARAMETER } from '../shared/ownAddresses';
import { settled } from '../shared/promises';
import { LEAST_SLEEP_MS, LONGEST_SLEEP_MS } from '../wait/nextWake';
import { type AwaitedCallback, startCallbackWait } from './callbackWait';
import { isTestAddress, triggerAt } from './triggerCallbackUrl';

/** The key in the node's context of the tasks for which a check was started. */
const KEY = 'checkedCallbacks';

/**
 * The created tasks of a run whose callbacks a trigger waits for. A check for missing callbacks is started at the end of
 * the run, and now and then before, since a large batch may take hours.
 */
export class ExpectedCallbacks {
	/** The tasks that nobody checks yet. */
	private deliveries: AwaitedCallback[] = [];

	private early: Promise<void> | undefined;

	/** Aborted at the end of the run. */
	private readonly end = new AbortController();

	constructor(private readonly context: IExecuteFunctions) {}

	/**
	 * @param webhookUrl the address that the service calls, with its token
	 * @param timeoutMs how long to wait for the callback, milliseconds
	 */
	add(taskId: string, webhookUrl: string, timeoutMs: number): void {
		const address = new URL(webhookUrl);
		// A second try by *Retry On Fail* takes up the tasks of the first try, for which a check was started.
		if (isTestAddress(webhookUrl) || this.checked.includes(taskId)) return;
		// Each turn makes the token anew, with the key of that time.
		address.searchParams.delete(TOKEN_PARAMETER);
		const { href } = address;
		const base = webhookBase(this.context);
		const isOwn = base !== undefined && href.startsWith(`${base}/`);
		this.deliveries.push({
			taskId,
			until: clock.now() + timeoutMs,
			address: isOwn ? href.slice(base.length) : href,
			triggerId: triggerAt(this.context, href),
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
		if ('value' in begun) {
			const taskIds = [...this.checked, ...deliveries.map(({ taskId }) => taskId)];
			nodeContext(context)[KEY] = { of: executionIdOf(context), taskIds };
			return;
		}
		// n8n may be able to start the check at the end of the run.
		this.deliveries = [...deliveries, ...this.deliveries];
		context.logger.warn(
			`${context.getNode().name}: n8n did not start the execution that checks the tasks, so nothing makes up for a callback that does not come. ${messageOf(begun.error)} Deliver such tasks with the operation Task → Send Result Again.`,
		);
	}

	/** The tasks for which this execution has started a check. A retry from the list is another execution. */
	private get checked(): string[] {
		const stored = nodeContext(this.context)[KEY];
		const isOurs = isRecord(stored) && stored.of === executionIdOf(this.context);
		return isOurs ? (stored.taskIds as string[]) : [];
	}
}
