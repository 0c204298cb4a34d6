import { crc32, deflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const EIGHT_BITS = 8;
const RGB = 2;
const FILTER_SUB = 1;

function chunk(type: string, data: Buffer): Buffer {
	const head = Buffer.alloc(8);
	head.writeUInt32BE(data.length);
	head.write(type, 4, 'latin1');
	const check = Buffer.alloc(4);
	check.writeUInt32BE(crc32(data, crc32(head.subarray(4))));
	return Buffer.concat([head, data, check]);
}

/**
 * A PNG file of opaque RGBA pixels. The canvas has an encoder too, which compresses gradients a little
 * better and takes five times as long; a batch of downloads should not wait for that.
 */
export function encodePng(pixels: Uint8ClampedArray, width: number, height: number): Buffer {
	const header = Buffer.alloc(13);
	header.writeUInt32BE(width, 0);
	header.writeUInt32BE(height, 4);
	header.set([EIGHT_BITS, RGB], 8);

	// Each row starts with its filter; "sub" leaves the difference to the pixel on the left.
	const rows = Buffer.alloc(height * (1 + width * 3));
	let at = 0;
	for (let y = 0; y < height; y++) {
		rows[at++] = FILTER_SUB;
		const start = y * width * 4;
		for (let i = start; i < start + width * 4; i += 4) {
			for (let channel = i; channel < i + 3; channel++) {
				const left = i > start ? (pixels[channel - 4] ?? 0) : 0;
				rows[at++] = (pixels[channel] ?? 0) - left;
			}
		}
	}
	return Buffer.concat([
		SIGNATURE,
		chunk('IHDR', header),
		chunk('IDAT', deflateSync(rows, { level: 1 })),
		chunk('IEND', Buffer.alloc(0)),
	]);
}
