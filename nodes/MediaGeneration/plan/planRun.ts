import type { IExecuteFunctions } from 'n8n-workflow';

import { triggerOfThisWorkflow } from '../callback/triggerCallbackUrl';
import type { IfSomeFail } from '../report/ifSomeFail';
import type { Account } from '../service/connect';
import { type Clock, TimeSlice } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { ItemParameters } from '../shared/parameters';
import { budgetRefusal } from './budget';
import { planWait } from './canSuspend';
import { filesIn } from './inputFile';
import { planItem, type TriggerAddresses } from './planItem';
import { createsIn, type TaskPlan, type CreatePlan } from './planTypes';

export interface RunPlan {
	/** Milliseconds between two checks of tasks that no run holds; 0 lets the pause grow with the time waited. */
	checkIntervalMs: number;
	/** Milliseconds from the last create to the suspension; Infinity where the run is held to its end. */
	suspendAfterMs: number;
	/** What the user is to know of the wait. */
	warnings: string[];
	/** What is to be done, in the order of the input items, or why it cannot be done. */
	items: Array<TaskPlan | ItemError>;
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
	let trigger: Promise<string> | undefined;
	const addresses: TriggerAddresses = {
		...service,
		ownTrigger: async () => await (trigger ??= triggerOfThisWorkflow(context)),
	};
	const items: RunPlan['items'] = [];
	const inputOf: number[] = [];
	const turns = new TimeSlice(clock, context.getExecutionCancelSignal());
	for (let itemIndex = 0; itemIndex < count; itemIndex++) {
		await turns.next();
		for (const item of await planItem(context, itemIndex, addresses)) {
			items.push(item);
			inputOf.push(itemIndex);
		}
	}
	// What holds for the whole run is read from the first item whose parameters can be read.
	const readable = items.find((item): item is TaskPlan => !(item instanceof ItemError));
	if (readable === undefined) {
		const nothing = { maxInFlight: 1, checkIntervalMs: 0, suspendAfterMs: Infinity, warnings: [] };
		return { items, inputOf, ...nothing, isDry: false, ifSomeFail: 'stop' };
	}
	const first = new ItemParameters(context, readable.itemIndex);
	// Where an expression says so of one item alone, nothing is sent either: the bill could not be taken back.
	const isDry = createsIn(items).some((item) => item.isDry);
	const refusal = budgetRefusal(items);
	if (refusal && !isDry) throw refusal;
	const { seconds, webhookUrl, suspendAfterMs, warnings } = planWait(items, count, first, service);
	return {
		items: items.map((item) => {
			if (item instanceof ItemError) return item;
			const timed = { ...item, timeoutMs: item.timeoutMs || 1000 * seconds };
			const isCalledBack = timed.kind === 'create' && timed.completion === 'wait';
			return isCalledBack ? { ...timed, webhookUrl } : timed;
		}),
		suspendAfterMs,
		warnings: [
			...(refusal ? [`This batch would be refused: ${refusal.message}`] : warnings),
			...sizeWarning(items),
		],
		inputOf,
		maxInFlight: first.number('maxInFlight'),
		checkIntervalMs: 60_000 * first.number('checkInterval'),
		isDry,
		ifSomeFail: first.option('ifSomeFail') === 'stop' ? 'stop' : 'keep',
	};
}

/** A body of this size is refused by many servers. */
const LARGE_BODY_MIB = 20;

/** Warns of requests that are larger than services usually take. It is not refused: where the limit is, nobody has said. */
function sizeWarning(items: RunPlan['items']): string[] {
	const large = createsIn(items).filter((item) => sizeMiB(item) > LARGE_BODY_MIB);
	const [first] = large;
	if (first === undefined) return [];
	const others = large.length > 1 ? ` and ${large.length - 1} more` : '';
	return [
		`The request of item ${first.itemIndex + 1}${others} has about ${Math.ceil(sizeMiB(first))} MiB, since a file grows by a third on its way. The service may refuse more than ${LARGE_BODY_MIB} MiB: send smaller files, or the address of the file.`,
	];
}

function sizeMiB({ input, sendsLinks }: CreatePlan): number {
	const files = sendsLinks ? [] : filesIn(input);
	const bytes = files.reduce((sum, file) => sum + (file.bytes ?? 0), 0);
	// Base64 makes four characters of three bytes.
	return ((bytes * 4) / 3 + JSON.stringify(input).length) / 2 ** 20;
}
