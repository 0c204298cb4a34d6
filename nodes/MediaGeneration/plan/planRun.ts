import type { IExecuteFunctions } from 'n8n-workflow';

import type { IfSomeFail } from '../report/failures';
import type { Clock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { ItemParameters } from '../shared/parameters';
import { Turns } from '../shared/turns';
import { checkBudget } from './budget';
import { triggerOfThisWorkflow } from '../callback/triggerUrl';
import { createsIn, type ItemPlan } from './itemPlan';
import { type Addresses, planItem } from './planItem';
import { type Account, resumeAddressOf } from './suspendable';

/** n8n looks for executions that are due once a minute. */
const MIN_WATCH_SECONDS = 60;

export interface RunPlan {
	/** Milliseconds between two looks for tasks that nobody polls; 0 lets it grow with the time waited. */
	watchIntervalMs: number;
	/** What is to be done, in the order of the input items, or why it cannot be done. */
	items: Array<ItemPlan | ItemError>;
	/** The input item that each of these belongs to. */
	inputOf: number[];
	maxInFlight: number;
	/** Whether nothing is to be sent. */
	isDry: boolean;
	ifSomeFail: IfSomeFail;
}

/**
 * Reads and checks every parameter of every input item, before the first request.
 *
 * @param service the account: its key signs the callback addresses
 * @returns the plan; an item whose parameters cannot be meant is an error in it
 * @throws ItemError where the run as a whole is refused: its price is above the budget
 * @throws Stopped where the execution was stopped meanwhile
 */
export async function planRun(
	context: IExecuteFunctions,
	service: Account,
	clock: Clock,
): Promise<RunPlan> {
	const count = context.getInputData().length;
	// One for all items: n8n needs longer to evaluate them than for all the rest of an item.
	let resume: { webhookUrl?: string } | undefined;
	let trigger: Promise<string> | undefined;
	const addresses: Addresses = {
		apiKey: service.apiKey,
		resume: () => (resume ??= resumeAddressOf(context, service)),
		ownTrigger: async () => await (trigger ??= triggerOfThisWorkflow(context)),
	};
	const items: RunPlan['items'] = [];
	const inputOf: number[] = [];
	const turns = new Turns(clock, context.getExecutionCancelSignal());
	for (let itemIndex = 0; itemIndex < count; itemIndex++) {
		await turns.next();
		for (const item of await planItem(context, itemIndex, addresses)) {
			items.push(item);
			inputOf.push(itemIndex);
		}
	}
	// What holds for the whole run is read from the first item whose parameters can be read.
	const readable = items.find((item): item is ItemPlan => !(item instanceof ItemError));
	if (readable === undefined) {
		return { items, inputOf, maxInFlight: 1, watchIntervalMs: 0, isDry: false, ifSomeFail: 'stop' };
	}
	const first = new ItemParameters(context, readable.itemIndex);
	checkBudget(items, first);
	const maxInFlight = first.number(first.option('maxInFlight'), 'Max Tasks in Flight', {
		fallback: 10,
		min: 1,
		whole: true,
	});
	// Where an expression says so of one item alone, nothing is sent either: the bill could not be taken back.
	const isDry = createsIn(items).some((item) => item.isDry);
	return {
		items,
		inputOf,
		maxInFlight,
		watchIntervalMs: readWatchInterval(first),
		isDry,
		ifSomeFail: first.option('ifSomeFail') === 'stop' ? 'stop' : 'keep',
	};
}

function readWatchInterval(parameters: ItemParameters): number {
	const value = parameters.option('watchInterval');
	// 0 is the one value below the least.
	if (Number(value ?? 0) === 0) return 0;
	const bounds = {
		fallback: 0,
		min: MIN_WATCH_SECONDS,
		unit: 'seconds, or 0 to leave it to the node',
	};
	return 1000 * parameters.number(value, 'Look Interval', bounds);
}
