import type { IExecuteFunctions } from 'n8n-workflow';

import type { IfSomeFail } from '../report/failures';
import { readOutputOptions } from '../report/outputOptions';
import { estimateCostUsd } from '../service/prices';
import type { Clock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { ItemParameters } from '../shared/parameters';
import { hangsUp, patienceSeconds } from '../shared/tool';
import { Turns } from '../shared/turns';
import { checkBudget } from './budget';
import { triggerOfThisWorkflow } from '../callback/triggerUrl';
import { readCallbackAddress, readReference, type TriggerAddresses } from './callbackTarget';
import { isWatched, readCompletion } from './completion';
import { withFurtherInput } from './furtherInput';
import { type CreatePlan, createsIn, type ItemPlan, type PlanBase } from './itemPlan';
import { checkInput, durationField, readMediaInput, readRawInput } from './mediaInput';
import { readTaskIds } from './taskIds';
import { type Account, resumeAddressOf } from './suspendable';

/** The specification's bounds for the time between two reads of one task (section 4.2). */
export const MIN_POLL_INTERVAL_SECONDS = 2;
export const MAX_POLL_INTERVAL_SECONDS = 5;

/** n8n looks for executions that are due once a minute. */
const MIN_WATCH_SECONDS = 60;

/** How long to wait where nothing is said: in the node, and where the wait holds nothing. */
const POLL_SECONDS = 600;
const WATCH_SECONDS = 86_400;

/** The operations on a task that exists already. */
const READS = ['get', 'wait', 'redeliver'];

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

/** Where callbacks go, the same for all items of a run. */
interface Addresses extends TriggerAddresses {
	resume: () => { webhookUrl?: string };
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

async function planItem(
	context: IExecuteFunctions,
	itemIndex: number,
	addresses: Addresses,
): Promise<Array<ItemPlan | ItemError>> {
	try {
		const parameters = new ItemParameters(context, itemIndex);
		const base = readBase(context, parameters);
		const isRead =
			parameters.value('resource') === 'task' &&
			READS.includes(String(parameters.value('operation')));
		return isRead
			? await planReads(base, parameters, context, addresses)
			: [await planCreate(base, parameters, context, addresses)];
	} catch (error) {
		return [ItemError.from(error)];
	}
}

function readBase(context: IExecuteFunctions, parameters: ItemParameters): PlanBase {
	const reference = readReference(parameters);
	return {
		itemIndex: parameters.itemIndex,
		pollIntervalMs:
			1000 *
			parameters.number(parameters.option('pollInterval'), 'Poll Interval', {
				fallback: MIN_POLL_INTERVAL_SECONDS,
				min: MIN_POLL_INTERVAL_SECONDS,
				max: MAX_POLL_INTERVAL_SECONDS,
				unit: 'seconds, as the service asks',
			}),
		timeoutMs:
			1000 *
			parameters.number(parameters.option('timeout'), 'Timeout', {
				fallback: isWatched(parameters) ? WATCH_SECONDS : patienceSeconds(context, POLL_SECONDS),
				min: 1,
				unit: 'seconds',
			}),
		...(hangsUp(context) && { fromCall: true }),
		output: readOutputOptions((name) => parameters.option(name)),
		...(reference !== undefined && { reference }),
	};
}

/** One for each task id of the item. */
async function planReads(
	base: PlanBase,
	parameters: ItemParameters,
	context: IExecuteFunctions,
	addresses: Addresses,
): Promise<Array<ItemPlan | ItemError>> {
	const operation = parameters.value('operation');
	const taskIds = readTaskIds(parameters);
	const redeliver = operation === 'redeliver' && {
		redeliverTo: await readCallbackAddress(parameters, context, addresses, base.reference),
		startAgain: parameters.option('startAgain') === true,
	};
	return taskIds.map((taskId) =>
		taskId instanceof ItemError
			? taskId
			: { ...base, kind: 'read', taskId, wait: operation === 'wait', ...redeliver },
	);
}

async function planCreate(
	base: PlanBase,
	parameters: ItemParameters,
	context: IExecuteFunctions,
	addresses: Addresses,
): Promise<CreatePlan> {
	const completion = readCompletion(context, parameters);
	const model = parameters
		.requiredText(
			'model',
			'Model',
			'Enter a model identifier such as imagevendor/image-model-2-text-to-image.',
		)
		.trim();
	const resource = parameters.value('resource');
	const fields =
		resource === 'task' ? readRawInput(parameters) : readMediaInput(parameters, context, resource);
	const input = withFurtherInput(fields, parameters, context);
	checkInput(input);
	const price = parameters.number(parameters.option('pricePerTaskUsd'), 'Price per Task (USD)', {
		fallback: 0,
		min: 0,
	});
	return {
		...base,
		kind: 'create',
		completion,
		// n8n links what comes out of a suspended node by its place, so there is one item for each input item.
		...(completion === 'suspend' && { output: { ...base.output, split: false } }),
		model,
		input,
		...(parameters.flag('dryRun', 'Dry Run') && { isDry: true }),
		...(completion === 'poll' && { retryFailed: readRetryFailed(parameters) }),
		...(completion === 'suspend' && addresses.resume()),
		...(completion === 'trigger' && {
			webhookUrl: await readCallbackAddress(parameters, context, addresses, base.reference),
		}),
		estimatedCostUsd: price || estimateCostUsd(model, input, durationField(parameters)),
	};
}

function readRetryFailed(parameters: ItemParameters): number {
	return parameters.number(parameters.option('retryFailed'), 'Retry Failed Tasks', {
		fallback: 0,
		min: 0,
		max: 5,
		whole: true,
	});
}
