import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { IfSomeFail } from '../report/ifSomeFail';
import { includedInputs } from '../report/includeInput';
import type { ItemResult, OutputOptions } from '../report/taskItems';
import type { TaskRecord } from '../service/taskRecord';
import { ItemError, messageOf } from '../shared/itemError';
import { settled } from '../shared/promises';
import { failedItem, presentItem } from './checkForResults';
import { afterPause, MIN_CHECK_INTERVAL_MS } from './checkSchedule';
import { CHECK_VERSION, noteCheck, type ResultsCheck, type SuspendedItem } from './checkState';
import { startCheck } from './checkSupervisor';

/** An unfinished task that a held run hands over to the checks. */
export interface HandedOver {
	/** The input item, and its whole timeout in milliseconds. */
	item: { itemIndex: number; timeoutMs: number; output: OutputOptions };
	/** The fields of the item that do not come from the task's record, its `taskId` among them. */
	json: IDataObject;
	/** The last record read, if a read brought one. */
	last: TaskRecord | undefined;
	/** When the task's time is up, milliseconds of the clock. */
	deadline: number;
	/** The end of the pause that the service asked for, milliseconds of the clock. */
	notBefore: number;
}

/**
 * Suspends the execution until the tasks that were handed over are finished. From then on sub-executions check the
 * tasks, and n8n resumes the execution with the results of all items.
 *
 * @param results the result of each item while the run was held; receives the items that n8n shows and stores meanwhile
 * @param clockNow milliseconds of the clock
 * @returns whether n8n suspended the execution
 */
export async function suspendRun(
	context: IExecuteFunctions,
	handedOver: readonly HandedOver[],
	results: ItemResult[],
	{ checkIntervalMs, ifSomeFail }: { checkIntervalMs: number; ifSomeFail: IfSomeFail },
	clockNow: number,
): Promise<boolean> {
	const node = context.getNode();
	// The time of day: other processes read what is stored.
	const now = Date.now();
	const items = results.map(itemOfResult);
	for (const { item, json, last, deadline } of handedOver) {
		const { itemIndex, timeoutMs, output } = item;
		const waits = { until: now + Math.max(0, deadline - clockNow), timeoutMs };
		items[itemIndex] = { item: itemIndex, json, record: last?.record, waits, output };
	}
	const included = includedInputs(context);
	const check: ResultsCheck = {
		version: CHECK_VERSION,
		purpose: 'results',
		nodeName: node.name,
		parentExecutionId: context.getExecutionId(),
		startedAt: now,
		intervalMs: checkIntervalMs,
		onError: node.onError ?? (context.continueOnFail() ? 'continueRegularOutput' : 'stopWorkflow'),
		ifSomeFail,
		items: items.map((each) => ({ ...each, input: included(each.item) })),
	};
	const pauseMs = handedOver.reduce(
		(longest, { notBefore }) => Math.max(longest, notBefore - clockNow),
		0,
	);
	// The first check comes after a minute, when a shorter pause is over.
	const longMs = pauseMs > MIN_CHECK_INTERVAL_MS ? pauseMs : 0;
	const begun = await settled(startCheck(context, afterPause(check, longMs)));
	if ('error' in begun) {
		const why = messageOf(begun.error);
		context.logger.warn(
			`${node.name}: n8n did not suspend this execution, so the node goes on waiting. ${why}`,
		);
		return false;
	}
	const taskIds = handedOver.map(({ json }) => String(json.taskId));
	noteCheck(context, { url: begun.value, taskIds });
	for (const each of items) {
		// If n8n puts these items out instead of the results, `timedOut` is true.
		if (!each.failure) results[each.item] = [presentItem(each)];
	}
	return true;
}

/**
 * An item that ended while the run was held leaves unchanged with the others. An item that a stopping node has not begun
 * gets a place, too: n8n links items by their places.
 */
function itemOfResult(result: ItemResult, item: number): SuspendedItem {
	if (result instanceof ItemError) return failedItem({ item }, result);
	const [{ json, binary } = NOT_BEGUN] = result;
	return { item, json, binary };
}

const NOT_BEGUN: INodeExecutionData = {
	json: { error: 'Nothing was done for this item, because another item has failed' },
};

/**
 * Replaces the input of this node in the stored execution. The resuming webhook sees these items, and they are the
 * node's output if n8n resumes the execution by time.
 */
export function storeInput(context: IExecuteFunctions, items: INodeExecutionData[]): void {
	const execution = context.getExecuteData();
	// A copy, because n8n removes items with an error from the returned list if the node has an error output.
	execution.data = { ...execution.data, main: [[...items]] };
	// n8n disables this object when the execution goes on. Another branch may lead to this node, too.
	execution.node = { ...execution.node };
}
