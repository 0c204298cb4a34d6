import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';

import { digestOf, storedDigests } from '../e2e/shownInPictures';

const FOLDER = resolve(__dirname, '../../docs/images');

const pictures = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
	.filter((file) => file.endsWith('.png'))
	.map((file) => file.replaceAll('\\', '/').replace(/\.png$/, ''))
	.sort();

it('every picture has a digest of what it showed when it was taken', () => {
	expect(pictures.length).toBeGreaterThan(5);
	expect(Object.keys(storedDigests()).sort()).toEqual(pictures);
});

it.each(pictures)(
	'%s shows what there is today; otherwise take it again: npm run screenshots',
	(name) => {
		expect(digestOf(name)).toBe(storedDigests()[name]);
	},
);

it('a picture of which nobody says what it shows cannot be taken', () => {
	expect(() => digestOf('something-else')).toThrow('Nobody says what something-else.png shows');
});
