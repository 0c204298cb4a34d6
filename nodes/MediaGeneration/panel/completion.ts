import type { IDisplayOptions, INodeProperties } from 'n8n-workflow';

/** The operations that create a task. */
export const CREATES = ['generate', 'create'];

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

/** The options where results leave the node. */
export const outputOptions: INodeProperties[] = [
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
