import type { IExecuteFunctions } from 'n8n-workflow';

import { readOutputOptions } from '../report/outputOptions';
import { estimateCostUsd } from '../service/prices';
import { ItemError } from '../shared/itemError';
import { ItemParameters } from '../shared/parameters';
import { hangsUp, patienceSeconds } from '../shared/tool';
import { readCallbackAddress, readReference, type TriggerAddresses } from './callbackTarget';
import { readCompletion } from './completion';
import { readSendsLinks } from './fileLinks';
import { withFurtherInput } from './furtherInput';
import type { Completion, CreatePlan, ItemPlan, PlanBase } from './itemPlan';
import { checkInput, durationField, readMediaInput, readRawInput } from './mediaInput';
import { DAY_SECONDS, HELD_SECONDS } from './planWait';
import { readTaskIds } from './taskIds';

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
