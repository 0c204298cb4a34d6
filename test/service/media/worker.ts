import { createCanvas, type Image, loadImage } from '@napi-rs/canvas';
import { parentPort } from 'node:worker_threads';

import type { DrawJob, WorkerAnswer, WorkerRequest } from './job';
import { Scene } from './scene';
import { drawVideo } from './video';

/** The reference image, where there is one that can be read. */
async function load(file: Uint8Array | undefined): Promise<Image | undefined> {
	if (!file) return undefined;
	return await loadImage(file).catch(() => undefined);
}

/** A PNG picture of the prompt. */
function drawPicture(job: DrawJob, background?: Image): Uint8Array {
	const canvas = createCanvas(960, 720);
	new Scene(canvas, job, background).draw(1);
	return canvas.toBuffer('image/png');
}

async function draw(job: DrawJob): Promise<Uint8Array> {
	const background = await load(job.background);
	return job.kind === 'image' ? drawPicture(job, background) : await drawVideo(job, background);
}

parentPort?.on('message', ({ id, job }: WorkerRequest) => {
	draw(job).then(
		(file) => parentPort?.postMessage({ id, file } satisfies WorkerAnswer),
		(error: Error) => parentPort?.postMessage({ id, error: error.message } satisfies WorkerAnswer),
	);
});
