import type {
	IDisplayOptions,
	INodeProperties,
	INodePropertyOptions,
	NodeHint,
} from 'n8n-workflow';

import { type NumberBounds, NUMBERS } from '../shared/parameters';
import { IMAGE_MODEL, VIDEO_MODEL } from '../service/money';

/** A line that is longer is a paragraph of one prompt, characters. */
const SHORT_LINE = 100;

/** A text that is longer may have had line breaks, characters. */
const LONG_TEXT = 60;

/** So many rows n8n's node of a data table gives at most. */
const PAGE = 50;

/** A prompt that looks like a list of prompts. */
const hasShortLines = `String($parameter["prompt"] ?? "").split("\\n").map((line) => line.trim()).filter((line) => line !== "").length > 1 && String($parameter["prompt"]).split("\\n").every((line) => line.trim().length <= ${SHORT_LINE})`;

/** @param condition an expression over the parameters */
const hintIf = (
	condition: string,
	message: string,
	whenToDisplay: NodeHint['whenToDisplay'] = 'beforeExecution',
): NodeHint => ({
	message,
	location: 'outputPane',
	whenToDisplay,
	displayCondition: `={{ ${condition} }}`,
});

/** Whether nothing that is sent differs from item to item: no expression, and no file. */
const isSameForAll = `$parameter["prompt"] !== "" && $parameter["imageSource"] !== "binary" && !$parameter["options"]["files"] && !JSON.stringify($rawParameter).includes('"=')`;

/** Hints for a prompt that is perhaps not meant as one prompt for each item. */
const promptHints = (resource: 'image' | 'video', result: string, label: string): NodeHint[] => [
	hintIf(
		`$parameter["resource"] === "${resource}" && $parameter["promptPerLine"] === false && ${hasShortLines}`,
		`The prompt has several lines, and makes one ${resource}. If each line describes ${result} of its own, switch on '${label}'.`,
	),
	hintIf(
		`$parameter["resource"] === "${resource}" && $input.all().length > 1 && ${isSameForAll}`,
		`Each incoming item makes ${result} of its own, and all have the same prompt. To use a field of the items, drag the field into 'Prompt'.`,
	),
];

/** Hints of the output panel before a run, which depend on the parameters. */
export const panelHints: NodeHint[] = [
	hintIf(
		`["${IMAGE_MODEL}", "${VIDEO_MODEL}"].includes($parameter["model"])`,
		"This model is a placeholder, which most services do not have. Choose a model of your account in 'Model'. To have your models in the list, with their prices, enter them in the credential.",
	),
	// n8n leaves the old fields if it cannot evaluate an expression of the node, such as a prompt before the first run.
	hintIf(
		'($rawParameter["modelFields"]?.["schema"] ?? []).some(({ display, displayName }) => display === false && displayName !== ($parameter["model"] || displayName))',
		"The fields under 'Model Fields' are those of another model. To have those of this model, close the node and open it again.",
		'always',
	),
	// The list shows the price beside the model, and n8n keeps what the list showed.
	hintIf(
		'$parameter["resource"] === "video" && $parameter["durationSeconds"] === 0 && !$parameter["options"]["additionalFields"] && !$parameter["options"]["additionalInput"] && /"cachedResultName":"[^"]* per second\\)"/.test(JSON.stringify($rawParameter))',
		"The price of this model is by the second, and 'Duration (Seconds)' is 0: the model decides what the video costs, and 'Max Cost (USD)' would refuse it.",
	),
	hintIf(
		'$parameter["resource"] === "task" && /^\\s*execution\\s/i.test($parameter["taskId"] ?? "")',
		"Leave this node connected to nothing: 'Execute step' runs the nodes before it first, and a node that orders would order again.",
	),
	...promptHints('image', 'an image', 'One Image per Line'),
	...promptHints('video', 'a video', 'One Video per Line'),
	hintIf(
		'$parameter["completion"] === "wait" && $parameter["downloadResults"] === false && !$parameter["options"]["dryRun"]',
		"The output holds the URL of each result. To see the results here, switch on 'Download Results'.",
	),
	// n8n shows no hint at a list of fields, and the user may add a field after the first run.
	hintIf(
		'!!$parameter["options"]["additionalFields"] && !$parameter["options"]["additionalFields"]["assignments"]?.[0]?.name',
		"'Additional Fields': take each name from the model's documentation, e.g. aspect_ratio with 16:9.",
		'always',
	),
	hintIf(
		`($rawParameter["options"]?.["additionalFields"]?.["assignments"] ?? []).some(({ value }) => typeof value === "string" && !value.startsWith("=") && value.length > ${LONG_TEXT})`,
		"'Additional Fields': a text field drops line breaks. To keep them, switch the value to Expression.",
		'always',
	),
	hintIf(
		`$input.all().length === ${PAGE}`,
		`${PAGE} items have come in. If more were expected: n8n's 'Get row(s)' gives ${PAGE} rows, unless its 'Return All' is on.`,
		'always',
	),
];

export const operationField = (
	resource: string,
	operation: string,
	options: INodePropertyOptions[],
): INodeProperties => ({
	displayName: 'Operation',
	name: 'operation',
	type: 'options',
	noDataExpression: true,
	displayOptions: { show: { resource: [resource] } },
	default: operation,
	options,
});

export function numberField(displayName: string, name: keyof typeof NUMBERS): INodeProperties {
	const { min = 0, max, fallback = 0 }: NumberBounds = NUMBERS[name];
	return {
		displayName,
		name,
		type: 'number',
		typeOptions: { minValue: Math.min(min, fallback), ...(max !== undefined && { maxValue: max }) },
		default: fallback,
	};
}

export const optionsField = (options: INodeProperties[]): INodeProperties => ({
	displayName: 'Options',
	name: 'options',
	type: 'collection',
	placeholder: 'Add option',
	default: {},
	options,
});

/** @param content what the file contains */
export const fileField = (content: string): INodeProperties => ({
	displayName: 'Input Data Field Name',
	name: 'binaryPropertyName',
	type: 'string',
	default: 'data',
	placeholder: 'e.g. data',
	hint: `The name of the input field containing the ${content}, as the Binary tab of the input shows it`,
	description:
		'Several names: put commas between them. For a file of an earlier node, use an expression.',
});

/** The same fields for each condition. Only one condition holds at a time. */
export const shownWhen = (
	conditions: Array<IDisplayOptions['show']>,
	properties: INodeProperties[],
): INodeProperties[] =>
	properties.flatMap((property) =>
		conditions.map((condition) => ({
			...property,
			displayOptions: {
				...property.displayOptions,
				show: { ...condition, ...property.displayOptions?.show },
			},
		})),
	);
