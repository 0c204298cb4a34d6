import type { IDisplayOptions, INodeProperties } from 'n8n-workflow';

import { IMAGE_PRICE_USD, VIDEO_PRICE_USD_PER_SECOND } from '../service/prices';

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
		`Generates one image from a text prompt, which takes up to some minutes. Write one detailed prompt: the subject, its surroundings, style, light and composition. Call it once for each image that the user asked for, since each one costs money (${IMAGE_PRICE_USD} USD with the default model). ${ANSWER}`,
		{ resource: ['image'] },
	),
	toolDescription(
		`Generates one short video, which takes some minutes. Write one prompt: what is to be seen, how it moves, and how the camera moves. If it takes a picture, hand it the address of the picture to set in motion. Call it once for each video that the user asked for, since each second costs money (${VIDEO_PRICE_USD_PER_SECOND} USD with the default model). ${ANSWER}`,
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
