import type { INodeProperties } from 'n8n-workflow';

import { outputOptions } from './output';

const creates = { '/operation': ['generate', 'create'] };
const waits = { show: { '/completion': ['poll'], ...creates } };
const watches = { show: { '/completion': ['suspend', 'trigger'], ...creates } };
const waitsForTask = { show: { '/operation': ['wait'] } };
const redelivers = { show: { '/operation': ['redeliver'] } };
const video = { show: { '/resource': ['video'] } };

const pollInterval: INodeProperties = {
	displayName: 'Poll Interval (Seconds)',
	name: 'pollInterval',
	type: 'number',
	typeOptions: { minValue: 2, maxValue: 5 },
	default: 2,
	description: 'Time between two checks of a task. The service asks for 2 to 5 seconds.',
};

const timeout: INodeProperties = {
	displayName: 'Timeout (Seconds)',
	name: 'timeout',
	type: 'number',
	typeOptions: { minValue: 1 },
	default: 600,
	description:
		'How long to wait for each task. A task that takes longer is not lost: it goes on at the service.',
};

const inputField: INodeProperties = {
	displayName: 'Input Field',
	name: 'inputField',
	type: 'string',
	default: '',
	placeholder: 'e.g. first_frame',
	description:
		'Name of the field of the model input that takes the file. Several files with the same name become a list; end the name with [] for a list also of one.',
};

const binaryPropertyName: INodeProperties = {
	displayName: 'Input Data Field Name',
	name: 'binaryPropertyName',
	type: 'string',
	default: 'data',
	placeholder: 'e.g. data',
	hint: 'The name of the input field containing the file',
	description:
		'Name of the binary field of the incoming item, several names with commas between them, or an expression that gives the file of a node before',
};

const download = { show: { '/completion': ['poll', 'suspend'], ...creates } };
const split = { show: { '/completion': ['poll'], ...creates } };
const downloadOfTask = { show: { '/operation': ['get', 'wait'] } };
const ofFile = ({ show }: typeof download | typeof downloadOfTask) => ({
	show: { ...show, ...outputOptions.outputBinaryField.displayOptions.show },
});

/** The same option under each of the conditions: one of them holds at a time. */
const shownWhen = (
	property: INodeProperties,
	...conditions: Array<INodeProperties['displayOptions']>
): INodeProperties[] =>
	conditions.map((displayOptions) => ({ ...property, ...(displayOptions && { displayOptions }) }));

export const optionFields: INodeProperties[] = [
	{
		displayName: 'Options',
		name: 'options',
		type: 'collection',
		placeholder: 'Add option',
		default: {},
		options: [
			...shownWhen(
				{
					displayName: 'Additional Fields',
					name: 'additionalFields',
					type: 'assignmentCollection',
					default: {},
					description:
						'For input fields of the model that are not above, such as a seed or a style, without writing JSON. They win over the fields above.',
				},
				{ show: creates },
			),
			...shownWhen(
				{
					displayName: 'Additional Input',
					name: 'additionalInput',
					type: 'json',
					default: '{}',
					description:
						'For those who write JSON: further input fields of the model as an object, e.g. { "seed": 7 }. They win over all other fields.',
				},
				{ show: creates },
			),
			...shownWhen(outputOptions.downloadResults, download, downloadOfTask),
			...shownWhen(
				{
					displayName: 'Dry Run',
					name: 'dryRun',
					type: 'boolean',
					default: false,
					description:
						'Whether to send nothing, and only show what each item would send and cost; for a look, or an approval, before you pay',
				},
				{ show: creates },
			),
			...shownWhen(
				{
					displayName: 'Duration Field',
					name: 'durationField',
					type: 'string',
					default: 'duration',
					placeholder: 'e.g. duration',
					description: 'Name of the field of the model input that takes the duration',
				},
				video,
			),
			{
				displayName: 'If Some Items Fail',
				name: 'ifSomeFail',
				type: 'options',
				noDataExpression: true,
				default: 'keep',
				description:
					"What to do when some items fail and others succeed. Where all fail, the setting 'On Error' decides.",
				options: [
					{
						name: 'Keep What Succeeded',
						value: 'keep',
						description: "Output all items, the failed ones with the reason in 'error'",
					},
					{
						name: 'Stop',
						value: 'stop',
						description: "Create nothing more; 'On Error' decides",
					},
				],
			},
			...shownWhen(
				{
					displayName: 'Files',
					name: 'files',
					type: 'fixedCollection',
					typeOptions: { multipleValues: true, sortable: true },
					placeholder: 'Add File',
					default: {},
					description:
						'For files that the model takes: first and last frame, reference pictures, a picture to edit, a sound. Sent along with the task.',
					options: [
						{ displayName: 'File', name: 'file', values: [inputField, binaryPropertyName] },
					],
				},
				{ show: creates },
			),
			...shownWhen(
				{
					displayName: 'Image Field',
					name: 'imageField',
					type: 'string',
					default: 'image_url',
					placeholder: 'e.g. image_url',
					description: 'Name of the field of the model input that takes the reference image',
				},
				video,
			),
			...shownWhen(
				{
					displayName: 'Look Interval (Seconds)',
					name: 'watchInterval',
					type: 'number',
					typeOptions: { minValue: 0 },
					default: 0,
					description:
						'Time between two looks for results whose callback has not come, 60 or more. With 0, the node looks after a minute, and then after a quarter of the time waited so far, at most every 15 minutes.',
				},
				watches,
			),
			...shownWhen(
				{
					displayName: 'Max Cost (USD)',
					name: 'maxCostUsd',
					type: 'number',
					typeOptions: { minValue: 0, numberPrecision: 4 },
					default: 0,
					description:
						'Refuse all items, before the first task is created, if their known price adds up to more than this. 0 means no limit.',
				},
				{ show: creates },
			),
			...shownWhen(
				{
					displayName: 'Max Tasks in Flight',
					name: 'maxInFlight',
					type: 'number',
					typeOptions: { minValue: 1 },
					default: 10,
					description:
						'How many tasks of this node may be under way at the service at once. Your account has a limit, too.',
				},
				undefined,
			),
			...shownWhen(pollInterval, waits, waitsForTask),
			...shownWhen(
				{
					displayName: 'Price per Task (USD)',
					name: 'pricePerTaskUsd',
					type: 'number',
					typeOptions: { minValue: 0, numberPrecision: 4 },
					default: 0,
					description:
						"For a model whose price this node does not know: what one task costs, so that the estimate and 'Max Cost (USD)' hold for it",
				},
				{ show: creates },
			),
			...shownWhen(outputOptions.outputBinaryField, ofFile(download), ofFile(downloadOfTask)),
			...shownWhen(
				{
					displayName: 'Reference',
					name: 'reference',
					type: 'string',
					default: '',
					placeholder: 'e.g. row-7',
					description:
						"What you tell the task by, such as the number of a row or an order. It comes out with the task as 'reference', on a Media Generation Trigger, too. It travels in the callback address: at most 500 characters, and nothing secret.",
				},
				{ show: creates },
				redelivers,
			),
			...shownWhen(outputOptions.splitResults, split, downloadOfTask),
			...shownWhen(
				{
					displayName: 'Start Again',
					name: 'startAgain',
					type: 'boolean',
					default: false,
					description:
						'Whether the trigger starts the workflow also for a task that has started it before, for executions that ended half way. Each run of this node starts a task once.',
				},
				redelivers,
			),
			...shownWhen(timeout, waits, waitsForTask),
			...shownWhen({ ...timeout, default: 86_400 }, watches),
		],
	},
];
