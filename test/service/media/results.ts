import { createCanvas, type Image, loadImage } from '@napi-rs/canvas';

import { kindOf, videoSeconds } from '../prices';
import type { SimulatedTask, TaskStore } from '../tasks';
import { drawScene } from './scene';
import { drawVideo } from './video';

const DATA_URI = /^data:image\/(?:png|jpe?g);base64,/i;
const OWN_PICTURE = /^https?:\/\/[^/]+\/media\/([^/]+)\/(\d+)\.png$/;

/** Draws a result of a task: a PNG picture of the prompt, or a video in which it comes in. */
export async function drawResult(
	task: SimulatedTask,
	number: number,
	store: TaskStore,
): Promise<Buffer> {
	const { model, input } = task.record;
	const { length: count } = task.results;
	const title = typeof input.prompt === 'string' ? input.prompt : model;
	const words = {
		title,
		caption: count > 1 ? `${model}  ·  ${number} of ${count}` : model,
		seed: `${title} ${number}`,
	};
	const background = await referenceImage(input, store);
	if (kindOf(model) === 'video') return await drawVideo(words, videoSeconds(input), background);
	const canvas = createCanvas(960, 720);
	drawScene(canvas, words, background, 1);
	return await canvas.encode('png');
}

/**
 * The first picture among the values of an input: the specification does not show which field carries it (section 4.1).
 * Only a data URI and a result of this service are read; the service calls nobody else's address.
 */
async function referenceImage(
	input: Readonly<Record<string, unknown>>,
	store: TaskStore,
): Promise<Image | undefined> {
	for (const value of Object.values(input).flat()) {
		if (typeof value !== 'string') continue;
		if (DATA_URI.test(value)) return await read(Buffer.from(value.replace(DATA_URI, ''), 'base64'));
		const [, taskId = '', number] = OWN_PICTURE.exec(value) ?? [];
		const task = store.tasks.get(taskId);
		if (task) return await read(await drawResult(task, Number(number), store));
	}
	return undefined;
}

const read = async (file: Buffer) => await loadImage(file).catch(() => undefined);
