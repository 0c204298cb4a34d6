import type { IDisplayOptions, INodeProperties } from 'n8n-workflow';

import { fileField, numberField, operationField } from './hints';
import { modelField, modelFields } from './models';

const MEDIA = {
	image: {
		one: 'an image',
		perLine: 'One Image per Line',
		operation: 'Create an image from a text prompt',
		placeholder: 'e.g. A lighthouse on a cliff at dusk, oil painting',
		description: 'What the image should show',
	},
	video: {
		one: 'a video',
		perLine: 'One Video per Line',
		operation: 'Create a video from a text prompt and a reference image',
		placeholder: 'e.g. Waves roll in while the beam of the lighthouse turns',
		description: 'What should happen in the video',
	},
};

/** @param further the fields before *Model Fields* */
function mediaFields(
	resource: keyof typeof MEDIA,
	further: INodeProperties[] = [],
): INodeProperties[] {
	const { one, perLine, operation, placeholder, description } = MEDIA[resource];
	const displayOptions = { show: { resource: [resource], operation: ['generate'] } };
	return [
		operationField(resource, 'generate', [
			{
				name: 'Generate',
				value: 'generate',
				action: `Generate ${resource}`,
				description: operation,
			},
		]),
		{
			...modelField,
			displayOptions,
			hint: `Empty = the credential's first model for ${resource}s`,
		},
		{
			displayName: 'Prompt',
			name: 'prompt',
			type: 'string',
			typeOptions: { rows: 4 },
			displayOptions,
			default: '',
			hint: `One item makes one ${resource}. For several, switch on '${perLine}', or put an item for each before this node.`,
			placeholder,
			description,
		},
		{
			displayName: perLine,
			name: 'promptPerLine',
			type: 'boolean',
			// An agent calls the tool once for each result.
			displayOptions: { ...displayOptions, hide: { '@tool': [true] } },
			default: false,
			description: `Whether each line of the prompt makes ${one} of its own. Empty lines make none.`,
		},
		...further,
		{ ...modelFields, displayOptions },
	];
}

export const imageFields: INodeProperties[] = mediaFields('image');

const showVideo = { resource: ['video'], operation: ['generate'] };

export const videoFields: INodeProperties[] = mediaFields('video', [
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
]);

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
			name: 'Repeat Callback',
			value: 'redeliver',
			action: 'Repeat callback of task',
			description: 'Send the result of a finished task to a trigger that has missed it',
		},
		{
			name: 'Wait for Task',
			value: 'wait',
			action: 'Wait for task',
			description: 'Wait for tasks that exist, e.g. of a run that was stopped',
		},
	]),
	{
		...modelField,
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
		hint: 'E.g. {{ $json.taskId }}, or pasted IDs. For all tasks of a run, also one that sleeps or was stopped: execution 123.',
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

/** The text that tells a language model when to use the tool, and what to pass. n8n shows the field in tools only. */
const toolDescription = (text: string, show: IDisplayOptions['show'] = {}): INodeProperties => ({
	displayName: 'Tool Description',
	name: 'toolDescription',
	type: 'string',
	typeOptions: { rows: 5 },
	required: true,
	default: text,
	displayOptions: { show: { '@tool': [true], ...show } },
	description:
		'Tells the language model what this tool does, when to use it and what to write. Change it to fit your agent.',
});

const ANSWER =
	"Returns taskId, state and resultUrls. With state PENDING the task goes on: do not order it again. A failed task is usually free, and 'error' says why it failed.";

/** The fields that only a tool of an AI agent has. */
export const toolFields: INodeProperties[] = [
	toolDescription(
		`Generates one image from a text prompt, which takes up to some minutes. Write one detailed prompt. Call it once for each image that the user asked for, since each one costs money. ${ANSWER}`,
		{ resource: ['image'] },
	),
	toolDescription(
		`Generates one short video, which takes some minutes. Write one prompt: what is to be seen, and how it moves. If it takes a picture, hand it the address of the picture. Call it once for each video that the user asked for, since each second costs money. ${ANSWER}`,
		{ resource: ['video'] },
	),
	toolDescription(
		`Orders one task of a generative model for images or videos. Call it once for each result that the user asked for, since each one costs money. ${ANSWER}`,
		{ resource: ['task'], operation: ['create'] },
	),
	toolDescription(
		`Reads what has become of an image or a video that was ordered before. Hand it the taskId that the ordering tool returned. It costs nothing. ${ANSWER}`,
		{ resource: ['task'], operation: ['get', 'wait'] },
	),
	toolDescription(
		'Sends the result of a finished task to its workflow again, if the workflow has missed it. Hand it the taskId. It costs nothing.',
		{ resource: ['task'], operation: ['redeliver'] },
	),
];

/** The same for the credits node. */
export const creditsToolFields: INodeProperties[] = [
	toolDescription(
		"Reads how many credits are left in the account for images and videos. It needs nothing and costs nothing. Returns the number in 'balance'.",
	),
];
