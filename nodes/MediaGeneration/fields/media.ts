import type { INodeProperties } from 'n8n-workflow';

import {
	IMAGE_MODEL,
	IMAGE_PRICE_USD,
	VIDEO_MODEL,
	VIDEO_PRICE_USD_PER_SECOND,
} from '../service/estimateCost';

const showImage = { resource: ['image'], operation: ['generate'] };

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
		displayOptions: { show: showImage },
		default: IMAGE_MODEL,
		placeholder: 'e.g. provider/model-name',
		hint: `The default model costs ${IMAGE_PRICE_USD} USD per image. Failed tasks are usually free.`,
		description: 'Identifier of the model. Other models of the service work too.',
	},
	{
		displayName: 'Prompt',
		name: 'prompt',
		type: 'string',
		required: true,
		typeOptions: { rows: 4 },
		displayOptions: { show: showImage },
		default: '',
		placeholder: 'e.g. A lighthouse on a cliff at dusk, oil painting',
		hint: "One item makes one image. For a list, put 'Split Out' before. To see the image here, add 'Download Results'.",
		description: 'What the image should show',
	},
];

const showVideo = { resource: ['video'], operation: ['generate'] };

export const videoFields: INodeProperties[] = [
	{
		displayName: 'Operation',
		name: 'operation',
		type: 'options',
		noDataExpression: true,
		displayOptions: { show: { resource: ['video'] } },
		default: 'generate',
		options: [
			{
				name: 'Generate',
				value: 'generate',
				action: 'Generate video',
				description: 'Create a video from a text prompt and a reference image',
			},
		],
	},
	{
		displayName: 'Model',
		name: 'model',
		type: 'string',
		required: true,
		displayOptions: { show: showVideo },
		default: VIDEO_MODEL,
		placeholder: 'e.g. provider/model-name',
		hint: `The default model costs ${VIDEO_PRICE_USD_PER_SECOND} USD per second of video. Failed tasks are usually free.`,
		description: 'Identifier of the model. Other models of the service work too.',
	},
	{
		displayName: 'Prompt',
		name: 'prompt',
		type: 'string',
		required: true,
		typeOptions: { rows: 4 },
		displayOptions: { show: showVideo },
		default: '',
		placeholder: 'e.g. Waves roll in while the beam of the lighthouse turns',
		hint: "One item makes one video. For a list, put 'Split Out' before. To see the video here, add 'Download Results'.",
		description: 'What should happen in the video',
	},
	{
		displayName: 'Reference Image',
		name: 'imageSource',
		type: 'options',
		displayOptions: { show: showVideo },
		default: 'url',
		description: 'The picture that the video starts from',
		options: [
			{
				name: 'From URL',
				value: 'url',
				description: 'The service downloads the picture, e.g. the result URL of an image task',
			},
			{
				name: 'From Binary Data',
				value: 'binary',
				description: 'A file of the incoming item, which is sent along with the task',
			},
			{
				name: 'None',
				value: 'none',
				description: 'The video is made from the prompt alone',
			},
		],
	},
	{
		displayName: 'Image URL',
		name: 'imageUrl',
		type: 'string',
		required: true,
		displayOptions: { show: { ...showVideo, imageSource: ['url'] } },
		default: '',
		placeholder: 'e.g. https://example.com/image.png',
		description: 'URL of the picture. The service must be able to reach it.',
	},
	{
		displayName: 'Input Data Field Name',
		name: 'binaryPropertyName',
		type: 'string',
		required: true,
		displayOptions: { show: { ...showVideo, imageSource: ['binary'] } },
		default: 'data',
		placeholder: 'e.g. data',
		hint: 'The name of the input field containing the picture',
		description:
			'Name of the binary field with the picture. Several names: put commas between them. For a file of an earlier node, use an expression.',
	},
	{
		displayName: 'Duration (Seconds)',
		name: 'durationSeconds',
		type: 'number',
		typeOptions: { minValue: 0 },
		displayOptions: { show: showVideo },
		default: 0,
		hint: '0 = the model decides the length and the price',
		description: 'Length of the video',
	},
];
