import type { INodeProperties } from 'n8n-workflow';

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
