import { createHash } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';

const WIDTH = 960;
const HEIGHT = 720;

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');

/** A part of a PNG file: its length, its name, its content and their checksum. */
function chunk(name: string, content: Buffer): Buffer {
	const named = Buffer.concat([Buffer.from(name), content]);
	const numbers = [content.length, crc32(named)].map((number) => {
		const bytes = Buffer.alloc(4);
		bytes.writeUInt32BE(number);
		return bytes;
	});
	return Buffer.concat([numbers[0]!, named, numbers[1]!]);
}

/** Makes a PNG picture: one colour that goes over into another. @param seed decides the colours */
export function drawPicture(seed: string): Buffer {
	const digest = createHash('sha256').update(seed).digest();
	const [from, to] = [digest.subarray(0, 3), digest.subarray(3, 6)];
	const rows = Array.from({ length: HEIGHT }, (_, y) => {
		const colour = [0, 1, 2].map((part) => from[part]! + ((to[part]! - from[part]!) * y) / HEIGHT);
		// The first byte says that the row is stored as it is.
		return Buffer.concat([Buffer.alloc(1), Buffer.alloc(3 * WIDTH, Buffer.from(colour))]);
	});
	const header = Buffer.alloc(13);
	header.writeUInt32BE(WIDTH, 0);
	header.writeUInt32BE(HEIGHT, 4);
	// Eight bits for each of red, green and blue.
	header.set([8, 2], 8);
	return Buffer.concat([
		SIGNATURE,
		chunk('IHDR', header),
		chunk('IDAT', deflateSync(Buffer.concat(rows), { level: 1 })),
		chunk('IEND', Buffer.alloc(0)),
	]);
}
