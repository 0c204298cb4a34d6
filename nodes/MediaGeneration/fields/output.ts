import type { IDisplayOptions, INodeProperties } from 'n8n-workflow';

import { CREATES } from './completion';

/** The default of an option is its value when it is added in the panel. Left out, a switch is off. */
const downloadResults: INodeProperties = {
	displayName: 'Download Results',
	name: 'downloadResults',
	type: 'boolean',
	default: true,
	description: 'Whether to attach each result as a file, which the output panel shows',
};

const outputBinaryField = (switchedOn: NonNullable<IDisplayOptions['show']>): INodeProperties => ({
	displayName: 'Put Output File in Field',
	name: 'outputBinaryField',
	type: 'string',
	displayOptions: { show: switchedOn },
	default: 'data',
	placeholder: 'e.g. data',
	description:
		'Name of the binary field for the result. Further results of one task get _1, _2 and so on appended.',
});

const splitResults: INodeProperties = {
	displayName: 'Split Results',
	name: 'splitResults',
	type: 'boolean',
	default: true,
	description:
		'Whether each result becomes an item, for models that make several results in one task',
};

/** The switch of the action node. An AI agent gets no files. */
const shownSwitch = (isOn: boolean, show: IDisplayOptions['show']): INodeProperties => ({
	...downloadResults,
	default: isOn,
	displayOptions: { show, hide: { '@tool': [true] } },
});

/** The field *Download Results*, where the results are waited for or read. */
export const downloadFields: INodeProperties[] = [
	shownSwitch(true, { operation: CREATES, completion: ['wait'] }),
	shownSwitch(true, { resource: ['task'], operation: ['wait'] }),
	shownSwitch(false, { resource: ['task'], operation: ['get'] }),
];

/** The options of the action node where results leave it. */
export const outputOptions = [outputBinaryField({ '/downloadResults': [true] }), splitResults];

/** The options of the trigger. */
export const triggerOutputOptions = [
	downloadResults,
	outputBinaryField({ downloadResults: [true] }),
	splitResults,
];
