import type { INodeProperties } from 'n8n-workflow';

import { IMAGE_MODEL } from '../service/prices';

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
		description:
			'Identifier of the model. The default costs 0.08 USD per image; other models of the service work too.',
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
