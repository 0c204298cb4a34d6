import type { IExecuteFunctions } from 'n8n-workflow';

import { callbackAddress } from '../callback/callbackToken';
import { refuseEngineV2 } from '../callback/triggerCallbackUrl';
import { readOutputOptions } from '../report/taskItems';
import type { Account } from '../service/connect';
import { estimateCostUsd } from '../service/estimateCost';
import { asTaskId } from '../service/taskRecord';
import { ItemError } from '../shared/itemError';
import { hangsUp, isTool } from '../shared/n8nInternals';
import { ItemParameters, describe, isEmpty, refused } from '../shared/parameters';
import { DAY_SECONDS, heldSeconds } from './canSuspend';
import { durationField, readCreateBody } from './createBody';
import { readSendsLinks } from './inputFile';
import type { Completion, CreatePlan, PlanBase, ReadPlan, TaskPlan } from './planTypes';

/** The account, whose key signs the address of a trigger. */
export interface TriggerAddresses extends Account {
	/** The URL of the one trigger of this workflow; rejects with a UserError where there is none. */
	ownTrigger: () => Promise<string>;
}

/** The operations on a task that exists already. */
const READS = ['get', 'wait', 'redeliver'];

/**
 * Reads and checks every parameter of one input item.
 *
 * @returns what is to be done with it, one for each task that it names; or why it cannot be done
 */
export async function planItem(
	context: IExecuteFunctions,
	itemIndex: number,
	addresses: TriggerAddresses,
): Promise<Array<TaskPlan | ItemError>> {
	try {
		const parameters = new ItemParameters(context, itemIndex);
		const isRead =
			parameters.value('resource') === 'task' &&
			READS.includes(String(parameters.value('operation')));
		return isRead
			? await planReads(parameters, addresses)
			: [await planCreate(parameters, addresses)];
	} catch (error) {
		return [ItemError.from(error)];
	}
}

function readBase(parameters: ItemParameters): PlanBase {
	return {
		itemIndex: parameters.itemIndex,
		pollIntervalMs: 1000 * parameters.number('pollInterval'),
		timeoutMs: 1000 * parameters.number('timeout'),
		fromCall: hangsUp(parameters.context),
		output: readOutputOptions(parameters),
		reference: readReference(parameters),
	};
}

/** One for each task id of the item. */
async function planReads(
	parameters: ItemParameters,
	addresses: TriggerAddresses,
): Promise<Array<ReadPlan | ItemError>> {
	const base = readBase(parameters);
	const operation = parameters.value('operation');
	const taskIds = readTaskIds(parameters);
	const isRedelivery = operation === 'redeliver';
	const plan: Omit<ReadPlan, 'taskId'> = {
		...base,
		kind: 'read',
		wait: operation === 'wait',
		redeliverTo: isRedelivery
			? await readCallbackAddress(parameters, addresses, base.reference)
			: undefined,
		startAgain: parameters.flag('startAgain', 'Start Again'),
	};
	return taskIds.map((taskId) => (taskId instanceof ItemError ? taskId : { ...plan, taskId }));
}

async function planCreate(
	parameters: ItemParameters,
	addresses: TriggerAddresses,
): Promise<CreatePlan> {
	const base = readBase(parameters);
	const completion = readCompletion(parameters);
	const { model, input } = readCreateBody(parameters);
	const sendsLinks = readSendsLinks(parameters, input, addresses.baseUrl);
	const price = parameters.number('pricePerTaskUsd');
	return {
		...base,
		kind: 'create',
		completion,
		model,
		input,
		sendsLinks,
		isDry: parameters.flag('dryRun', 'Dry Run'),
		patienceMs: base.timeoutMs || 1000 * patienceOf(parameters.context, completion),
		retryFailed: completion === 'wait' ? parameters.number('retryFailed') : 0,
		webhookUrl:
			completion === 'trigger'
				? await readCallbackAddress(parameters, addresses, base.reference)
				: undefined,
		maxCostUsd: parameters.limit('maxCostUsd'),
		estimatedCostUsd: price || estimateCostUsd(model, input, durationField(parameters)),
	};
}

/** Nobody waits where a trigger is notified, so the node may take its time to create the tasks. */
const patienceOf = (context: IExecuteFunctions, completion: Completion) =>
	completion === 'trigger' ? DAY_SECONDS : heldSeconds(context);

/** @throws ItemError where the value is not in the list, or not for a tool */
function readCompletion(parameters: ItemParameters): Completion {
	const value = parameters.value('completion');
	if (value === '' || value === 'wait') return 'wait';
	if (value === 'return') return 'return';
	if (value !== 'trigger') {
		const wayOut = "Choose 'Wait for Results', 'Notify a Trigger' or 'Return Immediately'.";
		throw refused('When to Continue', describe(value), wayOut);
	}
	if (!isTool(parameters.context)) return value;
	// An agent needs the answer of the call itself: nothing of it would come back later.
	throw new ItemError('A tool of an AI agent cannot notify a trigger', {
		description: "Choose 'Wait for Results' or 'Return Immediately' in 'When to Continue'.",
	});
}

/** The longest reference, in UTF-16 units: it travels in an address, where a character takes up to nine. */
const MAX_REFERENCE = 500;

/**
 * What the user wants to get back with the task.
 *
 * @returns undefined where there is none
 * @throws ItemError where it is no text, or too long for an address
 */
function readReference(parameters: ItemParameters): string | undefined {
	const value = parameters.option('reference') ?? '';
	if (typeof value === 'object') {
		const wayOut = 'Enter one value that tells the row or the order, e.g. {{ $json.id }}.';
		throw refused('Your Reference', 'not a text', wayOut);
	}
	const reference = String(value);
	if (reference.length > MAX_REFERENCE) {
		throw new ItemError(`The parameter 'Your Reference' has ${reference.length} characters`, {
			description: `It travels in the callback address, so enter at most ${MAX_REFERENCE}, for example the id of a row and not the row itself.`,
		});
	}
	return reference === '' ? undefined : reference;
}

/**
 * The address of the trigger to notify: the one that is entered, or that of this workflow.
 *
 * @throws ItemError where what is entered is no text
 * @throws UserError where there is none, or n8n's engine v2 runs the workflow, whose own trigger does not work
 */
async function readCallbackAddress(
	parameters: ItemParameters,
	{ apiKey, ownTrigger }: TriggerAddresses,
	reference: string | undefined,
): Promise<string> {
	if (isEmpty(parameters.value('callbackUrl'))) {
		refuseEngineV2(parameters.context);
		return callbackAddress(await ownTrigger(), apiKey, reference);
	}
	const wayOut =
		'Enter the production URL of a Media Generation Trigger, or leave it empty for the one of this workflow.';
	const entered = parameters.requiredText('callbackUrl', 'Callback URL', wayOut);
	return callbackAddress(entered, apiKey, reference);
}

const WAY_OUT =
	'Enter the task id that the service returned when the task was created, e.g. {{ $json.taskId }}, or several: a list, or a text with commas or line breaks between them.';

/**
 * Reads the tasks that an item names.
 *
 * @returns each id, or why it cannot be one
 * @throws ItemError where there is none
 */
function readTaskIds(parameters: ItemParameters): Array<string | ItemError> {
	const entries = entriesOf(parameters.value('taskId'));
	if (entries.length === 0) throw parameters.empty('Task ID', WAY_OUT);
	return entries.map(
		(entry) =>
			asTaskId(entry) ??
			new ItemError(`The parameter 'Task ID' cannot be a task id: ${describe(entry)}`, {
				description: WAY_OUT,
			}),
	);
}

function entriesOf(value: unknown): unknown[] {
	if (Array.isArray(value)) return value.flatMap(entriesOf);
	if (typeof value !== 'string') return value === undefined || value === null ? [] : [value];
	return value
		.split(/[,\r\n]/)
		.map((entry) => entry.trim())
		.filter((entry) => entry !== '');
}
