import type { INodeProperties } from 'n8n-workflow';

import {
	IMAGE_MODEL,
	IMAGE_PRICE_USD,
	VIDEO_MODEL,
	VIDEO_PRICE_USD_PER_SECOND,
} from '../service/estimateCost';
import { operationField } from './makers';

export const taskFields: INodeProperties[] = [
	operationField('task', 'create', [
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
			name: 'Send Result Again',
			value: 'redeliver',
			action: 'Send result of task again',
			description:
				'Send the result of a finished task to its trigger again, if it was lost. A trigger that has started for the task starts nothing.',
		},
		{
			name: 'Wait',
			value: 'wait',
			action: 'Wait for task',
			description:
				'Wait until a task that was created earlier is finished, then output its results',
		},
	]),
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
			"Input of the model as a JSON object. Options such as 'Additional Fields' can add to it. If the options have all fields, leave this input as it is.",
	},
	{
		displayName: 'Task ID',
		name: 'taskId',
		type: 'string',
		required: true,
		displayOptions: { show: { resource: ['task'], operation: ['get', 'redeliver', 'wait'] } },
		default: '',
		placeholder: 'e.g. task-12345',
		hint: "The 'taskId' in the output of the node that created the task",
		description:
			'ID that the service returned when the task was created. For several tasks: a list, or a text with commas or line breaks between the IDs.',
	},
];
