import type { INodeProperties } from 'n8n-workflow';

/** The operations that create a task, as they stand in `displayOptions`. */
const CREATES = [
	{ resource: ['image', 'video'], operation: ['generate'] },
	{ resource: ['task'], operation: ['create'] },
];

/** An AI agent needs the answer of the call itself. */
const NOT_IN_TOOLS = { hide: { '@tool': [true] } };

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
			name: 'Suspend Until Finished',
			value: 'suspend',
			displayOptions: NOT_IN_TOOLS,
			description:
				'Create all tasks, suspend the execution until the last of them is finished, then output the results; survives restarts',
		},
		{
			name: 'Notify a Trigger',
			value: 'trigger',
			displayOptions: NOT_IN_TOOLS,
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

/** What each choice costs beside money. */
const NOTICES: Record<string, string> = {
	poll: "If n8n restarts during the wait, this execution ends without the results, but the tasks go on and are billed. For videos and large batches, choose 'Suspend Until Finished'.",
	suspend:
		'n8n looks for the results by itself, after a minute and then ever less often. If the service can call this n8n, the execution goes on the moment the last task is finished. Nothing else needs to be set up.',
	trigger:
		'Publish the workflow of the trigger first. Where a callback does not come, n8n looks for the result by itself, after a minute and then ever less often.',
	return:
		"Nothing waits for these tasks, which are billed. Store each 'taskId': it is the way to the results.",
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
