import type { IDisplayOptions, INodeProperties } from 'n8n-workflow';

import { fileField, numberField, optionsField, shownWhen } from './hints';

const CREATES = ['generate', 'create'];

/** An AI agent needs the result as the answer of the call, and gets no files. */
const NOT_IN_TOOLS = { hide: { '@tool': [true] } };

const completion: INodeProperties = {
	displayName: 'When Do the Items Go On',
	name: 'completion',
	type: 'options',
	noDataExpression: true,
	default: 'wait',
	displayOptions: { show: { operation: CREATES } },
	description: 'What this node does while the tasks are running',
	builderHint: {
		propertyHint:
			"Keep 'wait' unless the user asks otherwise: the node waits by itself, also for hours. 'trigger' needs a published workflow that starts with a Media Generation Trigger. With 'return' nobody fetches the results.",
	},
	options: [
		{
			name: 'Wait for Results',
			value: 'wait',
			description: 'The next node runs when all tasks are finished, also after hours',
		},
		{
			name: 'Notify a Trigger',
			value: 'trigger',
			displayOptions: NOT_IN_TOOLS,
			description:
				'The next node runs at once. Each finished task starts the workflow of a Media Generation Trigger.',
		},
		{
			name: 'Return Immediately',
			value: 'return',
			description: "The next node runs at once. Get the results later with 'Wait for Task'.",
		},
	],
};

const callbackUrl: INodeProperties = {
	displayName: 'Callback URL',
	name: 'callbackUrl',
	type: 'string',
	default: '',
	placeholder: 'e.g. https://n8n.example.com/webhook/…/callback',
	hint: 'Leave empty for the published trigger of this same workflow',
	description: 'Production URL of the Media Generation Trigger to notify, copied from its panel',
};

const shownWith = (completion: string) => ({
	show: { operation: CREATES, completion: [completion] },
});

const notice = (completion: string, displayName: string): INodeProperties => ({
	displayName,
	name: 'completionNotice',
	type: 'notice',
	default: '',
	displayOptions: shownWith(completion),
});

/** The fields that say when the items leave, and to which trigger. */
export const completionFields: INodeProperties[] = [
	completion,
	notice(
		'trigger',
		"First add a Media Generation Trigger, and publish its workflow. The list of executions has an execution that is 'Waiting' until all results have arrived: do not stop it.",
	),
	notice(
		'return',
		"Nothing waits for these tasks, and they are billed. Store each 'taskId' for 'Wait for Task'.",
	),
	{ ...callbackUrl, displayOptions: shownWith('trigger') },
	{ ...callbackUrl, displayOptions: { show: { operation: ['redeliver'] } } },
];

const downloadResults = (show: IDisplayOptions['show']): INodeProperties => ({
	displayName: 'Download Results',
	name: 'downloadResults',
	type: 'boolean',
	default: true,
	displayOptions: { show, ...NOT_IN_TOOLS },
	description: 'Whether to attach each result as a file, which the output panel shows',
});

/** The field *Download Results*, where the results are waited for or read. */
export const downloadFields: INodeProperties[] = [
	downloadResults({ operation: CREATES, completion: ['wait'] }),
	downloadResults({ resource: ['task'], operation: ['wait'] }),
	{ ...downloadResults({ resource: ['task'], operation: ['get'] }), default: false },
];

/** A row goes on with its result. An agent gets only the fields that it can use. */
export const includeInput: INodeProperties = {
	displayName: 'Include Input Fields',
	name: 'includeInput',
	type: 'boolean',
	noDataExpression: true,
	default: true,
	displayOptions: { hide: { '@tool': [true], operation: ['redeliver'] } },
	description:
		'Whether the fields and files of the incoming item go on beside the result, e.g. to write a row back',
};

const outputOptions: INodeProperties[] = [
	{
		displayName: 'Name of File Field',
		name: 'outputBinaryField',
		type: 'string',
		displayOptions: { show: { '/downloadResults': [true] }, ...NOT_IN_TOOLS },
		default: 'data',
		placeholder: 'e.g. data',
		description:
			'Name of the binary field for the result. Further results of one task get _1, _2 and so on appended.',
	},
	{
		displayName: 'Split Results',
		name: 'splitResults',
		type: 'boolean',
		default: true,
		description:
			'Whether each result becomes an item, for models that make several results in one task',
	},
];

const inputField: INodeProperties = {
	displayName: 'Name in the Model',
	name: 'inputField',
	type: 'string',
	default: '',
	placeholder: 'e.g. first_frame',
	description:
		"The model's name for this file. Files with one name become a list; images[] is a list of one.",
};

const sendFilesAs: INodeProperties = {
	displayName: 'Send Files As',
	name: 'sendFilesAs',
	type: 'options',
	noDataExpression: true,
	default: 'data',
	description: "How 'Files' and the reference picture reach the service",
	options: [
		{
			name: 'Data',
			value: 'data',
			description: 'In the request itself, as data URIs',
		},
		{
			name: 'Links',
			value: 'link',
			description:
				"As links to this n8n, which the service must reach. They end with the task's timeout.",
		},
	],
};

const inputOptions: INodeProperties[] = [
	{
		displayName: 'Additional Fields',
		name: 'additionalFields',
		type: 'assignmentCollection',
		default: {},
		description:
			'More input of the model, such as aspect_ratio or seed. Wins over a field above with the same name.',
		builderHint: {
			propertyHint:
				"The fields differ from model to model, and n8n does not know them: take their names from the model's documentation or from the user, and invent none.",
		},
	},
	{
		displayName: 'Files',
		name: 'files',
		type: 'fixedCollection',
		typeOptions: { multipleValues: true, sortable: true },
		placeholder: 'Add File',
		default: {},
		description: 'Files to send to the model, such as a first frame or a sound',
		options: [{ displayName: 'File', name: 'file', values: [inputField, fileField('file')] }],
		builderHint: {
			propertyHint:
				"Takes names of binary fields of the incoming item, and no addresses: an address goes into 'additionalFields' as a string. Several rows with one inputField become a list, in order, e.g. first and last frame.",
		},
	},
	sendFilesAs,
	{
		displayName: 'More Input (JSON)',
		name: 'additionalInput',
		type: 'json',
		default: '{}',
		description:
			'The same as Additional Fields, as a JSON object, e.g. { "seed": 7 }. Wins over all other fields.',
	},
];

const waits = { '/operation': CREATES, '/completion': ['wait'] };
const triggers = { '/operation': CREATES, '/completion': ['trigger'] };
const waitsForTask = { '/operation': ['wait'] };

const ofCreates = [{ '/operation': CREATES }];
const ofResults = [waits, { '/operation': ['get', 'wait'] }];
const ofWaits = [waits, waitsForTask];

/** What guards money, and what becomes of items that fail. */
const guards: INodeProperties[] = [
	...shownWhen(ofCreates, [
		{
			displayName: 'Dry Run',
			name: 'dryRun',
			type: 'boolean',
			default: true,
			description: 'Whether to order nothing, and to show what would be sent and the price',
			builderHint: {
				propertyHint:
					'Each task costs real money, in a preview, too. Build and test with true, and leave it out when the user wants the results.',
			},
		},
		{
			...numberField('Max Cost (USD)', 'maxCostUsd'),
			description:
				'The most that one run may cost. Above it, or if a price is not known, nothing is ordered. 0 = no limit.',
		},
	]),
	{
		displayName: 'If Some Items Fail',
		name: 'ifSomeFail',
		type: 'options',
		noDataExpression: true,
		default: 'keep',
		description: "What to do when some items fail. If all fail, the setting 'On Error' decides.",
		options: [
			{
				name: 'Keep All Items',
				value: 'keep',
				description: "Output all items, the failed ones with the reason in 'error'",
			},
			{
				name: 'Stop with an Error',
				value: 'stop',
				description:
					"Order no more, finish what is ordered. The setting 'On Error' decides what follows.",
			},
		],
	},
	{
		...numberField('Retry Failed Tasks', 'retryFailed'),
		description:
			'How often to order a failed task again, for models that fail by chance. Some services charge for a failed task.',
		displayOptions: { show: waits },
	},
];

/** The collection *Options* of the action node: the panel shows each option only where it applies. */
export const optionFields: INodeProperties[] = [
	// n8n shows one long list, of which about eight can be seen: what guards money comes first.
	optionsField([
		...guards,
		...shownWhen(ofCreates, inputOptions),
		{
			displayName: 'Reference',
			name: 'reference',
			type: 'string',
			default: '',
			placeholder: 'e.g. row-7',
			description:
				"Your row, order or customer. The result has it as 'reference', on the trigger too. The service can read it.",
			displayOptions: { show: { '/operation': [...CREATES, 'redeliver'] } },
		},
		...shownWhen(ofResults, outputOptions),
		{
			...numberField('Max Tasks at the Same Time', 'maxInFlight'),
			description:
				'How many tasks of this node may be unfinished at once. More is faster, up to the limit of your account.',
			displayOptions: { show: waits },
		},
		...shownWhen(
			[...ofWaits, triggers],
			[
				{
					...numberField('Timeout (Seconds)', 'timeout'),
					description:
						'How long to wait for each task. 0 = one day, or ten minutes if the run cannot sleep. A late task goes on.',
				},
			],
		),
		...shownWhen(ofWaits, [
			{
				...numberField('Sleep After (Minutes)', 'suspendAfter'),
				// An agent waits for its tool.
				displayOptions: { hide: { '@tool': [true] } },
				description:
					'From then on the run sleeps between looks. Asleep it survives restarts of n8n. 0 = before the first order.',
			},
		]),
	]),
];
