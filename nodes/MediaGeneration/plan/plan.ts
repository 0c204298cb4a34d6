import type { IExecuteFunctions } from 'n8n-workflow';

import { callbackAddress } from '../callback/address';
import { resumeUrl } from '../callback/suspension';
import { readOutputOptions } from '../report/outputOptions';
import { estimateCostUsd } from '../service/prices';
import { asTaskId } from '../service/taskRecord';
import { ItemError } from '../shared/itemError';
import { ItemParameters } from '../shared/parameters';
import { checkBudget } from './budget';
import { readCallbackAddress, readReference } from './callbackTarget';
import type { Completion, ItemPlan, PlanBase } from './itemPlan';
import { durationField, readMediaInput, readRawInput } from './mediaInput';

/** The specification's bounds for the time between two reads of one task (section 4.2). */
export const MIN_POLL_INTERVAL_SECONDS = 2;
export const MAX_POLL_INTERVAL_SECONDS = 5;

/** The operations on a task that exists already. */
const READS = ['get', 'wait', 'redeliver'];

export interface RunPlan {
	/** What is to be done for each input item, or why it cannot be done. */
	items: Array<ItemPlan | ItemError>;
	maxInFlight: number;
}

/**
 * Reads and checks every parameter of every input item, before the first request.
 *
 * @param apiKey signs the callback addresses
 * @returns the plan; an item whose parameters cannot be meant is an error in it
 * @throws ItemError where the run as a whole is refused: its price is above the budget
 */
export function planRun(context: IExecuteFunctions, apiKey: string): RunPlan {
	const count = context.getInputData().length;
	// One for all items: n8n needs longer to evaluate it than for all the rest of an item.
	let resume: string | undefined;
	const resumeAddress = () => (resume ??= callbackAddress(resumeUrl(context), apiKey));
	const items = Array.from({ length: count }, (_, itemIndex) => {
		try {
			return planItem(new ItemParameters(context, itemIndex), context, apiKey, resumeAddress);
		} catch (error) {
			return ItemError.from(error);
		}
	});
	// What holds for the whole run is read from the first item whose parameters can be read.
	const readable = items.findIndex((item) => !(item instanceof ItemError));
	if (readable === -1) return { items, maxInFlight: 1 };
	const first = new ItemParameters(context, readable);
	checkBudget(items, first);
	const maxInFlight = first.number(first.option('maxInFlight'), 'Max Tasks in Flight', {
		fallback: 10,
		min: 1,
		whole: true,
	});
	return { items, maxInFlight };
}

function planItem(
	parameters: ItemParameters,
	context: IExecuteFunctions,
	apiKey: string,
	resumeAddress: () => string,
): ItemPlan {
	const reference = readReference(parameters);
	const base: PlanBase = {
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
				fallback: 600,
				min: 1,
				unit: 'seconds',
			}),
		output: readOutputOptions((name) => parameters.option(name)),
		...(reference !== undefined && { reference }),
	};
	const resource = parameters.value('resource');
	const operation = parameters.value('operation');
	if (resource === 'task' && READS.includes(String(operation))) {
		return {
			...base,
			kind: 'read',
			taskId: readTaskId(parameters),
			wait: operation === 'wait',
			...(operation === 'redeliver' && {
				redeliverTo: readCallbackAddress(parameters, context, apiKey, reference),
				startAgain: parameters.option('startAgain') === true,
			}),
		};
	}

	const completion = readCompletion(parameters);
	const model = parameters
		.requiredText(
			'model',
			'Model',
			'Enter a model identifier such as imagevendor/image-model-2-text-to-image.',
		)
		.trim();
	const { input, image } =
		resource === 'task' ? readRawInput(parameters) : readMediaInput(parameters, context, resource);
	Object.assign(
		input,
		parameters.jsonObject(parameters.option('additionalInput'), 'Additional Input'),
	);
	return {
		...base,
		kind: 'create',
		completion,
		// A resumed execution has no time for downloads: the caller of the webhook waits for its answer.
		...(completion === 'suspend' && { output: { ...base.output, download: false } }),
		model,
		input,
		...(image && { image }),
		...(completion === 'suspend' && { webhookUrl: resumeAddress() }),
		...(completion === 'trigger' && {
			webhookUrl: readCallbackAddress(parameters, context, apiKey, reference),
		}),
		estimatedCostUsd: estimateCostUsd(model, input, durationField(parameters)),
	};
}

function readTaskId(parameters: ItemParameters): string {
	const wayOut =
		'Enter the task id that the service returned when the task was created, e.g. {{ $json.taskId }}.';
	const text = parameters.requiredText('taskId', 'Task ID', wayOut);
	const taskId = asTaskId(text);
	if (taskId === undefined) {
		throw new ItemError(`The parameter 'Task ID' cannot be a task id: '${text.slice(0, 100)}'`, {
			description: wayOut,
		});
	}
	return taskId;
}

function readCompletion(parameters: ItemParameters): Completion {
	const value = parameters.value('completion');
	if (value === '' || value === 'poll') return 'poll';
	if (value === 'suspend' || value === 'trigger' || value === 'return') return value;
	throw new ItemError(
		`The parameter 'Completion' is '${String(value)}', which this version does not know`,
		{
			description:
				"Choose one of the list: 'Wait by Polling', 'Suspend Until Callback', 'Notify a Trigger' or 'Return Immediately'.",
		},
	);
}
