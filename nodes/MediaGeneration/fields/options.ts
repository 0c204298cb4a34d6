import type { INodeProperties } from 'n8n-workflow';

import { inputOptions } from './inputOptions';
import { CREATES, ofCreates, shownWhen } from './completion';

/** Options of the action node and of the trigger, in the order of their labels. */
export const outputOptions = {
	downloadResults: {
		displayName: 'Download Results',
		name: 'downloadResults',
		type: 'boolean',
		// What it is when it is added in the panel. Left out, it is off.
		default: true,
		description:
			'Whether to download each result and attach it to the item as binary data, where the output panel shows it',
	},
	outputBinaryField: {
		displayName: 'Put Output File in Field',
		name: 'outputBinaryField',
		type: 'string',
		displayOptions: { show: { downloadResults: [true] } },
		default: 'data',
		placeholder: 'e.g. data',
		description:
			'Name of the binary field for the downloaded result. Further results of the same task get _1, _2 and so on appended.',
	},
	splitResults: {
		displayName: 'Split Results',
		name: 'splitResults',
		type: 'boolean',
		default: false,
		description:
			'Whether each result URL becomes an item of its own. For models that make several results in one task.',
	},
} satisfies Record<string, INodeProperties>;

const waits = { '/operation': CREATES, '/completion': ['wait'] };
const triggers = { '/operation': CREATES, '/completion': ['trigger'] };
const waitsForTask = { '/operation': ['wait'] };
const readsTask = { '/operation': ['get', 'wait'] };
const ofFile = outputOptions.outputBinaryField.displayOptions.show;

const options: INodeProperties[] = [
	...inputOptions,
	...shownWhen(outputOptions.downloadResults, waits, readsTask),
	{
		displayName: 'Dry Run',
		name: 'dryRun',
		type: 'boolean',
		// What it is when it is added in the panel. Left out, it is off.
		default: true,
		description:
			'Whether to only try it out. Sends nothing and costs nothing. Shows what would be sent and the price.',
		builderHint: {
			propertyHint:
				'Each task costs real money, in a preview, too. Build and test with true, and leave it out when the user wants the results.',
		},
		displayOptions: ofCreates,
	},
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
				name: 'Stop with an Error',
				value: 'stop',
				description:
					"Create no more tasks. Tasks already created go on and may be charged. 'On Error' decides what follows.",
			},
		],
	},
	{
		displayName: 'Include Input',
		name: 'includeInput',
		type: 'boolean',
		noDataExpression: true,
		default: false,
		displayOptions: { hide: { '@tool': [true] } },
		description:
			'Whether the fields and files of the incoming item go on beside the result, so that a row can be written back',
	},
	...shownWhen(
		{
			displayName: 'Check Interval (Minutes)',
			name: 'checkInterval',
			type: 'number',
			typeOptions: { minValue: 0 },
			default: 0,
			description:
				'Time between two checks while the execution is suspended. 0 = automatic: after one minute, then less and less often (at most 15 minutes apart).',
		},
		waits,
		waitsForTask,
		triggers,
	),
	{
		displayName: 'Max Cost (USD)',
		name: 'maxCostUsd',
		type: 'number',
		typeOptions: { minValue: 0 },
		default: 0,
		description:
			'Refuse all items, before the first task is created, if their known price adds up to more than this. 0 means no limit.',
		displayOptions: ofCreates,
	},
	...shownWhen(
		{
			displayName: 'Max Tasks at the Same Time',
			name: 'maxInFlight',
			type: 'number',
			typeOptions: { minValue: 1 },
			default: 10,
			description:
				'How many tasks of this node may be unfinished at the service at the same time. More is faster, up to the limit of your account.',
		},
		waits,
		waitsForTask,
	),
	...shownWhen(
		{
			displayName: 'Poll Interval (Seconds)',
			name: 'pollInterval',
			type: 'number',
			typeOptions: { minValue: 2, maxValue: 5 },
			default: 2,
			description: 'Time between two reads of a task. The service asks for 2 to 5 seconds.',
		},
		waits,
		waitsForTask,
	),
	{
		displayName: 'Price per Task (USD)',
		name: 'pricePerTaskUsd',
		type: 'number',
		typeOptions: { minValue: 0 },
		default: 0,
		description:
			"What one task costs, for a model whose price this node does not know. The estimate and 'Max Cost (USD)' use it.",
		displayOptions: ofCreates,
	},
	...shownWhen(
		outputOptions.outputBinaryField,
		{ ...waits, ...ofFile },
		{ ...readsTask, ...ofFile },
	),
	{
		displayName: 'Your Reference',
		name: 'reference',
		type: 'string',
		default: '',
		placeholder: 'e.g. row-7',
		description:
			"Your own name for the task, such as a row number. The result has it as 'reference', also on a Media Generation Trigger. No secrets: it travels in the callback address. At most 500 characters.",
		displayOptions: { show: { '/operation': [...CREATES, 'redeliver'] } },
	},
	{
		displayName: 'Retry Failed Tasks',
		name: 'retryFailed',
		type: 'number',
		typeOptions: { minValue: 0, maxValue: 5 },
		default: 0,
		description:
			"How often to try a failed task again, within 'Timeout'. Failed tasks are usually free. For models that fail by chance.",
		displayOptions: { show: waits },
	},
	...shownWhen(outputOptions.splitResults, waits, readsTask),
	{
		displayName: 'Start Again',
		name: 'startAgain',
		type: 'boolean',
		default: false,
		description:
			'Whether to start the workflow although this task has started it before, for example because that execution did not come to its end. Each run of this node starts the workflow once.',
		displayOptions: { show: { '/operation': ['redeliver'] } },
	},
	...shownWhen(
		{
			displayName: 'Suspend After (Minutes)',
			name: 'suspendAfter',
			type: 'number',
			typeOptions: { minValue: 0 },
			default: 5,
			description:
				'How long n8n keeps this execution in memory after the last task is created. Then n8n suspends the execution and checks the tasks: from then on a restart does no harm. A restart before ends the execution. 0 = suspend at once.',
		},
		waits,
		waitsForTask,
	),
	...shownWhen(
		{
			displayName: 'Timeout (Seconds)',
			name: 'timeout',
			type: 'number',
			typeOptions: { minValue: 0 },
			default: 0,
			description:
				'How long to wait for each task. 0 = one day, or ten minutes if n8n cannot suspend the execution. A late task is not lost: it goes on at the service.',
		},
		waits,
		waitsForTask,
		triggers,
	),
];

export const optionFields: INodeProperties[] = [
	{
		displayName: 'Options',
		name: 'options',
		type: 'collection',
		placeholder: 'Add option',
		default: {},
		// By label: n8n shows one long list.
		options: options.sort((one, other) => one.displayName.localeCompare(other.displayName)),
	},
];
