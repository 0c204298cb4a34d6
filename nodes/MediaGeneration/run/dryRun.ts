import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { echo } from '../plan/inputFile';
import type { RunPlan } from '../plan/planRun';
import { type CreatePlan, createsIn, referenceOf } from '../plan/planTypes';
import { ItemError } from '../shared/itemError';
import { count, hint, priceOf, showHints, showWarnings } from './runHints';

/**
 * What a run would send, after all the checks of a real one. Nothing is sent, and no file is read.
 *
 * @returns an item for each task that would be created
 * @throws NodeOperationError for the first item that would be refused, unless the node's *On Error* lets it out
 */
export function dryRun(
	context: IExecuteFunctions,
	{ items, inputOf, warnings }: RunPlan,
): INodeExecutionData[] {
	const node = context.getNode();
	const refused = items.findIndex((item) => item instanceof ItemError);
	const error = items[refused];
	if (error instanceof ItemError && !context.continueOnFail()) {
		throw error.toNodeError(node, inputOf[refused]);
	}
	showWarnings(context, warnings);
	showHints(context, hint(costOf(createsIn(items))));
	return items.flatMap((item, slot): INodeExecutionData[] => {
		const pairedItem = { item: inputOf[slot] ?? 0 };
		if (item instanceof ItemError) return [item.toItem(node, pairedItem)];
		return item.kind === 'create' ? [{ json: wouldSend(item), pairedItem }] : [];
	});
}

function wouldSend(item: CreatePlan): INodeExecutionData['json'] {
	const { estimatedCostUsd } = item;
	return {
		...echo(item),
		...referenceOf(item),
		...(estimatedCostUsd !== undefined && { estimatedCostUsd }),
		dryRun: true,
	};
}

function costOf(creates: readonly CreatePlan[]): string {
	const known = creates.filter(({ estimatedCostUsd }) => estimatedCostUsd !== undefined).length;
	const retries = creates.reduce((most, { retryFailed = 0 }) => Math.max(most, retryFailed), 0);
	const again = `A failed task would be created again up to ${count(retries, 'time')}. Failed tasks are usually free.`;
	return [
		'Nothing was sent.',
		...priceOf(creates, (usd) => `${count(known, 'task')} would cost ${usd} USD.`),
		...(retries > 0 ? [again] : []),
	].join(' ');
}
