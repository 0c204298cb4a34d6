import { type SKRSContext2D, GlobalFonts } from '@napi-rs/canvas';
/** The scripts of the font, each a file of its own; the first that has a character draws it. */
const SCRIPTS = ['latin', 'latin-ext', 'cyrillic', 'cyrillic-ext', 'greek', 'vietnamese'];
const WEIGHTS = [400, 700] as const;

const familyOf = (script: string, weight: number) => `Inter ${weight} ${script}`;

/** Registers the font that comes with the package: the machine may have none. */
function registerFonts(): void {
	for (const script of SCRIPTS) {
		for (const weight of WEIGHTS) {
			const file = `@fontsource/inter/files/inter-${script}-${weight}-normal.woff2`;
			GlobalFonts.registerFromPath(require.resolve(file), familyOf(script, weight));
		}
	}
}
registerFonts();

/** A CSS font of this size; scripts that the package's font lacks fall to the machine's own. */
export function font(size: number, weight: (typeof WEIGHTS)[number]): string {
	const families = SCRIPTS.map((script) => `"${familyOf(script, weight)}"`).join(', ');
	return `${weight} ${size}px ${families}, sans-serif`;
}

/** Text without emoji, for which there is no glyph, in single spaces. */
export const drawable = (text: string): string =>
	text
		.replace(/\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{RI}|\u200d|\ufe0f/gu, '')
		.replace(/\s+/g, ' ')
		.trim();

/** Breaks a text into lines no wider than `width`; a word that is wider is broken too. */
function wrap(context: SKRSContext2D, text: string, width: number): string[] {
	const fits = (line: string) => context.measureText(line).width <= width;
	const lines: string[] = [];
	let line = '';
	for (const word of text.split(' ')) {
		const longer = line ? `${line} ${word}` : word;
		if (fits(longer)) {
			line = longer;
			continue;
		}
		if (line) lines.push(line);
		line = '';
		for (const character of word) {
			if (line && !fits(line + character)) {
				lines.push(line);
				line = '';
			}
			line += character;
		}
	}
	return line ? [...lines, line] : lines;
}

export interface FittedText {
	readonly size: number;
	readonly lineHeight: number;
	readonly lines: readonly string[];
}

/** Sets a text as large as its box allows; what is too long even in small type ends in an ellipsis. */
export function fit(
	context: SKRSContext2D,
	text: string,
	box: { width: number; height: number; largest: number; smallest: number },
): FittedText {
	for (let size = box.largest; ; size = Math.max(box.smallest, Math.floor(size * 0.9))) {
		context.font = font(size, 700);
		const lineHeight = Math.round(size * 1.18);
		const lines = wrap(context, text, box.width);
		const room = Math.max(1, Math.floor(box.height / lineHeight));
		if (lines.length <= room) return { size, lineHeight, lines };
		if (size > box.smallest) continue;
		const shown = lines.slice(0, room);
		return { size, lineHeight, lines: [...shown.slice(0, -1), `${shown.at(-1)?.slice(0, -1)}…`] };
	}
}
