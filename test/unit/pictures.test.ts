import { digestOf, storedDigests } from '../e2e/shownInPictures';
import { filesIn } from './repository';

const pictures = filesIn('docs/images', '.png')
	.map((path) => path.replace(/^docs\/images\/(.*)\.png$/, '$1'))
	.sort();

it('every picture has a digest of what it showed when it was taken', () => {
	expect(pictures.length).toBeGreaterThan(5);
	expect(Object.keys(storedDigests()).sort()).toEqual(pictures);
});

it.each(pictures)('%s is up to date; otherwise take it again: npm run screenshots', (name) => {
	expect(digestOf(name)).toBe(storedDigests()[name]);
});
