import type { INodeProperties } from 'n8n-workflow';

/** The operations that create a task, as they stand in `displayOptions`. */
const CREATES = [
	{ resource: ['image', 'video'], operation: ['generate'] },
	{ resource: ['task'], operation: ['create'] },
];

/** An AI agent needs the answer of the call itself. */
const NOT_IN_TOOLS = { hide: { '@tool': [true] } };

const completion: INodeProperties = {
	displayName: 'When to Continue',
	name: 'completion',
	type: 'options',
	noDataExpression: true,
	default: 'wait',
	description: 'What this node does while the tasks are running',
	builderHint: {
		propertyHint:
			"Keep 'wait' unless the user asks otherwise: the node waits by itself, also for hours and through restarts, so add no Wait, no If and no loop. 'trigger' needs a published workflow that starts with a Media Generation Trigger. With 'return', store each taskId: nobody fetches the results.",
	},
	options: [
		{
			name: 'Wait for Results',
			value: 'wait',
			description:
				'This workflow: the items leave when all tasks are finished. A wait of more than 5 minutes survives restarts of n8n. No public address is needed.',
		},
		{
			name: 'Notify a Trigger',
			value: 'trigger',
			displayOptions: NOT_IN_TOOLS,
			description:
				'Another workflow: its Media Generation Trigger starts once for each finished task. The items leave at once.',
		},
		{
			name: 'Return Immediately',
			value: 'return',
			description: "Nobody now: the items leave at once. Get the results later with 'Task → Wait'.",
		},
	],
};

/** What each choice asks of the user. */
const NOTICES: Record<string, string> = {
	trigger:
		"Publish the workflow of the trigger first. If the service cannot reach n8n, n8n checks after one minute, then less and less often (at most 15 minutes apart). 'Download Results' and 'Split Results' are options of the trigger.",
	return:
		"Nothing waits for these tasks, and they are billed. Store each 'taskId': you need it to get the results. 'Download Results', 'Split Results' and 'Timeout' are options of 'Task → Wait'.",
};

const notices = Object.entries(NOTICES).map(([value, displayName]) => ({
	value,
	notice: { displayName, name: 'completionNotice', type: 'notice', default: '' } as const,
}));

const callbackUrl: INodeProperties = {
	displayName: 'Callback URL',
	name: 'callbackUrl',
	type: 'string',
	default: '',
	placeholder: 'e.g. https://n8n.example.com/webhook/…/callback',
	hint: 'Leave empty for the published trigger of this same workflow',
	description: 'Production URL of the Media Generation Trigger to notify, copied from its panel',
};

const redelivers = { resource: ['task'], operation: ['redeliver'] };

export const completionFields: INodeProperties[] = [
	...CREATES.flatMap((show) => [
		{ ...completion, displayOptions: { show } },
		...notices.map(({ value, notice }) => ({
			...notice,
			displayOptions: { show: { ...show, completion: [value] } },
		})),
		{ ...callbackUrl, displayOptions: { show: { ...show, completion: ['trigger'] } } },
	]),
	{ ...callbackUrl, displayOptions: { show: redelivers } },
];
