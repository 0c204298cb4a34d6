import type { INodeProperties } from 'n8n-workflow';

import { inputOptions } from './inputOptions';
import { CREATES } from './completion';
import { numberField, shownWhen } from './makers';
import { outputOptions } from './output';

const waits = { '/operation': CREATES, '/completion': ['wait'] };
const triggers = { '/operation': CREATES, '/completion': ['trigger'] };
const waitsForTask = { '/operation': ['wait'] };

const ofCreates = [{ '/operation': CREATES }];
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
				name: 'Keep All Items',
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
				'The most that one run may cost. If its tasks would cost more, or a price is not known, the node orders nothing. 0 means no limit.',
		},
	]),
	...shownWhen(ofResults, outputOptions),
	...shownWhen(ofWaits, [
		{
			...numberField('Max Tasks at the Same Time', 'maxInFlight'),
			description:
				'How many tasks of this node the service may work on at once. More is faster, up to the limit of your account.',
		},
		{
			...numberField('Survive Restarts After (Minutes)', 'suspendAfter'),
			description:
				'Minutes from the start of this node until its run is stored and sleeps. From then on a restart of n8n does no harm; a restart before ends the execution. 0 = the run is stored before its first task is created.',
		},
	]),
	...shownWhen(ofWaitsAndTriggers, [
		{
			...numberField('Timeout (Seconds)', 'timeout'),
			description:
				'How long to wait for each task. 0 = one day, or ten minutes where the run cannot sleep. A late task is not lost: it goes on at the service.',
		},
	]),
	{
		...numberField('Retry Failed Tasks', 'retryFailed'),
		description:
			"How often to try a failed task again, within 'Timeout'. Failed tasks are usually free. For models that fail by chance.",
		displayOptions: { show: waits },
	},
	{
		displayName: 'Row Name or ID',
		name: 'reference',
		type: 'string',
		default: '',
		placeholder: 'e.g. row-7',
		description:
			"The row, order or customer that the task belongs to. The result has it as 'reference', also on a Media Generation Trigger. Enter no secrets: the service can read it. At most 500 characters.",
		displayOptions: { show: { '/operation': [...CREATES, 'redeliver'] } },
	},
];

/** The collection *Options* of the action node: the panel shows each option only where it applies. */
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
