import { roundUsd } from '../service/prices';
import { ItemError } from '../shared/itemError';
import { plainName, toNumber } from '../shared/json';
import type { CreatePlan } from './planTypes';

/** What makes a price known, as parts of sentences. */
export const ENTER_PRICE = "enter the model with its price under 'Models' in the credential";
export const ENTER_DURATION =
	"enter 'Duration (Seconds)', or the length under the model's own name for it in 'Additional Fields'";

/**
 * @param creates the tasks that are to be ordered
 * @param paidUsd what the run has ordered before, US dollars
 * @returns why the batch is refused, if it is: its known price is above the budget, or a price is not known
 */
export function budgetRefusal(creates: readonly CreatePlan[], paidUsd = 0): ItemError | undefined {
	// If an expression gives the items different limits, the lowest limit counts.
	const budget = creates.reduce(
		(least, { maxCostUsd }) => Math.min(least, maxCostUsd || least),
		Infinity,
	);
	if (budget === Infinity) return undefined;
	const unknown = creates.find(({ estimatedCostUsd }) => estimatedCostUsd === undefined);
	if (unknown) {
		const { model, itemIndex, lacksDuration } = unknown;
		const why = lacksDuration
			? `The price of model '${model}' is by the second, and the item has no duration`
			: `The price of model '${model}' is not known`;
		const wayOut = lacksDuration ? ENTER_DURATION : ENTER_PRICE;
		const place = creates.length > 1 ? ` (item ${itemIndex + 1})` : '';
		return new ItemError(`${why}, so 'Max Cost (USD)' of ${budget} cannot be kept${place}`, {
			description: `To make the price known, ${wayOut}. No task was created.`,
		});
	}
	const total = roundUsd(knownCostUsd(creates) + paidUsd);
	if (total > budget) {
		const batch = creates.length === 1 ? '1 task would cost' : `${creates.length} tasks would cost`;
		const before = paidUsd > 0 ? ` with ${paidUsd} USD for the tasks before` : '';
		return new ItemError(
			`${batch} ${total} USD${before}, which is above the limit of ${budget} USD`,
			{
				description:
					"Raise 'Max Cost (USD)' in the options, or send fewer items. No task was created.",
			},
		);
	}
	return undefined;
}

/** The usual names of the input field for the number of results, as `plainName` writes them. */
const COUNT_FIELDS = [
	'n',
	'numimages',
	'numberofimages',
	'numoutputs',
	'numvideos',
	'numresults',
	'numsamples',
	'imagecount',
	'batchsize',
];

/** @returns what *Max Cost* assumes, if it is set and the input of a task asks for several results */
export function countedAsOne(creates: readonly CreatePlan[]): string | undefined {
	for (const { maxCostUsd, input } of creates) {
		if (maxCostUsd === 0) continue;
		const several = Object.entries(input).find(
			([name, value]) => COUNT_FIELDS.includes(plainName(name)) && (toNumber(value) ?? 0) > 1,
		);
		if (several === undefined) continue;
		return `'Max Cost (USD)' has counted as one result a task, although the input asks for several ('${several[0]}' is ${String(several[1])}). If each result costs, enter the price of the whole task in 'Price per Task (USD)'.`;
	}
	return undefined;
}

/** @returns the cost of the tasks whose price is known, US dollars */
export function knownCostUsd(creates: readonly CreatePlan[]): number {
	return roundUsd(creates.reduce((sum, { estimatedCostUsd = 0 }) => sum + estimatedCostUsd, 0));
}
