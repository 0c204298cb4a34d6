import type { IExecuteFunctions } from 'n8n-workflow';

import { readOutputOptions } from '../report/items';
import { estimateCostUsd } from '../service/prices';
import { ItemError } from '../shared/itemError';
import { ItemParameters, describe } from '../shared/parameters';
import { hangsUp, patienceSeconds, isTool } from '../shared/n8nInternals';
import { readCallbackAddress, readReference, type TriggerAddresses } from './callbackTarget';
import { readSendsLinks } from './itemFile';
import { withFurtherInput } from './furtherInput';
import type { Completion, CreatePlan, TaskPlan, PlanBase } from './taskPlan';
import { checkInput, durationField, readMediaInput, readRawInput } from './taskInput';
import { DAY_SECONDS, HELD_SECONDS } from './planWait';
import { asTaskId } from '../service/taskRecord';

/** The specification's bounds for the time between two reads of one task (section 4.2). */
const MIN_POLL_INTERVAL_SECONDS = 2;
const MAX_POLL_INTERVAL_SECONDS = 5;

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
				fallback: 0,
				min: 0,
				unit: 'seconds; 0 leaves it to the node',
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
	const price = parameters.number(parameters.option('pricePerTaskUsd'), 'Price per Task (USD)', {
		fallback: 0,
		min: 0,
	});
	return {
		...base,
		kind: 'create',
		completion,
		model,
		input,
		...(sendsLinks && { sendsLinks }),
		...(parameters.flag('dryRun', 'Dry Run') && { isDry: true }),
		patienceMs: base.timeoutMs || 1000 * patienceOf(context, completion),
		...(completion === 'wait' && { retryFailed: readRetryFailed(parameters) }),
		...(completion === 'trigger' && {
			webhookUrl: await readCallbackAddress(parameters, context, addresses, base.reference),
		}),
		estimatedCostUsd: price || estimateCostUsd(model, input, durationField(parameters)),
	};
}

/** Nobody waits where a trigger is notified, so the node may take its time to create the tasks. */
const patienceOf = (context: IExecuteFunctions, completion: Completion) =>
	completion === 'trigger' ? DAY_SECONDS : patienceSeconds(context, HELD_SECONDS);

function readRetryFailed(parameters: ItemParameters): number {
	return parameters.number(parameters.option('retryFailed'), 'Retry Failed Tasks', {
		fallback: 0,
		min: 0,
		max: 5,
		whole: true,
	});
}

/** @throws ItemError where the value is not in the list, or not for a tool */
export function readCompletion(context: IExecuteFunctions, parameters: ItemParameters): Completion {
	const value = parameters.value('completion');
	if (value === '' || value === 'wait') return 'wait';
	if (value === 'return') return 'return';
	if (value !== 'trigger') {
		throw new ItemError(`The parameter 'When to Continue' is '${String(value)}'`, {
			description: "Choose 'Wait for Results', 'Notify a Trigger' or 'Return Immediately'.",
		});
	}
	if (!isTool(context)) return value;
	// An agent needs the answer of the call itself: nothing of it would come back later.
	throw new ItemError('A tool of an AI agent cannot notify a trigger', {
		description: "Choose 'Wait for Results' or 'Return Immediately' in 'When to Continue'.",
	});
}

const WAY_OUT =
	'Enter the task id that the service returned when the task was created, e.g. {{ $json.taskId }}, or several: a list, or a text with commas or line breaks between them.';

/**
 * Reads the tasks that an item names.
 *
 * @returns each id, or why it cannot be one
 * @throws ItemError where there is none
 */
export function readTaskIds(parameters: ItemParameters): Array<string | ItemError> {
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
