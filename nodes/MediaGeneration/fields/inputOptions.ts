import type { INodeProperties } from 'n8n-workflow';

import { fileField } from './makers';

const inputField: INodeProperties = {
	displayName: 'Name in the Model',
	name: 'inputField',
	type: 'string',
	default: '',
	placeholder: 'e.g. first_frame',
	description:
		'The name that the documentation of the model has for this file. Several files with one name are sent as a list. For a list of one file, write [] after the name, e.g. images[].',
};

/** The options that add to the input of the model. */
export const inputOptions: INodeProperties[] = [
	{
		displayName: 'Additional Fields',
		name: 'additionalFields',
		type: 'assignmentCollection',
		default: {},
		description:
			'For input fields of the model that are not above, such as aspect_ratio or seed, without writing JSON. If a field above has the same name, only this value is sent. For line breaks in a value, switch it to Expression.',
		builderHint: {
			propertyHint:
				"The fields differ from model to model, and n8n does not know them: take their names from the model's documentation or from the user, and invent none.",
		},
	},
	{
		displayName: 'Additional Input (JSON)',
		name: 'additionalInput',
		type: 'json',
		default: '{}',
		description:
			'The same as Additional Fields, as a JSON object, e.g. { "seed": 7 }. If another field has the same name, only this value is sent.',
	},
	{
		displayName: 'Files',
		name: 'files',
		type: 'fixedCollection',
		typeOptions: { multipleValues: true, sortable: true },
		placeholder: 'Add File',
		default: {},
		description:
			'Files to send to the model, such as a first frame, a reference picture or a sound',
		options: [{ displayName: 'File', name: 'file', values: [inputField, fileField('file')] }],
		builderHint: {
			propertyHint:
				"Takes names of binary fields of the incoming item, and no addresses: an address goes into 'additionalFields' as a string. Several rows with one inputField become a list, in order, e.g. first and last frame.",
		},
	},
	{
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
					"As links to this n8n, which the service must reach. Anyone who has a link can open it, until the task's timeout.",
			},
		],
	},
];
