import {
	estimateCostUsd,
	IMAGE_MODEL,
	roundUsd,
	VIDEO_MODEL,
} from '../../../nodes/MediaGeneration/service/prices';

it('an image costs 0.08 USD, whatever its input', () => {
	expect(estimateCostUsd(IMAGE_MODEL, {}, 'duration')).toBe(0.08);
	expect(estimateCostUsd(IMAGE_MODEL, { duration: 9 }, 'duration')).toBe(0.08);
});

it.each([
	[1, 0.1025],
	[5, 0.5125],
	['6', 0.615],
	[0.5, 0.05125],
])('a video of %j seconds costs %d USD', (duration, cost) => {
	expect(estimateCostUsd(VIDEO_MODEL, { duration }, 'duration')).toBe(cost);
});

it('the duration is read from the field that carries it', () => {
	const input = { duration: 100, seconds: 2 };
	expect(estimateCostUsd(VIDEO_MODEL, input, 'seconds')).toBe(0.205);
});

const UNKNOWN = [undefined, 0, -1, 'long', null, {}];
it.each(UNKNOWN)('a video of unknown length (%j) has no known price', (duration) => {
	const input = duration === undefined ? {} : { duration };
	expect(estimateCostUsd(VIDEO_MODEL, input, 'duration')).toBeUndefined();
});

it('another model has no known price', () => {
	expect(estimateCostUsd('other/model', { duration: 5 }, 'duration')).toBeUndefined();
});

it('sums lose what binary fractions add', () => {
	expect(roundUsd(0.1 + 0.2)).toBe(0.3);
	const sum = Array<number>(200)
		.fill(0.08)
		.reduce((total, price) => total + price);
	expect(roundUsd(sum)).toBe(16);
});
