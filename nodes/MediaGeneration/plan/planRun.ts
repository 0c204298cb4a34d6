import type { IExecuteFunctions } from 'n8n-workflow';

import { mayDifferByItem, modeOf, stopSignal } from '../n8n/internals';
import { type Credential, CREDENTIAL_TYPE } from '../service/connect';
import { yielding } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { isSame } from '../shared/json';
import { triggerOfThisWorkflow } from '../callback/callbackAddress';
import type { IfSomeFail } from '../report/ifSomeFail';
import { roundUsd } from '../service/money';
import { choice, ItemParameters } from '../shared/parameters';
import { unknownField } from './modelFields';
import { planItem, type TriggerAddresses } from './planItem';
import { type CreatePlan, createsIn, type ItemPlan } from './planTypes';
import { planWait, type WaitPlan } from './planWait';

/** What holds for all items of a run. n8n stores it with a run that sleeps. */
export interface RunSettings extends Pick<WaitPlan, 'suspendAfterMs' | 'limitAt' | 'endsAt'> {
	/** *Max Tasks at the Same Time*. */
	maxInFlight: number;
	ifSomeFail: IfSomeFail;
	warnings: string[];
}

/** What a run does for all its items. */
export interface RunPlan extends RunSettings {
	/** In the order of the input items. */
	items: ItemPlan[];
	/** Whether nothing is to be sent. */
	isDry: boolean;
}

/** What earlier tries of a run know. */
interface Known {
	/** When n8n's time limit cancels the execution, milliseconds of the clock. */
	limitAt: number;
	/** Whether a task is ordered: it stays as it is. */
	isOrdered: (plan: ItemPlan) => boolean;
	/** What the ordered tasks cost, US dollars. */
	paidUsd: number;
}

/**
 * Reads and checks all parameters of all input items, before the first request. A run is planned once: one that sleeps is
 * stored with its plan.
 *
 * @param service the account, whose key signs the callback addresses, and its models with their prices
 * @throws ItemError if the whole run is refused, because its price is above the budget, or its items have several accounts
 * @throws Stopped if the execution was stopped
 */
export async function planRun(
	context: IExecuteFunctions,
	service: Omit<TriggerAddresses, 'ownTrigger'>,
	{ limitAt, isOrdered, paidUsd }: Known,
): Promise<RunPlan> {
	await checkOneAccount(context);
	const count = context.getInputData().length;
	let trigger: string | undefined;
	const ownTrigger = () => (trigger ??= triggerOfThisWorkflow(context));
	const addresses: TriggerAddresses = { ...service, ownTrigger };
	const items: ItemPlan[] = [];
	const yieldIfDue = yielding(stopSignal(context));
	for (let itemIndex = 0; itemIndex < count; itemIndex++) {
		await yieldIfDue();
		items.push(...(await planItem(context, itemIndex, addresses)));
	}
	// The settings of the whole run come from the first item whose parameters can be read.
	const readable = items.find(({ kind }) => kind !== 'refused');
	if (readable === undefined) {
		const ends = { suspendAfterMs: Infinity, limitAt: Infinity, endsAt: Infinity };
		return { items, ...ends, maxInFlight: 1, isDry: false, ifSomeFail: 'stop', warnings: [] };
	}
	const first = new ItemParameters(context, readable.itemIndex);
	const left = items.filter((item) => item.kind !== 'read' && !isOrdered(item));
	// If an expression makes only one item a dry run, nothing is sent either: a bill could not be taken back.
	const isDry = left.some((item) => item.kind !== 'read' && item.isDry);
	const refusal = budgetRefusal(createsIn(left), paidUsd);
	if (refusal && !isDry) throw refusal;
	const { seconds, warnings, ...wait } = planWait(items, first, limitAt);
	// Who is at the panel can mend a name.
	const misspelt =
		modeOf(context) === 'manual' ? unknownField(createsIn(left), service.models) : undefined;
	return {
		...wait,
		items: items.map((item) => {
			if (item.kind === 'refused') return item;
			const timeoutMs = item.timeoutMs || 1000 * seconds;
			// A run that may sleep holds no memory, so it may take long to create its tasks.
			const isPatient = item.kind === 'create' && wait.suspendAfterMs < Infinity;
			return { ...item, timeoutMs, ...(isPatient && { patienceMs: timeoutMs }) };
		}),
		warnings: [
			...(refusal ? [`This batch would be refused: ${refusal.message}`] : warnings),
			...(misspelt === undefined ? [] : [misspelt]),
		],
		maxInFlight: first.number('maxInFlight'),
		isDry,
		ifSomeFail: choice('If Some Items Fail', first.option('ifSomeFail') ?? 'keep', {
			keep: 'Keep All Items',
			stop: 'Stop with an Error',
		}),
	};
}

/** What makes a price known, as parts of sentences. */
export const ENTER_PRICE = "enter the model with its price under 'Models' in the credential";
export const ENTER_DURATION =
	"enter 'Duration (Seconds)', or the length under the model's own name for it in 'Additional Fields'";

/**
 * @param creates the tasks that are to be ordered
 * @param paidUsd what the run has ordered before, US dollars
 * @returns why the batch is refused, if it is: its known price is above the budget, or a price is not known
 */
function budgetRefusal(creates: readonly CreatePlan[], paidUsd: number): ItemError | undefined {
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
		const which = creates.length > 1 ? ` (item ${itemIndex + 1})` : '';
		return new ItemError(`${why}, so 'Max Cost (USD)' of ${budget} cannot be kept${which}`, {
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

/** @returns the cost of the tasks whose price is known, US dollars */
export function knownCostUsd(creates: readonly CreatePlan[]): number {
	return roundUsd(creates.reduce((sum, { estimatedCostUsd = 0 }) => sum + estimatedCostUsd, 0));
}

/**
 * Checks that all items have the same account: a run orders with one key, and counts the limits of one account.
 *
 * @throws ItemError if an expression in the credential gives an item another key or address than the first item
 * @throws Stopped if the execution was stopped
 */
async function checkOneAccount(context: IExecuteFunctions): Promise<void> {
	const count = context.getInputData().length;
	if (count < 2 || !(await mayDifferByItem(context, CREDENTIAL_TYPE))) return;
	const yieldIfDue = yielding(stopSignal(context));
	const accountOf = async (itemIndex: number) =>
		await context.getCredentials<Credential>(CREDENTIAL_TYPE, itemIndex);
	const first = await accountOf(0);
	for (let itemIndex = 1; itemIndex < count; itemIndex++) {
		await yieldIfDue();
		if (isSame(await accountOf(itemIndex), first)) continue;
		throw new ItemError(
			`The credential gives item ${itemIndex + 1} another account than item 1, and a run has one account`,
			{
				description:
					"Put n8n's node Loop Over Items with a Batch Size of 1 before this node, and connect this node back to the loop: then each run has one item, with its own account. Nothing was sent.",
			},
		);
	}
}
