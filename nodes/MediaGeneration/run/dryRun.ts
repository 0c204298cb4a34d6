import { echo } from '../plan/inputFile';
import { referenceOf } from '../plan/planTypes';
import type { RunContext } from './runContext';

/** Lets each item say what it would send. Nothing is sent, and no file is read. */
export function dryRun({ plan, results, isStopping }: RunContext): void {
	if (isStopping) return;
	for (const [index, item] of plan.items.entries()) {
		if (item.kind !== 'create') continue;
		const { estimatedCostUsd, itemIndex } = item;
		const cost = estimatedCostUsd !== undefined && { estimatedCostUsd };
		const json = { ...echo(item), ...referenceOf(item), ...cost, dryRun: true };
		results[index] = [{ json, pairedItem: { item: itemIndex } }];
	}
}
