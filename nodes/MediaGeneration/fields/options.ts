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
			'How often to order a failed task again, for models that fail by chance. Failed tasks are usually free.',
		displayOptions: { show: waits },
	},
];

/** Which row a result belongs to. */
const rows: INodeProperties[] = [
	{
		displayName: 'Include Input',
		name: 'includeInput',
		type: 'boolean',
		noDataExpression: true,
		// What it is when it is added in the panel. Left out, it is off.
		default: true,
		displayOptions: { hide: { '@tool': [true] } },
		description:
			'Whether the fields and files of the incoming item go on beside the result, e.g. to write a row back',
	},
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
];

const times: INodeProperties[] = [
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
			description:
				'From then on the run sleeps between looks. Asleep it survives restarts of n8n. 0 = before the first order.',
		},
	]),
];

/** The collection *Options* of the action node: the panel shows each option only where it applies. */
export const optionFields: INodeProperties[] = [
	{
		displayName: 'Options',
		name: 'options',
		type: 'collection',
		placeholder: 'Add option',
		default: {},
		// n8n shows one long list, of which about eight can be seen: what guards money comes first.
		options: [
			...guards,
			...shownWhen(ofCreates, inputOptions),
			...rows,
			...shownWhen(ofResults, outputOptions),
			...times,
		],
	},
];
