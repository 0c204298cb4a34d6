import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { executionIdOf, nodeContext, webhookBase } from '../n8n/internals';
import { startSubExecution } from '../n8n/subExecution';
import { LEAST_SLEEP_MS, LONGEST_SLEEP_MS } from '../n8n/wakes';
import { TOKEN_PARAMETER } from '../shared/addresses';
import { clock } from '../shared/clock';
import { messageOf } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { writeLog } from '../shared/log';
import { settled } from '../shared/promises';
import { isTestAddress, type Recipient, recipientAt } from './callbackAddress';

/** The key in the node's context of the tasks for which a check was started. */
const CHECKED_KEY = 'checkedCallbacks';

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
		if ('value' in begun) {
			const taskIds = [...this.checked, ...deliveries.map(({ taskId }) => taskId)];
			nodeContext(context)[CHECKED_KEY] = { of: executionIdOf(context), taskIds };
			return;
		}
		// n8n may be able to start the check at the end of the run.
		this.deliveries = [...deliveries, ...this.deliveries];
		writeLog(
			context,
			'warn',
			`n8n did not start the execution that checks the tasks, so nothing makes up for a callback that does not come. ${messageOf(begun.error)} Deliver such tasks with the operation Repeat Callback.`,
		);
	}

	/** The tasks for which this execution has started a check. A retry from the list is another execution. */
	private get checked(): string[] {
		const stored = nodeContext(this.context)[CHECKED_KEY];
		const isOurs = isRecord(stored) && stored.of === executionIdOf(this.context);
		return isOurs ? (stored.taskIds as string[]) : [];
	}
}

/** A task whose result a trigger waits for. */
export interface AwaitedCallback extends Recipient {
	taskId: string;
	/** When its time is up, milliseconds of the clock. */
	until: number;
}

const NOTE =
	'## n8n made this execution by itself\nA Media Generation node has ordered results for a Media Generation Trigger. This execution makes up for callbacks that do not come: it waits for the tasks, and hands what is finished to the trigger. It ends by itself when the trigger has all of them.\n\n**Do not stop or delete it** while you wait for results. Its node shows how many have come.';

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
