import type { IExecuteFunctions } from 'n8n-workflow';

import { clock } from '../shared/clock';
import { executionIdOf, internalsOf, isStopOf, modeOf } from './internals';
import { settled } from '../shared/promises';

/** How often n8n is asked, milliseconds: it parses all that is stored of the execution. */
const ASK_MS = 30_000;

/**
 * Looks for the stop of a run, as n8n stores it. n8n tells a node of most stops by a signal. But in queue mode a worker
 * hears nothing if a webhook processor started the execution, and a sub-workflow hears nothing if somebody stops its
 * caller: shown on n8n 2.41 by test/e2e/action.test.ts and test/e2e/queue.test.ts. Only these runs ask.
 *
 * @returns a function that says whether n8n had stored a stop when it was asked last, at most half a minute ago
 */
export function storedStop(context: IExecuteFunctions): () => Promise<boolean> {
	const { parentExecution } = internalsOf(context).runExecutionData ?? {};
	const isDeaf = modeOf(context) === 'webhook' || parentExecution !== undefined;
	if (!isDeaf) return async () => await Promise.resolve(false);
	let askAt = clock.now() + ASK_MS;
	let asked = Promise.resolve(false);
	const ask = async () => {
		const found = await settled(isStopped(context));
		// If n8n does not answer, the run goes on.
		return 'value' in found && found.value;
	};
	return async () => {
		const now = clock.now();
		// Creates that are sent together share the question.
		if (now >= askAt) {
			askAt = now + ASK_MS;
			asked = ask();
		}
		return await asked;
	};
}

/** Whether n8n has stored a stop of this execution, or of an execution that waits for its end. */
async function isStopped(context: IExecuteFunctions): Promise<boolean> {
	let id = executionIdOf(context);
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
	if (modeOf(context) === 'retry') return 0;
	return internalsOf(context).additionalData?.rootExecutionMode === 'retry' ? 1 : Infinity;
}
