import { cutDataUris, isCutDataUri } from '../../../nodes/MediaGeneration/shared/media';
import { hasText } from '../../../nodes/MediaGeneration/shared/json';

const picture = `data:image/png;base64,${'A'.repeat(5000)}`;
const shown = `${picture.slice(0, 64)}… (5022 characters)`;

describe('a long data URI', () => {
	it('is cut, however deep it stands, and says how long it was', () => {
		const given = [{ a: [picture, { b: picture }], c: 7, d: null }];
		expect(cutDataUris(given)).toEqual([{ a: [shown, { b: shown }], c: 7, d: null }]);
	});

	it('is left as it is in what was given', () => {
		const given = { a: picture };
		cutDataUris(given);
		expect(given.a).toBe(picture);
	});
});

const OTHERS = [
	'data:image/png;base64,AAAA',
	'x'.repeat(9000),
	`Data: ${'x'.repeat(9000)}`,
	'data',
	'',
];
it.each(OTHERS)('leaves others alone', (text) => {
	const value = { text, list: [text] };
	expect(cutDataUris(value)).toEqual(value);
});

it('bears any depth', () => {
	let value: unknown = picture;
	for (let depth = 0; depth < 100_000; depth++) value = [value];
	expect(() => cutDataUris(value)).not.toThrow();
});

it.each<[string, boolean]>([
	[shown, true],
	['data:text/plain; charset=utf-8;base64,… (a file, 4 bytes)', true],
	['Data: a chart of the growth… (2020 to 2024)', false],
	['data:… (see below)', false],
	['data:;base64,AAAA… (5022 characters)', true],
])('%j is what is left of a file: %p', (text, isCut) => {
	expect(hasText({ input: [text] }, isCutDataUri)).toBe(isCut);
});
