import type { IExecuteFunctions } from 'n8n-workflow';

import { readOutputOptions } from '../report/items';
import { estimateCostUsd } from '../service/prices';
import { ItemError } from '../shared/itemError';
import { ItemParameters, describe, refused } from '../shared/parameters';
import { hangsUp, patienceSeconds, isTool } from '../shared/n8nInternals';
import { callbackAddress } from '../callback/callbackUrl';
import { refuseEngineV2 } from '../callback/triggerUrl';
import { readSendsLinks } from './itemFile';
import type { Completion, CreatePlan, TaskPlan, PlanBase } from './taskPlan';
import {
	checkInput,
	durationField,
	readMediaInput,
	readRawInput,
	withFurtherInput,
} from './taskInput';
import { DAY_SECONDS, HELD_SECONDS } from './planWait';
import { asTaskId } from '../service/taskRecord';

/** What the address of a trigger is made of, and who calls it. */
export interface TriggerAddresses {
	/** Signs it. */
	apiKey: string;
	/** The address of the service. */
	baseUrl: string;
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
		pollIntervalMs: 1000 * parameters.number('pollInterval'),
		timeoutMs: 1000 * parameters.number('timeout'),
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
	addresses: TriggerAddresses,
): Promise<Array<TaskPlan | ItemError>> {
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
	addresses: TriggerAddresses,
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
	const sendsLinks = readSendsLinks(parameters, context, input, addresses.baseUrl);
	const price = parameters.number('pricePerTaskUsd');
	return {
		...base,
		kind: 'create',
		completion,
		model,
		input,
		...(sendsLinks && { sendsLinks }),
		...(parameters.flag('dryRun', 'Dry Run') && { isDry: true }),
		patienceMs: base.timeoutMs || 1000 * patienceOf(context, completion),
		...(completion === 'wait' && { retryFailed: parameters.number('retryFailed') }),
		...(completion === 'trigger' && {
			webhookUrl: await readCallbackAddress(parameters, context, addresses, base.reference),
		}),
		estimatedCostUsd: price || estimateCostUsd(model, input, durationField(parameters)),
	};
}

/** Nobody waits where a trigger is notified, so the node may take its time to create the tasks. */
const patienceOf = (context: IExecuteFunctions, completion: Completion) =>
	completion === 'trigger' ? DAY_SECONDS : patienceSeconds(context, HELD_SECONDS);

/** @throws ItemError where the value is not in the list, or not for a tool */
function readCompletion(context: IExecuteFunctions, parameters: ItemParameters): Completion {
	const value = parameters.value('completion');
	if (value === '' || value === 'wait') return 'wait';
	if (value === 'return') return 'return';
	if (value !== 'trigger') {
		const wayOut = "Choose 'Wait for Results', 'Notify a Trigger' or 'Return Immediately'.";
		throw refused('When to Continue', describe(value), wayOut);
	}
	if (!isTool(context)) return value;
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
	context: IExecuteFunctions,
	{ apiKey, ownTrigger }: TriggerAddresses,
	reference: string | undefined,
): Promise<string> {
	if (parameters.isBlank('callbackUrl')) {
		refuseEngineV2(context);
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
