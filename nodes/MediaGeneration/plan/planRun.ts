import type { IExecuteFunctions } from 'n8n-workflow';

import { triggerOfThisWorkflow } from '../callback/triggerCallbackUrl';
import type { IfSomeFail } from '../report/ifSomeFail';
import type { Account } from '../service/connect';
import { roundUsd } from '../service/estimateCost';
import { type Clock, inTurns } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { ItemParameters } from '../shared/parameters';
import { planWait, type WaitPlan } from './canSuspend';
import { planItem, type TriggerAddresses } from './planItem';
import { createsIn, type CreatePlan, type ItemPlan } from './planTypes';

export interface RunPlan extends Pick<WaitPlan, 'suspendAfterMs' | 'warnings'> {
	/** Milliseconds between two checks of a suspended run; with 0 the pause grows with the time waited. */
	checkIntervalMs: number;
	/** In the order of the input items. */
	items: ItemPlan[];
	maxInFlight: number;
	/** Whether nothing is to be sent. */
	isDry: boolean;
	ifSomeFail: IfSomeFail;
}

/**
 * Reads and checks all parameters of all input items, before the first request.
 *
 * @param service the account, whose key signs the callback addresses
 * @throws ItemError if the whole run is refused, because its price is above the budget
 * @throws Stopped if the execution was stopped
 */
export async function planRun(
	context: IExecuteFunctions,
	service: Account,
	clock: Clock,
): Promise<RunPlan> {
	const count = context.getInputData().length;
	let trigger: Promise<string> | undefined;
	const addresses: TriggerAddresses = {
		...service,
		ownTrigger: async () => await (trigger ??= triggerOfThisWorkflow(context)),
	};
	const items: ItemPlan[] = [];
	const nextTurn = inTurns(clock, context.getExecutionCancelSignal());
	for (let itemIndex = 0; itemIndex < count; itemIndex++) {
		await nextTurn();
		for (const item of await planItem(context, itemIndex, addresses)) items.push(item);
	}
	// The settings of the whole run come from the first item whose parameters can be read.
	const readable = items.find(({ kind }) => kind !== 'refused');
	if (readable === undefined) {
		const nothing = { maxInFlight: 1, checkIntervalMs: 0, suspendAfterMs: Infinity, warnings: [] };
		return { items, ...nothing, isDry: false, ifSomeFail: 'stop' };
	}
	const first = new ItemParameters(context, readable.itemIndex);
	const creates = createsIn(items);
	// If an expression makes only one item a dry run, nothing is sent either: a bill could not be taken back.
	const isDry = creates.some((item) => item.isDry);
	const refusal = budgetRefusal(creates);
	if (refusal && !isDry) throw refusal;
	const { seconds, webhookUrl, suspendAfterMs, warnings } = planWait(items, count, first, service);
	return {
		items: items.map((item) => {
			if (item.kind === 'refused') return item;
			const timed = { ...item, timeoutMs: item.timeoutMs || 1000 * seconds };
			const isCalledBack = timed.kind === 'create' && timed.completion === 'wait';
			return isCalledBack ? { ...timed, webhookUrl } : timed;
		}),
		suspendAfterMs,
		warnings: refusal ? [`This batch would be refused: ${refusal.message}`] : warnings,
		maxInFlight: first.number('maxInFlight'),
		checkIntervalMs: 60_000 * first.number('checkInterval'),
		isDry,
		ifSomeFail: first.option('ifSomeFail') === 'stop' ? 'stop' : 'keep',
	};
}

/**
 * @returns why the batch is refused: its known price is above the budget, or a price is not known; undefined if it is
 *   not refused
 */
function budgetRefusal(creates: readonly CreatePlan[]): ItemError | undefined {
	// If an expression gives the items different limits, the lowest limit counts.
	const budget = creates.reduce(
		(least, { maxCostUsd }) => Math.min(least, maxCostUsd || least),
		Infinity,
	);
	if (budget === Infinity) return undefined;
	const unknown = creates.find(({ estimatedCostUsd }) => estimatedCostUsd === undefined);
	if (unknown) {
		return new ItemError(
			`The price of model '${unknown.model}' is not known, so 'Max Cost (USD)' of ${budget} cannot be kept (item ${unknown.itemIndex + 1})`,
			{
				description:
					"Add the option 'Price per Task (USD)', set a 'Duration' if it is a video of the default model, or remove 'Max Cost (USD)'. No task was created.",
			},
		);
	}
	const total = knownCostUsd(creates);
	if (total > budget) {
		const batch = creates.length === 1 ? '1 task would cost' : `${creates.length} tasks would cost`;
		return new ItemError(`${batch} ${total} USD, which is above the limit of ${budget} USD`, {
			description:
				"Raise 'Max Cost (USD)' in the options, or send fewer items. No task was created.",
		});
	}
	return undefined;
}

/** @returns the cost of the tasks whose price is known, US dollars */
export function knownCostUsd(creates: readonly CreatePlan[]): number {
	return roundUsd(creates.reduce((sum, { estimatedCostUsd = 0 }) => sum + estimatedCostUsd, 0));
}
