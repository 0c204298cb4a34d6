import type { INodeProperties } from 'n8n-workflow';

import { inputOptions, videoOptions } from './inputOptions';
import { CREATES } from './completion';
import { numberField, shownWhen } from './makers';
import { outputOptions } from './output';

const waits = { '/operation': CREATES, '/completion': ['wait'] };
const triggers = { '/operation': CREATES, '/completion': ['trigger'] };
const waitsForTask = { '/operation': ['wait'] };

const ofCreates = [{ '/operation': CREATES }];
const ofVideos = [{ '/resource': ['video'] }];
const ofResults = [waits, { '/operation': ['get', 'wait'] }];
const ofWaits = [waits, waitsForTask];
const ofWaitsAndTriggers = [...ofWaits, triggers];

const options: INodeProperties[] = [
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
		// What it is when it is added in the panel. Left out, it is off.
		default: true,
		displayOptions: { hide: { '@tool': [true] } },
		description:
			'Whether the fields and files of the incoming item go on beside the result, so that a row can be written back',
	},
	...shownWhen(ofCreates, [
		...inputOptions,
		{
			displayName: 'Dry Run',
			name: 'dryRun',
			type: 'boolean',
			default: true,
			description:
				'Whether to only try it out. Sends nothing and costs nothing. Shows what would be sent and the price.',
			builderHint: {
				propertyHint:
					'Each task costs real money, in a preview, too. Build and test with true, and leave it out when the user wants the results.',
			},
		},
		{
			...numberField('Max Cost (USD)', 'maxCostUsd'),
			description:
				'Refuse all items, before the first task is created, if their known price adds up to more than this. 0 means no limit.',
		},
		{
			...numberField('Price per Task (USD)', 'pricePerTaskUsd'),
			description:
				"What one task costs, for a model whose price this node does not know. The estimate and 'Max Cost (USD)' use it.",
		},
	]),
	...shownWhen(ofVideos, videoOptions),
	...shownWhen(ofResults, outputOptions),
	...shownWhen(ofWaits, [
		{
			...numberField('Max Tasks at the Same Time', 'maxInFlight'),
			description:
				'How many tasks of this node may be unfinished at the service at the same time. More is faster, up to the limit of your account.',
		},
		{
			...numberField('Poll Interval (Seconds)', 'pollInterval'),
			description: 'Time between two reads of a task. The service asks for 2 to 5 seconds.',
		},
		{
			...numberField('Suspend After (Minutes)', 'suspendAfter'),
			description:
				'How long n8n keeps this execution in memory after the last task is created. Then n8n suspends the execution and checks the tasks: from then on a restart does no harm. A restart before ends the execution. 0 = suspend at once.',
		},
	]),
	...shownWhen(ofWaitsAndTriggers, [
		{
			...numberField('Check Interval (Minutes)', 'checkInterval'),
			description:
				'Time between two checks of a suspended execution, or of tasks for a trigger. 0 = automatic: after one minute, then less and less often (at most 15 minutes apart).',
		},
		{
			...numberField('Timeout (Seconds)', 'timeout'),
			description:
				'How long to wait for each task. 0 = one day, or ten minutes if n8n cannot suspend the execution. A late task is not lost: it goes on at the service.',
		},
	]),
	{
		...numberField('Retry Failed Tasks', 'retryFailed'),
		description:
			"How often to try a failed task again, within 'Timeout'. Failed tasks are usually free. For models that fail by chance.",
		displayOptions: { show: waits },
	},
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
