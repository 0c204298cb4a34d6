import type { INodeProperties } from 'n8n-workflow';

/** The operations that create a task, as they stand in `displayOptions`. */
const CREATES = [
	{ resource: ['image', 'video'], operation: ['generate'] },
	{ resource: ['task'], operation: ['create'] },
];

const completion: INodeProperties = {
	displayName: 'Completion',
	name: 'completion',
	type: 'options',
	noDataExpression: true,
	default: 'poll',
	description: 'What this node does until the tasks are finished',
	options: [
		{
			name: 'Wait by Polling',
			value: 'poll',
			description: 'Wait in this node until every task is finished, then output the results',
		},
		{
			name: 'Suspend Until Callback',
			value: 'suspend',
			description:
				'Create all tasks, suspend the execution until the last of them is finished, then output the results; for long or many tasks',
		},
		{
			name: 'Notify a Trigger',
			value: 'trigger',
			description:
				'Output the created tasks at once; a Media Generation Trigger starts a workflow for each task when it is finished',
		},
		{
			name: 'Return Immediately',
			value: 'return',
			description:
				'Output the created tasks at once; fetch their results later with the operation Wait',
		},
	],
};

const callbackUrl: INodeProperties = {
	displayName: 'Callback URL',
	name: 'callbackUrl',
	type: 'string',
	default: '',
	placeholder: 'e.g. https://n8n.example.com/webhook/…/callback',
	description:
		'Production URL of the Media Generation Trigger to notify. Leave empty for the trigger of this same workflow, which must be published. The service must be able to reach it.',
};

const redelivers = { resource: ['task'], operation: ['redeliver'] };

export const completionFields: INodeProperties[] = [
	...CREATES.flatMap((show) => [
		{ ...completion, displayOptions: { show } },
		{ ...callbackUrl, displayOptions: { show: { ...show, completion: ['trigger'] } } },
	]),
	{ ...callbackUrl, displayOptions: { show: redelivers } },
];
