import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { IfSomeFail } from '../report/ifSomeFail';
import { includedInput } from '../report/includeInput';
import type { ItemResult, OutputOptions } from '../report/taskItems';
import type { TaskRecord } from '../service/taskRecord';
import { ItemError, messageOf } from '../shared/itemError';
import { settled } from '../shared/promises';
import { failedItem, presentItem } from './checkForResults';
import { afterPause, MIN_CHECK_INTERVAL_MS } from './checkSchedule';
import { CHECK_VERSION, noteCheck, type ResultsCheck, type SuspendedItem } from './checkState';
import { startCheck } from './checkSupervisor';

/** A task that was held, and is handed over unfinished. */
export interface HandedOver {
	/** The input item, and how long its task is waited for in all, milliseconds. */
	item: { itemIndex: number; timeoutMs: number; output: OutputOptions };
	/** The fields of the item that do not come from the task's record, its `taskId` among them. */
	json: IDataObject;
	/** The last record read, if a read brought one. */
	last: TaskRecord | undefined;
	/** When the task's time is up, milliseconds of the clock. */
	deadline: number;
	/** Until when the service asked to wait, milliseconds of the clock. */
	notBefore: number;
}

/**
 * Suspends the execution until the tasks that were handed over are finished. From then on n8n checks on them, and
 * resumes the execution with the results of all items.
 *
 * @param results what became of each item while the run was held; takes the items that n8n shows and stores meanwhile
 * @param clockNow milliseconds of the clock
 * @returns whether n8n suspended it
 */
export async function suspendRun(
	context: IExecuteFunctions,
	handedOver: readonly HandedOver[],
	results: Array<ItemResult | undefined>,
	{ checkIntervalMs, ifSomeFail }: { checkIntervalMs: number; ifSomeFail: IfSomeFail },
	clockNow: number,
): Promise<boolean> {
	const node = context.getNode();
	// The time of day: other processes read what is stored.
	const now = Date.now();
	const waiting = handedOver.map(({ item, json, last, deadline }): SuspendedItem => {
		const { itemIndex, timeoutMs, output } = item;
		const waits = { until: now + Math.max(0, deadline - clockNow), timeoutMs };
		return { item: itemIndex, json, ...(last && { record: last.record }), waits, output };
	});
	const check: ResultsCheck = {
		version: CHECK_VERSION,
		purpose: 'results',
		nodeName: node.name,
		parentExecutionId: context.getExecutionId(),
		startedAt: now,
		intervalMs: checkIntervalMs,
		onError: node.onError ?? (context.continueOnFail() ? 'continueRegularOutput' : 'stopWorkflow'),
		ifSomeFail,
		items: [...results.flatMap(itemOfResult), ...waiting]
			.sort((one, other) => one.item - other.item)
			.map((item) => {
				const input = includedInput(context, item.item);
				return { ...item, ...(input && { input }) };
			}),
	};
	const pauseMs = handedOver.reduce(
		(longest, { notBefore }) => Math.max(longest, notBefore - clockNow),
		0,
	);
	// The first check comes after a minute: a shorter pause is over by then.
	const longMs = pauseMs > MIN_CHECK_INTERVAL_MS ? pauseMs : 0;
	const begun = await settled(startCheck(context, afterPause(check, longMs, now)));
	if ('error' in begun) {
		const why = messageOf(begun.error);
		context.logger.warn(
			`${node.name}: n8n did not suspend this execution, so the node goes on waiting. ${why}`,
		);
		return false;
	}
	noteCheck(context, { url: begun.value, taskIds: waiting.map(({ json }) => String(json.taskId)) });
	// `timedOut` is true the moment n8n lets these out instead of the results.
	for (const each of waiting) results[each.item] = [presentItem(each)];
	return true;
}

/** An item that ended while the run was held leaves as it is when all others have ended. */
function itemOfResult(result: ItemResult | undefined, item: number): SuspendedItem[] {
	if (result instanceof ItemError) return [failedItem({ item }, result)];
	const [only] = result ?? [];
	return only ? [{ item, json: only.json, ...(only.binary && { binary: only.binary }) }] : [];
}

/**
 * Replaces what n8n stores as the input of this node. The resuming webhook sees these items. They leave the node where
 * n8n resumes the execution by time.
 */
export function storeInput(context: IExecuteFunctions, items: INodeExecutionData[]): void {
	const execution = context.getExecuteData();
	// A copy: with an error output n8n takes the items out of the list that the node returns.
	execution.data = { ...execution.data, main: [[...items]] };
}
