import type { IExecuteFunctions } from 'n8n-workflow';

import { triggerOfThisWorkflow } from '../callback/triggerCallbackUrl';
import { stopSignal } from '../n8n/internals';
import type { IfSomeFail } from '../report/ifSomeFail';
import { inTurns } from '../shared/clock';
import { choice, ItemParameters } from '../shared/parameters';
import { budgetRefusal } from './budget';
import { planWait, type WaitPlan } from './planWait';
import { type EarlierPart, withEarlier } from './takenUp';
import { planItem, type TriggerAddresses } from './planItem';
import { createsIn, type ItemPlan } from './planTypes';

/** What a run does for all its items. */
export interface RunPlan extends Omit<WaitPlan, 'seconds'> {
	/** In the order of the input items. */
	items: ItemPlan[];
	/** *Max Tasks at the Same Time*. */
	maxInFlight: number;
	/** Whether nothing is to be sent. */
	isDry: boolean;
	ifSomeFail: IfSomeFail;
}

/**
 * Reads and checks all parameters of all input items, before the first request.
 *
 * @param service the account, whose key signs the callback addresses, and its models with their prices
 * @param known what an earlier turn or try knows: when n8n's time limit ends the execution (milliseconds since 1970), which
 *   tasks it has for an item, and whether it has created a task: then the budget was checked
 * @throws ItemError if the whole run is refused, because its price is above the budget
 * @throws Stopped if the execution was stopped
 */
export async function planRun(
	context: IExecuteFunctions,
	service: Omit<TriggerAddresses, 'ownTrigger'>,
	known: { limitAt: number; partsOf: (itemIndex: number) => EarlierPart[]; isBegun: boolean },
): Promise<RunPlan> {
	const count = context.getInputData().length;
	let trigger: Promise<string> | undefined;
	const addresses: TriggerAddresses = {
		...service,
		ownTrigger: async () => await (trigger ??= triggerOfThisWorkflow(context)),
	};
	const items: ItemPlan[] = [];
	const nextTurn = inTurns(stopSignal(context));
	for (let itemIndex = 0; itemIndex < count; itemIndex++) {
		await nextTurn();
		const planned = await planItem(context, itemIndex, addresses);
		items.push(...withEarlier(context, itemIndex, planned, known.partsOf(itemIndex)));
	}
	// The settings of the whole run come from the first item whose parameters can be read.
	const readable = items.find(({ kind }) => kind !== 'refused');
	if (readable === undefined) {
		const nothing = { maxInFlight: 1, suspendAfterMs: Infinity, warnings: [] };
		const ends = { limitAt: Infinity, endsAt: Infinity };
		return { items, ...nothing, ...ends, isDry: false, ifSomeFail: 'stop' };
	}
	const first = new ItemParameters(context, readable.itemIndex);
	const creates = createsIn(items);
	// If an expression makes only one item a dry run, nothing is sent either: a bill could not be taken back.
	const isDry = !known.isBegun && items.some((item) => item.kind !== 'read' && item.isDry);
	// The price of a batch is checked before its first create.
	const refusal = known.isBegun ? undefined : budgetRefusal(creates);
	if (refusal && !isDry) throw refusal;
	const { seconds, warnings, ...wait } = planWait(items, first, known.limitAt);
	return {
		...wait,
		items: items.map((item) => {
			if (item.kind === 'refused') return item;
			const timeoutMs = item.timeoutMs || 1000 * seconds;
			// A run that may sleep holds no memory, so it may take long to create its tasks.
			const isPatient = item.kind === 'create' && wait.suspendAfterMs < Infinity;
			return { ...item, timeoutMs, ...(isPatient && { patienceMs: timeoutMs }) };
		}),
		warnings: refusal ? [`This batch would be refused: ${refusal.message}`] : warnings,
		maxInFlight: first.number('maxInFlight'),
		isDry,
		ifSomeFail: choice('If Some Items Fail', first.option('ifSomeFail') ?? 'keep', {
			keep: 'Keep All Items',
			stop: 'Stop with an Error',
		}),
	};
}
