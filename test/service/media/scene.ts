import { type Canvas, GlobalFonts, type Image, type SKRSContext2D } from '@napi-rs/canvas';
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

/** What stands in a picture. */
export interface Words {
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

/**
 * Draws a picture, or one moment of a video: the text in large type, which comes in, on colours or on a picture.
 *
 * @param progress from 0 to 1; a picture is a moment in which all has arrived
 */
export function drawScene(
	canvas: Canvas,
	words: Words,
	background: Image | undefined,
	progress: number,
): void {
	const { width, height } = canvas;
	const context = canvas.getContext('2d');
	const margin = Math.round(Math.min(width, height) * 0.09);

	if (background) {
		const cover = Math.max(width / background.width, height / background.height);
		const [w, h] = [background.width * cover, background.height * cover];
		context.drawImage(background, (width - w) / 2, (height - h) / 2, w, h);
		// White type is to be readable on any picture.
		context.fillStyle = 'rgb(0 0 0 / 60%)';
	} else {
		const hue = createHash('sha256').update(words.seed).digest().readUInt16BE() % 360;
		const colours = context.createLinearGradient(0, 0, width * (1 - progress / 2), height);
		colours.addColorStop(0, `hsl(${hue} 70% 42%)`);
		colours.addColorStop(1, `hsl(${(hue + 60) % 360} 75% 26%)`);
		context.fillStyle = colours;
	}
	context.fillRect(0, 0, width, height);

	const write = (text: string, size: number, y: number) => {
		context.font = `${size}px ${FAMILIES}`;
		context.fillText(text, margin, y, width - 2 * margin);
	};
	context.fillStyle = 'rgb(255 255 255 / 75%)';
	write(drawable(words.caption), Math.max(12, margin * 0.28), height - margin);

	let lines: string[];
	let size = margin * 1.5;
	do {
		size *= 0.9;
		context.font = `${size}px ${FAMILIES}`;
		lines = wrap(context, drawable(words.title) || 'Untitled', width - 2 * margin);
	} while (lines.length * size * 1.2 > height - 4 * margin);
	context.fillStyle = `rgb(255 255 255 / ${Math.round(progress * 100)}%)`;
	lines.forEach((line, index) => {
		write(line, size, height - 2 * margin - (lines.length - 1 - index) * size * 1.2);
	});
	if (progress < 1) context.fillRect(0, height - 6, width * progress, 6);
}
