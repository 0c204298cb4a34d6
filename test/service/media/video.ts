import { createCanvas, type Image } from '@napi-rs/canvas';
import { createH264MP4Encoder } from 'h264-mp4-encoder';

import type { DrawJob } from './job';
import { Scene } from './scene';

const WIDTH = 640;
const HEIGHT = 360;
const FRAMES_PER_SECOND = 8;
/** A longer video is billed as asked for, but drawn only this long. */
const LONGEST_SECONDS = 10;

/** An H.264 video in an MP4 file, in which the prompt comes in over a moving background. */
export async function drawVideo(job: DrawJob, background?: Image): Promise<Uint8Array> {
	const canvas = createCanvas(WIDTH, HEIGHT);
	const scene = new Scene(canvas, job, background);
	const context = canvas.getContext('2d');
	const seconds = Math.min(job.seconds, LONGEST_SECONDS);
	const frames = Math.max(2, Math.round(seconds * FRAMES_PER_SECOND));

	const encoder = await createH264MP4Encoder();
	try {
		encoder.width = WIDTH;
		encoder.height = HEIGHT;
		encoder.frameRate = FRAMES_PER_SECOND;
		encoder.quantizationParameter = 24;
		encoder.speed = 7;
		encoder.groupOfPictures = FRAMES_PER_SECOND;
		encoder.initialize();
		for (let frame = 0; frame < frames; frame++) {
			const progress = frame / (frames - 1);
			scene.draw(progress);
			scene.drawProgress(progress);
			encoder.addFrameRgba(context.getImageData(0, 0, WIDTH, HEIGHT).data);
		}
		encoder.finalize();
		return encoder.FS.readFile(encoder.outputFilename);
	} finally {
		encoder.delete();
	}
}
