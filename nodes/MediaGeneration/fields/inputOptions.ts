import type { INodeProperties } from 'n8n-workflow';

import { fileField } from './makers';

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

/** The options that add to the input of the model. */
export const inputOptions: INodeProperties[] = [
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
		displayName: 'Additional Input (JSON)',
		name: 'additionalInput',
		type: 'json',
		default: '{}',
		description:
			'The same as Additional Fields, as a JSON object, e.g. { "seed": 7 }. Wins over all other fields.',
	},
];
