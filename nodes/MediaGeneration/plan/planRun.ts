import type { IExecuteFunctions } from 'n8n-workflow';

import { triggerOfThisWorkflow } from '../callback/triggerCallbackUrl';
import type { IfSomeFail } from '../report/ifSomeFail';
import { inTurns } from '../shared/clock';
import { choice, ItemParameters } from '../shared/parameters';
import { budgetRefusal } from './budget';
import { planWait, type WaitPlan } from './canSuspend';
import { planItem, type TriggerAddresses } from './planItem';
import { createsIn, type ItemPlan } from './planTypes';

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
 * @param service the account, whose key signs the callback addresses, and its models with their prices
 * @throws ItemError if the whole run is refused, because its price is above the budget
 * @throws Stopped if the execution was stopped
 */
export async function planRun(
	context: IExecuteFunctions,
	service: Omit<TriggerAddresses, 'ownTrigger'>,
): Promise<RunPlan> {
	const count = context.getInputData().length;
	let trigger: Promise<string> | undefined;
	const addresses: TriggerAddresses = {
		...service,
		ownTrigger: async () => await (trigger ??= triggerOfThisWorkflow(context)),
	};
	const items: ItemPlan[] = [];
	const nextTurn = inTurns(context.getExecutionCancelSignal());
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
	const isDry = items.some((item) => item.kind !== 'read' && item.isDry);
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
		ifSomeFail: choice('If Some Items Fail', first.option('ifSomeFail') ?? 'keep', {
			keep: 'Keep What Succeeded',
			stop: 'Stop with an Error',
		}),
	};
}
