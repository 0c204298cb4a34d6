import type { INodeProperties } from 'n8n-workflow';

import {
	IMAGE_MODEL,
	IMAGE_PRICE_USD,
	VIDEO_MODEL,
	VIDEO_PRICE_USD_PER_SECOND,
} from '../service/prices';

export const taskFields: INodeProperties[] = [
	{
		displayName: 'Operation',
		name: 'operation',
		type: 'options',
		noDataExpression: true,
		displayOptions: { show: { resource: ['task'] } },
		default: 'create',
		options: [
			{
				name: 'Create',
				value: 'create',
				action: 'Create task',
				description: 'Create a task for any model with any input',
			},
			{
				name: 'Get',
				value: 'get',
				action: 'Get task',
				description: 'Retrieve the current record of a task',
			},
			{
				name: 'Redeliver',
				value: 'redeliver',
				action: 'Redeliver callback of task',
				description:
					'Send the callback of a finished task to its trigger once more, in case it was lost; a trigger that had it already starts nothing',
			},
			{
				name: 'Wait',
				value: 'wait',
				action: 'Wait for task',
				description:
					'Wait until a task that was created earlier is finished, and retrieve its results',
			},
		],
	},
	{
		displayName: 'Model',
		name: 'model',
		type: 'string',
		required: true,
		displayOptions: { show: { resource: ['task'], operation: ['create'] } },
		default: '',
		placeholder: 'e.g. provider/model-name',
		description: `Identifier of the model, as the service lists it. Known prices: ${IMAGE_MODEL} ${IMAGE_PRICE_USD} USD per image, ${VIDEO_MODEL} ${VIDEO_PRICE_USD_PER_SECOND} USD per second.`,
	},
	{
		displayName: 'Input',
		name: 'input',
		type: 'json',
		typeOptions: { rows: 6 },
		displayOptions: { show: { resource: ['task'], operation: ['create'] } },
		default: '{\n  "prompt": ""\n}',
		description:
			"Input of the model as a JSON object, which is sent unchanged. It may stay as it is where the options have 'Additional Fields'.",
	},
	{
		displayName: 'Task ID',
		name: 'taskId',
		type: 'string',
		required: true,
		displayOptions: { show: { resource: ['task'], operation: ['get', 'redeliver', 'wait'] } },
		default: '',
		placeholder: 'e.g. task-12345',
		hint: "The 'taskId' that the creating node put out",
		description:
			'ID that the service returned when the task was created, or several: a list, or a text with commas or line breaks between them',
	},
];
