import type { IExecuteFunctions, IRunExecutionData } from 'n8n-workflow';

import { clock, settled } from '../shared/clock';
import {
	executionIdOf,
	internalsOf,
	isCalled,
	isMcpTrigger,
	isOnWorker,
	isStopOf,
	modeOf,
	triggerOf,
} from './internals';

/** Between two questions, milliseconds; and so many times as long as a question takes: n8n parses all that it has stored. */
const PAUSE_MS = 3_000;
const PAUSE_FACTOR = 5;

/**
 * Looks for the stop of a run, as n8n stores it. n8n tells a node of most stops by a signal. But in queue mode a worker
 * hears nothing if a webhook processor started the execution, and a sub-workflow hears nothing if somebody stops its
 * caller: shown on n8n 2.41 by test/e2e/process/facts.ts and test/e2e/queue.test.ts. Only these runs ask.
 *
 * @returns a function to be called before each order, which asks before the first one and then every few seconds. It says
 *   whether n8n had stored a stop when it was asked last.
 */
export function lookForStop(context: IExecuteFunctions): () => Promise<boolean> {
	const own = modeOf(context) === 'webhook' && isOnWorker(context);
	if (!own && !isCalled(context)) return async () => await Promise.resolve(false);
	let askAt = -Infinity;
	let last = Promise.resolve(false);
	const ask = async (): Promise<boolean> => {
		const begunAt = clock.now();
		const found = await settled(hasStoredStop(context, own));
		const now = clock.now();
		askAt = now + Math.max(PAUSE_MS, PAUSE_FACTOR * (now - begunAt));
		// If n8n does not answer, the run goes on.
		return 'value' in found && found.value;
	};
	return async () => {
		if (clock.now() < askAt) return await last;
		// Orders that come together share a question.
		askAt = Infinity;
		last = ask();
		return await last;
	};
}

/** Whether n8n has stored a stop of this execution, if that is asked, or of an execution that waits for its end. */
async function hasStoredStop(context: IExecuteFunctions, own: boolean): Promise<boolean> {
	const id = executionIdOf(context) ?? '';
	const { parentExecution: caller } = internalsOf(context).runExecutionData ?? {};
	if (own && isStopOf(id, (await context.getExecutionDataById(id))?.resultData.error)) return true;
	// A retry names the caller of the execution that it repeats, and nobody waits for the retry.
	let callers = internalsOf(context).additionalData?.rootExecutionMode === 'retry' ? 1 : Infinity;
	for (let next = caller; next?.shouldResume === true && callers > 0; callers--) {
		const { executionId } = next;
		const data = await context.getExecutionDataById(executionId);
		if (isStopOf(executionId, data?.resultData.error) || isOver(data)) return true;
		// n8n does not give the data of each caller that runs, so nothing follows where there are none.
		next = data?.parentExecution;
	}
	return false;
}

/**
 * Whether a caller is at its end, although it waits for the end of this run. A worker stores a stop so: without an error,
 * and with nothing that is still to run. An MCP server's execution ends before its tool begins.
 */
function isOver(data: IRunExecutionData | undefined): boolean {
	const { nodeExecutionStack: toRun, waitingExecution = {} } = data?.executionData ?? {};
	if (toRun?.length !== 0 || Object.keys(waitingExecution).length > 0) return false;
	return !isMcpTrigger(triggerOf(data)) || data?.parentExecution !== undefined;
}
