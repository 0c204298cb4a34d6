import type { INodeProperties } from 'n8n-workflow';

import { IMAGE_MODEL, VIDEO_MODEL } from '../service/prices';
import { fileField, numberField, operationField } from './makers';

/** The model by its place in the list of the credential, or by its identifier. */
const modelField = (model: string): INodeProperties => ({
	displayName: 'Model',
	name: 'model',
	type: 'resourceLocator',
	default: { mode: model === '' ? 'id' : 'list', value: model },
	modes: [
		{
			displayName: 'From List',
			name: 'list',
			type: 'list',
			typeOptions: { searchListMethod: 'searchModels', searchable: true },
		},
		{
			displayName: 'By ID',
			name: 'id',
			type: 'string',
			placeholder: 'e.g. provider/model-name',
		},
	],
	description:
		"Model that makes the result. The list has the models of the credential, under 'Models'.",
});

/** The fields that images and videos share. */
function mediaFields(
	resource: 'image' | 'video',
	media: {
		description: string;
		model: string;
		perLine: string;
		prompt: Pick<INodeProperties, 'placeholder' | 'description'>;
	},
): INodeProperties[] {
	const { description, model, perLine, prompt } = media;
	const displayOptions = { show: { resource: [resource], operation: ['generate'] } };
	return [
		operationField(resource, 'generate', [
			{ name: 'Generate', value: 'generate', action: `Generate ${resource}`, description },
		]),
		{ ...modelField(model), displayOptions },
		{
			displayName: 'Prompt',
			name: 'prompt',
			type: 'string',
			typeOptions: { rows: 4 },
			displayOptions,
			default: '',
			hint: `One item makes one ${resource}. For several, switch on '${perLine}', or put an item for each before this node.`,
			...prompt,
		},
		{
			displayName: perLine,
			name: 'promptPerLine',
			type: 'boolean',
			// An agent calls the tool once for each result.
			displayOptions: { ...displayOptions, hide: { '@tool': [true] } },
			default: false,
			description: `Whether each line of the prompt makes ${resource === 'image' ? 'an image' : 'a video'} of its own. Empty lines make none.`,
		},
	];
}

/** The operation and the fields of *Image*. */
export const imageFields = mediaFields('image', {
	description: 'Create an image from a text prompt',
	model: IMAGE_MODEL,
	perLine: 'One Image per Line',
	prompt: {
		placeholder: 'e.g. A lighthouse on a cliff at dusk, oil painting',
		description: 'What the image should show',
	},
});

const showVideo = { resource: ['video'], operation: ['generate'] };

/** The operation and the fields of *Video*. */
export const videoFields: INodeProperties[] = [
	...mediaFields('video', {
		description: 'Create a video from a text prompt and a reference image',
		model: VIDEO_MODEL,
		perLine: 'One Video per Line',
		prompt: {
			placeholder: 'e.g. Waves roll in while the beam of the lighthouse turns',
			description: 'What should happen in the video',
		},
	}),
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
		displayOptions: { show: { ...showVideo, imageSource: ['url'] } },
		default: '',
		placeholder: 'e.g. https://example.com/image.png',
		hint: 'For the picture of an earlier node, drag resultUrls[0] from the input here',
		description: 'The service must be able to reach it',
	},
	{
		...fileField('picture'),
		displayOptions: { show: { ...showVideo, imageSource: ['binary'] } },
	},
	{
		...numberField('Duration (Seconds)', 'durationSeconds'),
		displayOptions: { show: showVideo },
		hint: '0 = the model decides the length and the price',
		description: 'Length of the video',
	},
];

/** The operations and the fields of *Task*. */
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
			description: 'Send the result of a finished task to a trigger that has missed it',
		},
		{
			name: 'Wait',
			value: 'wait',
			action: 'Wait for task',
			description: 'Wait for tasks that exist, e.g. of a run that was stopped',
		},
	]),
	{
		...modelField(''),
		displayOptions: { show: { resource: ['task'], operation: ['create'] } },
	},
	{
		displayName: 'Input',
		name: 'input',
		type: 'json',
		typeOptions: { rows: 6 },
		displayOptions: { show: { resource: ['task'], operation: ['create'] } },
		default: '{\n  "prompt": ""\n}',
		description: "Input of the model as a JSON object. 'Additional Fields' can add to it.",
	},
	{
		displayName: 'Task ID',
		name: 'taskId',
		type: 'string',
		displayOptions: { show: { resource: ['task'], operation: ['get', 'redeliver', 'wait'] } },
		default: '',
		placeholder: 'e.g. task-12345, task-12346',
		hint: "One 'taskId' or several. For all tasks of a run that was stopped: execution and its number, e.g. execution 123.",
		description:
			'IDs with commas or line breaks between them, a list, or the copied JSON of items that have a taskId',
	},
	{
		// No panel shows it: the execution that makes up for lost callbacks hands its results to a trigger.
		displayName: 'Deliver To',
		name: 'deliverTo',
		type: 'hidden',
		displayOptions: { show: { resource: ['task'], operation: ['wait'] } },
		default: '',
	},
];
