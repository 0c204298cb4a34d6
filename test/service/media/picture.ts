import { createCanvas, type Image } from '@napi-rs/canvas';
import type { DrawJob } from './job';
import { Scene } from './scene';

const WIDTH = 960;
const HEIGHT = 720;

/** A PNG picture of the prompt. */
export function drawPicture(job: DrawJob, background?: Image): Uint8Array {
	const canvas = createCanvas(WIDTH, HEIGHT);
	new Scene(canvas, job, background).draw(1);
	return canvas.toBuffer('image/png');
}
