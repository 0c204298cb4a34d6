import { createCanvas, type Image } from '@napi-rs/canvas';
import { setImmediate as otherWork } from 'node:timers/promises';

import { drawScene, type Words } from './scene';

const WIDTH = 640;
const HEIGHT = 360;
const FRAMES_PER_SECOND = 8;
/** A longer video is billed as asked for, but drawn only this long. */
const LONGEST_SECONDS = 10;

/** An H.264 video in an MP4 file, in which the prompt comes in. */
export async function drawVideo(
	words: Words,
	seconds: number,
	background?: Image,
): Promise<Buffer> {
	const canvas = createCanvas(WIDTH, HEIGHT);
	const context = canvas.getContext('2d');
	const frames = Math.max(2, Math.round(Math.min(seconds, LONGEST_SECONDS) * FRAMES_PER_SECOND));

	const { createH264MP4Encoder } = await import('h264-mp4-encoder');
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
			drawScene(canvas, words, background, frame / (frames - 1));
			// The encoder takes no array that was made outside of jest's sandbox, but for one of bytes.
			encoder.addFrameRgba(new Uint8Array(context.getImageData(0, 0, WIDTH, HEIGHT).data.buffer));
			// A frame takes ten milliseconds; requests are answered between two.
			await otherWork();
		}
		encoder.finalize();
		return Buffer.from(encoder.FS.readFile(encoder.outputFilename));
	} finally {
		encoder.delete();
	}
}
