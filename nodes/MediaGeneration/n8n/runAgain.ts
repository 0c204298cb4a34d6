import type { IExecuteData, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { settled } from '../shared/clock';
import { internalsOf, stackEntry } from './internals';

/** An entry of n8n's stack, with the input of a node that sleeps. */
interface SleepingEntry extends IExecuteData {
	inputOfSleeper?: INodeExecutionData[];
}

/**
 * Suspends the execution until a moment. Then n8n runs this node again: with its input, its context
 * (`getContext('node')`) and everything else as n8n has stored it.
 *
 * n8n passes over a node that waited: it disables the node of the first entry on its stack, and a disabled node puts out
 * its input. So the node leaves an empty entry to pass over, and stands behind that entry once more. *Retry execution*
 * with the currently saved workflow disables both, because it gives both the same node: `ifPassedOver` leaves then, and
 * not the input.
 *
 * It relies on n8n's `handleWaitingState` (`workflow-execute.ts`, n8n 2.41), shown by test/e2e/process/sleeping.ts, and for an
 * orderly shutdown on its list of active executions, shown by test/e2e/restart.test.ts.
 *
 * @param until when to wake up; n8n may be a minute late
 * @param ifPassedOver the items that leave if n8n passes over the sleeping node
 * @returns what `execute` is to return
 */
export async function sleepAndRunAgain(
	context: IExecuteFunctions,
	until: Date,
	ifPassedOver: INodeExecutionData[],
): Promise<INodeExecutionData[][]> {
	const entry: SleepingEntry = context.getExecuteData();
	const { runExecutionData, runIndex, additionalData } = internalsOf(context);
	// The retry of a stopped execution begins with the error of the stop, which n8n would throw when it wakes the node.
	delete runExecutionData?.resultData.error;
	const inputOfSleeper = entry.inputOfSleeper ?? entry.data.main?.[0] ?? [];
	const sleeper: SleepingEntry = {
		...entry,
		data: { main: [ifPassedOver] },
		// n8n stops an execution as an endless loop if a node runs twice in a row under one index.
		runIndex,
		inputOfSleeper,
	};
	runExecutionData?.executionData?.nodeExecutionStack.unshift(sleeper);
	// Copies: another branch may lead to this node, too. With *Always Output Data* an empty item would leave at each wake.
	entry.node = { ...entry.node, alwaysOutputData: false };
	// Not an empty list of items: in a workflow with the former order of execution a Merge node would take that for an input.
	entry.data = { main: [] };
	const put = await settled(async () => {
		await context.putExecutionToWait(until);
		// n8n keeps what waits in the memory of the process, and a shutdown that has begun waits for it in vain. What runs is
		// taken off the list when it is stored. Whether the execution waits is decided by its date.
		additionalData?.setExecutionStatus?.('running');
	});
	// n8n wakes some executions twice. If the other run is off the list before, n8n sets the date, and fails then.
	if ('error' in put && !runExecutionData?.waitTill) throw put.error;
	return [[]];
}

/**
 * Gives a node that n8n runs again its input back. To be called first in each run of a node that may sleep.
 *
 * @returns whether the node was asleep
 */
export function takeInputBack(context: IExecuteFunctions): boolean {
	const entry: SleepingEntry | undefined = stackEntry(context);
	if (entry?.inputOfSleeper === undefined) return false;
	const { inputOfSleeper, data } = entry;
	const items = inputOfSleeper.map((item) => ({ ...item }));
	const whole = data.main?.[0] ?? [];
	const given = context.getInputData();
	// In place: n8n has handed out these lists already. With *Execute Once* the node has a list of its own.
	whole.splice(0, whole.length, ...items);
	if (given !== whole) given.splice(0, given.length, ...items.slice(0, 1));
	return true;
}
