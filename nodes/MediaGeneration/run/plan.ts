import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { callbackAddress } from '../callback/address';
import { triggerOfThisWorkflow } from '../callback/registry';
import { resumeUrl } from '../callback/suspension';
import { readOutputOptions, type OutputOptions } from '../output/options';
import { estimateCostUsd, roundUsd } from '../service/prices';
import { asTaskId } from '../service/taskRecord';
import { ItemError } from '../shared/itemError';
import { ItemParameters } from './parameters';
import { MAX_POLL_INTERVAL_SECONDS, MIN_POLL_INTERVAL_SECONDS } from './wait';

/** When a created task's item leaves the node. */
export type Completion = 'poll' | 'suspend' | 'trigger' | 'return';

interface PlanBase {
	itemIndex: number;
	pollIntervalMs: number;
	/** Milliseconds to wait for the task, from the moment it is created. */
	timeoutMs: number;
	output: OutputOptions;
}

export interface CreatePlan extends PlanBase {
	kind: 'create';
	completion: Completion;
	model: string;
	input: IDataObject;
	/** Binary data of the item that goes into `input` as a data URI, when the task is created and not before. */
	image?: { field: string; binaryPropertyName: string };
	/** Where the service calls back, token included. */
	webhookUrl?: string;
	/** US dollars; undefined where the price is not known. */
	estimatedCostUsd: number | undefined;
}

export interface ReadPlan extends PlanBase {
	kind: 'read';
	taskId: string;
	/** Whether to wait until the task is finished. */
	wait: boolean;
	/** The trigger that gets the task's callback once more, token included. */
	redeliverTo?: string;
}

export type ItemPlan = CreatePlan | ReadPlan;

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
	const items = Array.from({ length: count }, (_, itemIndex) => {
		try {
			return planItem(new ItemParameters(context, itemIndex), context, apiKey);
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
): ItemPlan {
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
				redeliverTo: readCallbackAddress(parameters, context, apiKey),
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
		...(completion === 'suspend' && { webhookUrl: callbackAddress(resumeUrl(context), apiKey) }),
		...(completion === 'trigger' && {
			webhookUrl: readCallbackAddress(parameters, context, apiKey),
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

function readCallbackAddress(
	parameters: ItemParameters,
	context: IExecuteFunctions,
	apiKey: string,
): string {
	const entered = parameters.value('callbackUrl');
	const url =
		typeof entered === 'string' && entered.trim() !== '' ? entered : triggerOfThisWorkflow(context);
	return callbackAddress(url, apiKey);
}

function durationField(parameters: ItemParameters): string {
	return parameters.optionText('durationField', 'duration');
}

type MediaInput = Pick<CreatePlan, 'input' | 'image'>;

function readRawInput(parameters: ItemParameters): MediaInput {
	const input = parameters.jsonObject(parameters.value('input'), 'Input');
	if (Object.keys(input).length === 0) {
		throw new ItemError("The parameter 'Input' is empty", {
			description:
				'Write the input of the model as a JSON object, e.g. { "prompt": "a lighthouse at dusk" }.',
		});
	}
	// A copy: the object may be the one that a node before put out.
	return { input: { ...input } };
}

function readMediaInput(
	parameters: ItemParameters,
	context: IExecuteFunctions,
	resource: unknown,
): MediaInput {
	const input: IDataObject = {
		prompt: parameters.requiredText(
			'prompt',
			'Prompt',
			'Describe what is to be generated. If the prompt is an expression, check that the incoming item has that field.',
		),
	};
	if (resource !== 'video') return { input };

	const seconds = parameters.number(parameters.value('durationSeconds'), 'Duration', {
		fallback: 0,
		min: 0,
		unit: 'seconds; 0 leaves the choice to the model',
	});
	if (seconds > 0) input[durationField(parameters)] = seconds;

	const imageField = parameters.optionText('imageField', 'image_url');
	switch (parameters.value('imageSource')) {
		case 'none':
			return { input };
		case 'binary': {
			const binaryPropertyName = parameters.requiredText(
				'binaryPropertyName',
				'Input Data Field Name',
				"Enter the name of the field that holds the picture, e.g. 'data'.",
			);
			const { mimeType } = context.helpers.assertBinaryData(
				parameters.itemIndex,
				binaryPropertyName,
			);
			if (!mimeType.startsWith('image/')) {
				throw new ItemError(
					`The field '${binaryPropertyName}' holds '${mimeType}' and not a picture`,
					{ description: "Choose a field with a picture in 'Input Data Field Name'." },
				);
			}
			return { input, image: { field: imageField, binaryPropertyName } };
		}
		default:
			input[imageField] = readImageUrl(parameters);
			return { input };
	}
}

function readImageUrl(parameters: ItemParameters): string {
	const wayOut =
		"Enter an address that the service can reach, e.g. https://example.com/image.png, or choose another 'Reference Image'.";
	const text = parameters.requiredText('imageUrl', 'Image URL', wayOut).trim();
	if (/^data:image\//i.test(text)) return text;
	if (!URL.canParse(text)) {
		throw new ItemError(
			`The parameter 'Image URL' is not a valid address: '${text.slice(0, 100)}'`,
			{
				description: wayOut,
			},
		);
	}
	const { protocol } = new URL(text);
	if (protocol !== 'https:' && protocol !== 'http:') {
		throw new ItemError(`The parameter 'Image URL' starts with '${protocol}'`, {
			description: wayOut,
		});
	}
	return text;
}

/** @throws ItemError where the known price is above the budget, or cannot be known */
function checkBudget(items: Array<ItemPlan | ItemError>, first: ItemParameters): void {
	const budget = first.number(first.option('maxCostUsd'), 'Max Cost (USD)', {
		fallback: 0,
		min: 0,
	});
	if (budget === 0) return;
	const creates = items.filter(
		(item): item is CreatePlan => 'kind' in item && item.kind === 'create',
	);
	const unknown = creates.find(({ estimatedCostUsd }) => estimatedCostUsd === undefined);
	if (unknown) {
		throw new ItemError(
			`The price of item ${unknown.itemIndex} (model '${unknown.model}') is not known, so the limit of ${budget} USD cannot be kept`,
			{
				description:
					"Set a 'Duration' if it is a video, use a model whose price is known, or remove 'Max Cost (USD)'. No task was created.",
			},
		);
	}
	const total = roundUsd(
		creates.reduce((sum, { estimatedCostUsd = 0 }) => sum + estimatedCostUsd, 0),
	);
	if (total > budget) {
		throw new ItemError(
			`${creates.length} tasks would cost ${total} USD, which is above the limit of ${budget} USD`,
			{
				description:
					"Raise 'Max Cost (USD)' in the options, or send fewer items. No task was created.",
			},
		);
	}
}
