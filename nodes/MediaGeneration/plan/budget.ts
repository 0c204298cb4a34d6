import { roundUsd } from '../service/prices';
import { ItemError } from '../shared/itemError';
import type { ItemParameters } from '../shared/parameters';
import { type CreatePlan, createsIn, type ItemPlan } from './itemPlan';

/** @throws ItemError where the known price is above the budget, or cannot be known */
export function checkBudget(items: Array<ItemPlan | ItemError>, first: ItemParameters): void {
	const budget = first.limit('maxCostUsd', 'Max Cost (USD)');
	if (budget === 0) return;
	const creates = createsIn(items);
	const unknown = creates.find(({ estimatedCostUsd }) => estimatedCostUsd === undefined);
	if (unknown) {
		throw new ItemError(
			`The price of item ${unknown.itemIndex} (model '${unknown.model}') is not known, so the limit of ${budget} USD cannot be kept`,
			{
				description:
					"Add the option 'Price per Task (USD)', set a 'Duration' if it is a video of the default model, or remove 'Max Cost (USD)'. Items are counted from 0, as in n8n's editor. No task was created.",
			},
		);
	}
	const total = knownCostUsd(creates);
	if (total > budget) {
		const batch = creates.length === 1 ? '1 task would cost' : `${creates.length} tasks would cost`;
		throw new ItemError(`${batch} ${total} USD, which is above the limit of ${budget} USD`, {
			description:
				"Raise 'Max Cost (USD)' in the options, or send fewer items. No task was created.",
		});
	}
}

/** @returns US dollars: what the tasks of known price cost together */
export function knownCostUsd(creates: readonly CreatePlan[]): number {
	return roundUsd(creates.reduce((sum, { estimatedCostUsd = 0 }) => sum + estimatedCostUsd, 0));
}
