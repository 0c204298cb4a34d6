import type { IExecuteFunctions } from 'n8n-workflow';

import type { Clock } from './clock';
import { internalsOf, isStopOf } from './n8nInternals';
import { settled } from './promises';

/** How often n8n is asked, milliseconds. */
const ASK_MS = 10_000;

/**
 * The stop of a run, as n8n stores it. n8n tells a node of most stops by a signal. But in queue mode a worker hears
 * nothing if a webhook processor started the execution, and a sub-workflow hears nothing if somebody stops its caller.
 */
export class StoredStop {
	/** When to ask n8n again, milliseconds of the clock. */
	private askAt = -Infinity;

	/** The last question. Creates that are sent together share it. */
	private asked = Promise.resolve(false);

	constructor(
		private readonly context: IExecuteFunctions,
		private readonly clock: Clock,
	) {}

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
		const asked = await settled(isStopped(this.context));
		return 'value' in asked && asked.value;
	}
}

/** Whether n8n has stored a stop of this execution, or of an execution that waits for its end. */
async function isStopped(context: IExecuteFunctions): Promise<boolean> {
	let id: string | undefined = context.getExecutionId();
	// n8n's Agents have no executions.
	for (let callers = mostCallers(context); id !== undefined; callers--) {
		const data = await context.getExecutionDataById(id);
		if (isStopOf(id, data?.resultData.error)) return true;
		// n8n does not give the data of each caller that runs, so nothing follows where there are none.
		const caller = data?.parentExecution;
		if (caller?.shouldResume !== true || callers === 0) return false;
		id = caller.executionId;
	}
	return false;
}

/** How many callers wait: a retry names the caller of the execution that it repeats, and nobody waits for the retry. */
function mostCallers(context: IExecuteFunctions): number {
	if (context.getMode() === 'retry') return 0;
	return internalsOf(context).additionalData?.rootExecutionMode === 'retry' ? 1 : Infinity;
}
