import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { taskJson, type OutputOptions } from '../report/items';
import type { IfSomeFail } from '../report/failures';
import { includedInput } from '../report/includedInput';
import type { ItemResult } from '../report/outcome';
import type { TaskRecord } from '../service/taskRecord';
import { settled } from '../shared/concurrency';
import { ItemError, messageOf } from '../shared/itemError';
import { startResultsCheck } from './checkExecutions';
import { CHECK_VERSION, failedItem, type ResultsCheck, type SuspendedItem } from './checkState';
import { pendingItem } from './suspension';

/** A task that was held, and is handed over unfinished. */
export interface HandedOver {
	/** The index of the input item. */
	itemIndex: number;
	/** The fields of the item that do not come from the task's record, its `taskId` among them. */
	json: IDataObject;
	/** The last record read, if a read brought one. */
	last: TaskRecord | undefined;
	/** How long it is waited for in all, milliseconds. */
	timeoutMs: number;
	/** How much of that time is left, milliseconds. */
	leftMs: number;
}

/** What the items of a run have in common. */
export interface SuspendOptions {
	/** Milliseconds between two checks; 0 lets the pause grow with the time waited. */
	checkIntervalMs: number;
	ifSomeFail: IfSomeFail;
	output: OutputOptions;
}

/**
 * Suspends the execution until the tasks that were handed over are finished. From then on n8n checks on them, and
 * resumes the execution with the results of all items.
 *
 * @param results what became of each item while the run was held; takes the items that n8n shows and stores meanwhile
 * @param now the time of day, milliseconds since 1970: other processes read what is stored
 * @returns whether n8n suspended it
 */
export async function suspendRun(
	context: IExecuteFunctions,
	handedOver: readonly HandedOver[],
	results: Array<ItemResult | undefined>,
	options: SuspendOptions,
	now = Date.now(),
): Promise<boolean> {
	const state: ResultsCheck = {
		version: CHECK_VERSION,
		purpose: 'results',
		nodeName: context.getNode().name,
		parentExecutionId: context.getExecutionId(),
		startedAt: now,
		intervalMs: options.checkIntervalMs,
		onError: onErrorOf(context),
		ifSomeFail: options.ifSomeFail,
		output: options.output,
		items: [...results.flatMap(itemOfResult), ...handedOver.map((task) => itemOfTask(task, now))]
			.sort((one, other) => one.item - other.item)
			.map((item) => {
				const input = includedInput(context, item.item);
				return { ...item, ...(input && { input }) };
			}),
	};
	const begun = await settled(startResultsCheck(context, state));
	if ('error' in begun || !begun.value) {
		const why = 'error' in begun ? messageOf(begun.error) : '';
		context.logger.warn(
			`${context.getNode().name}: n8n did not suspend this execution, so the node goes on waiting. ${why}`,
		);
		return false;
	}
	for (const { itemIndex, json, last } of handedOver) {
		results[itemIndex] = [pendingItem({ ...json, ...(last && taskJson(last)) }, itemIndex)];
	}
	return true;
}

/** An item that ended while the run was held leaves as it is when all others have ended. */
function itemOfResult(result: ItemResult | undefined, item: number): SuspendedItem[] {
	if (result instanceof ItemError) return [failedItem({ item }, result)];
	const [only] = result ?? [];
	return only ? [{ item, json: only.json, ...(only.binary && { binary: only.binary }) }] : [];
}

function itemOfTask(
	{ itemIndex, json, last, timeoutMs, leftMs }: HandedOver,
	now: number,
): SuspendedItem {
	return {
		item: itemIndex,
		json,
		...(last && { record: last.record }),
		waits: { until: now + leftMs, timeoutMs },
	};
}

/** What the node does where items fail; before n8n had the setting there was a switch. */
function onErrorOf(context: IExecuteFunctions): string {
	const { onError } = context.getNode();
	return onError ?? (context.continueOnFail() ? 'continueRegularOutput' : 'stopWorkflow');
}
