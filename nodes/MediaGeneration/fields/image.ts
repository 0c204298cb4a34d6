import type { INodeProperties } from 'n8n-workflow';

import { IMAGE_MODEL, IMAGE_PRICE_USD } from '../service/prices';

const show = { resource: ['image'], operation: ['generate'] };

export const imageFields: INodeProperties[] = [
	{
		displayName: 'Operation',
		name: 'operation',
		type: 'options',
		noDataExpression: true,
		displayOptions: { show: { resource: ['image'] } },
		default: 'generate',
		options: [
			{
				name: 'Generate',
				value: 'generate',
				action: 'Generate image',
				description: 'Create an image from a text prompt',
			},
		],
	},
	{
		displayName: 'Model',
		name: 'model',
		type: 'string',
		required: true,
		displayOptions: { show },
		default: IMAGE_MODEL,
		placeholder: 'e.g. provider/model-name',
		hint: `The default model costs ${IMAGE_PRICE_USD} USD per image. Failed tasks are free.`,
		description: 'Identifier of the model. Other models of the service work too.',
	},
	{
		displayName: 'Prompt',
		name: 'prompt',
		type: 'string',
		required: true,
		typeOptions: { rows: 4 },
		displayOptions: { show },
		default: '',
		placeholder: 'e.g. A lighthouse on a cliff at dusk, oil painting',
		description: 'What the image should show',
	},
];
