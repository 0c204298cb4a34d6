import type { IExecuteFunctions } from 'n8n-workflow';

import type { Clock } from './clock';
import { isRecord } from './json';
import { settled } from './promises';

/** How often n8n is asked, milliseconds. A shorter run does not ask. */
const ASK_MS = 10_000;

/**
 * The stop of a run, as n8n stores it. n8n tells a node of most stops by a signal. But in queue mode a worker hears
 * nothing if a webhook processor started the execution, and a sub-workflow hears nothing if somebody stops its caller.
 * So a run asks n8n while it creates tasks.
 */
export class StoredStop {
	/** When to ask n8n again, milliseconds of the clock. */
	private askAt: number;

	/** The last question. Creates that are sent together share it. */
	private asked = Promise.resolve(false);

	constructor(
		private readonly context: IExecuteFunctions,
		private readonly clock: Clock,
	) {
		this.askAt = clock.now() + ASK_MS;
	}

	/** Whether n8n had stored a stop when it was asked last, at most ten seconds ago. */
	async isFound(): Promise<boolean> {
		const now = this.clock.now();
		if (now >= this.askAt) {
			this.askAt = now + ASK_MS;
			this.asked = this.ask();
		}
		return await this.asked;
	}

	/** If n8n does not answer, the run goes on. */
	private async ask(): Promise<boolean> {
		const asked = await settled(isStopped(this.context, this.context.getExecutionId()));
		return 'value' in asked && asked.value;
	}
}

/** Whether n8n has stored a stop of an execution, or of an execution that waits for its end. */
async function isStopped(context: IExecuteFunctions, executionId: string): Promise<boolean> {
	const data = await context.getExecutionDataById(executionId);
	const { error } = { ...data?.resultData } as { error?: unknown };
	// The retry of a stopped execution begins with the error of that execution.
	const stopped = isRecord(error) && isRecord(error.extra) ? error.extra.executionId : undefined;
	if (stopped !== undefined && stopped === executionId) return true;
	const caller = data?.parentExecution;
	return caller?.shouldResume === true && (await isStopped(context, caller.executionId));
}
