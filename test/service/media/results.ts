import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { kindOf } from '../prices';
import type { SimulatedTask } from '../tasks';
import { drawPicture } from './picture';

/** The one video of the service: what it shows is not looked at. */
const VIDEO = join(__dirname, 'clip.mp4');

/** A result of a task: a picture whose colours the prompt decides, or a video. */
export async function makeResult(task: SimulatedTask, number: number): Promise<Buffer> {
	const { model, input } = task.record;
	if (kindOf(model) === 'video') return await readFile(VIDEO);
	const title = typeof input.prompt === 'string' ? input.prompt : model;
	return drawPicture(`${title} ${number}`);
}
