import type { IExecuteFunctions, INodeExecutionData, NodeExecutionHint } from 'n8n-workflow';

import { echo } from '../create/requestInput';
import { knownCostUsd } from '../plan/budget';
import { type CreatePlan, createsIn, referenceOf } from '../plan/itemPlan';
import type { RunPlan } from '../plan/planRun';
import { ItemError } from '../shared/itemError';
import { count, showHints, warnOfSize } from './runHints';

/**
 * What a run would send, after all the checks of a real one. Nothing is sent, and no file is read.
 *
 * @returns an item for each task that would be created
 * @throws NodeOperationError for the first item that would be refused, unless the node's *On Error* lets it out
 */
export function dryRun(
	context: IExecuteFunctions,
	{ items, inputOf }: RunPlan,
): INodeExecutionData[] {
	const node = context.getNode();
	const refused = items.findIndex((item) => item instanceof ItemError);
	const error = items[refused];
	if (error instanceof ItemError && !context.continueOnFail()) {
		throw error.toNodeError(node, inputOf[refused]);
	}
	showHints(context, costHint(createsIn(items)), warnOfSize(context, items));
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

function costHint(creates: readonly CreatePlan[]): NodeExecutionHint {
	const known = creates.filter(({ estimatedCostUsd }) => estimatedCostUsd !== undefined);
	const unknown = creates.length - known.length;
	const cost =
		known.length === 0
			? `The price of ${count(unknown, 'task')} is not known`
			: `${count(known.length, 'task')} would cost ${knownCostUsd(known)} USD`;
	const more =
		known.length > 0 && unknown > 0
			? `; the price of ${count(unknown, 'more task')} is not known`
			: '';
	const retries = creates.reduce((most, { retryFailed = 0 }) => Math.max(most, retryFailed), 0);
	const anew =
		retries > 0
			? `; a failed task is free, and is created anew up to ${count(retries, 'time')}`
			: '';
	return { message: `${cost}${more}${anew}; nothing was sent`, location: 'outputPane' };
}
