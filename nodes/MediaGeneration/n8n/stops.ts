import type { IExecuteFunctions, IRunExecutionData } from 'n8n-workflow';

import { clock } from '../shared/clock';
import { Semaphore, settled } from '../shared/promises';
import {
	executionIdOf,
	internalsOf,
	isCalled,
	isMcpTrigger,
	isOnWorker,
	isStopOf,
	modeOf,
	stopSignal,
	triggerOf,
} from './internals';

/** A question that takes so long costs no more than an order, and is asked before each order; milliseconds. */
const CHEAP_MS = 25;

/** For what it takes beyond, so many times as long passes without one: n8n parses all that is stored of the execution. */
const PAUSE_FACTOR = 20;

/** Between two orders that ask, milliseconds: an order takes so long until it has left. */
const GAP_MS = 40;

/**
 * Looks for the stop of a run, as n8n stores it. n8n tells a node of most stops by a signal. But in queue mode a worker
 * hears nothing if a webhook processor started the execution, and a sub-workflow hears nothing if somebody stops its
 * caller: shown on n8n 2.41 by test/e2e/process/facts.ts and test/e2e/queue.test.ts. Only these runs ask.
 *
 * @returns a function to be called before each order, which says whether n8n had stored a stop when it was asked last:
 *   just now, for each order anew, unless the question is costly. It throws Stopped if the execution was stopped.
 */
export function lookForStop(context: IExecuteFunctions): () => Promise<boolean> {
	const own = modeOf(context) === 'webhook' && isOnWorker(context);
	if (!own && !isCalled(context)) return async () => await Promise.resolve(false);
	const oneAtATime = new Semaphore(1);
	let askAt = -Infinity;
	let askedAt = -Infinity;
	// A process that is busy answers late. The fastest answer tells what the question costs.
	let costMs = Infinity;
	let isFound = false;
	const ask = async () => {
		if (isFound || clock.now() < askAt) return isFound;
		const gapMs = askedAt + GAP_MS - clock.now();
		if (gapMs > 0) await clock.sleep(gapMs, stopSignal(context));
		const begunAt = clock.now();
		const found = await settled(isStopped(context, own));
		const now = clock.now();
		askedAt = now;
		costMs = Math.min(costMs, now - begunAt);
		askAt = now + PAUSE_FACTOR * Math.max(0, costMs - CHEAP_MS);
		// If n8n does not answer, the run goes on.
		isFound = 'value' in found && found.value;
		return isFound;
	};
	return async () => await oneAtATime.run(ask);
}

/** Whether n8n has stored a stop of this execution, if that is asked, or of an execution that waits for its end. */
async function isStopped(context: IExecuteFunctions, own: boolean): Promise<boolean> {
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
