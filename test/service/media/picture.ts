import { createCanvas, GlobalFonts, type SKRSContext2D } from '@napi-rs/canvas';
import { createHash } from 'node:crypto';

/** The scripts of the font, each a file of its own; the first that has a character draws it. */
const SCRIPTS = ['latin', 'latin-ext', 'cyrillic', 'cyrillic-ext', 'greek', 'vietnamese'];

// The font that comes with the package: the machine may have none.
for (const script of SCRIPTS) {
	if (GlobalFonts.has(`Inter ${script}`)) continue;
	const file = require.resolve(`@fontsource/inter/files/inter-${script}-700-normal.woff2`);
	GlobalFonts.registerFromPath(file, `Inter ${script}`);
}

const FAMILIES = [...SCRIPTS.map((script) => `"Inter ${script}"`), 'sans-serif'].join(', ');

const WIDTH = 960;
const HEIGHT = 720;
const MARGIN = 65;

/** What stands in a picture. */
interface Words {
	/** The text in large type. */
	readonly title: string;
	/** The line below it. */
	readonly caption: string;
	/** Decides the colours: the same seed gives the same picture. */
	readonly seed: string;
}

/** Emoji are left out: there is no glyph for them. */
const drawable = (text: string) =>
	text.replace(/\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{RI}|\u200d|\ufe0f/gu, '').trim();

/** Breaks a text into lines; a language without spaces is broken between its words, too. */
function wrap(context: SKRSContext2D, text: string, width: number): string[] {
	const lines = [''];
	for (const { segment } of new Intl.Segmenter(undefined, { granularity: 'word' }).segment(text)) {
		const longer = `${lines.at(-1)}${segment}`;
		if (context.measureText(longer).width <= width) lines[lines.length - 1] = longer;
		else lines.push(segment.trimStart());
	}
	return lines;
}

/** Draws a PNG picture: the text in large type, on colours. */
export async function drawPicture({ title, caption, seed }: Words): Promise<Buffer> {
	const canvas = createCanvas(WIDTH, HEIGHT);
	const context = canvas.getContext('2d');

	const hue = createHash('sha256').update(seed).digest().readUInt16BE() % 360;
	const colours = context.createLinearGradient(0, 0, WIDTH / 2, HEIGHT);
	colours.addColorStop(0, `hsl(${hue} 70% 42%)`);
	colours.addColorStop(1, `hsl(${(hue + 60) % 360} 75% 26%)`);
	context.fillStyle = colours;
	context.fillRect(0, 0, WIDTH, HEIGHT);

	const write = (text: string, size: number, y: number) => {
		context.font = `${size}px ${FAMILIES}`;
		context.fillText(text, MARGIN, y, WIDTH - 2 * MARGIN);
	};
	context.fillStyle = 'rgb(255 255 255 / 75%)';
	write(drawable(caption), 18, HEIGHT - MARGIN);

	let lines: string[];
	let size = MARGIN * 1.5;
	do {
		size *= 0.9;
		context.font = `${size}px ${FAMILIES}`;
		lines = wrap(context, drawable(title) || 'Untitled', WIDTH - 2 * MARGIN);
	} while (lines.length * size * 1.2 > HEIGHT - 4 * MARGIN);
	context.fillStyle = 'white';
	lines.forEach((line, index) => {
		write(line, size, HEIGHT - 2 * MARGIN - (lines.length - 1 - index) * size * 1.2);
	});
	return await canvas.encode('png');
}
