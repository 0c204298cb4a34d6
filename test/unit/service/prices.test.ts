import {
	describeModel,
	estimateCostUsd,
	IMAGE_MODEL,
	readModels,
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

describe('the models of the credential', () => {
	const painter = { id: 'acme/painter', priceUsd: 0.05, unit: 'task' };
	const clips = { id: 'acme/clips', priceUsd: 0.2, unit: 'second' };
	const free = { id: 'acme/new', priceUsd: 0, unit: 'task' };
	const dear = { id: IMAGE_MODEL, priceUsd: 0.1, unit: 'task' };
	const models = readModels({ model: [painter, clips, free, dear] });
	const cost = (id: string, input = {}) => estimateCostUsd(id, input, 'duration', models);

	it('give each model its price, by the task or by the second', () => {
		expect(cost('acme/painter')).toBe(0.05);
		expect(cost('acme/clips', { duration: 5 })).toBe(1);
		expect(cost('acme/clips')).toBeUndefined();
		expect(cost('acme/new')).toBeUndefined();
		expect(cost('acme/unknown')).toBeUndefined();
	});

	it('win over the prices of the specification, unless their price is not known', () => {
		expect(cost(IMAGE_MODEL)).toBe(0.1);
		const unpriced = readModels([{ ...dear, priceUsd: 0 }]);
		expect(estimateCostUsd(IMAGE_MODEL, {}, 'duration', unpriced)).toBe(0.08);
	});

	it.each([undefined, null, '', {}, { model: [] }, [], { model: [{ id: ' ' }, {}, null, 7] }])(
		'are none in %j',
		(value) => {
			expect(readModels(value)).toEqual([]);
		},
	);

	it.each([
		[
			{ id: ' a/b ', priceUsd: '0.5', unit: 'second' },
			{ id: 'a/b', priceUsd: 0.5, unit: 'second' },
		],
		[{ id: 'a/b' }, { id: 'a/b', priceUsd: 0, unit: 'task' }],
		[
			{ id: 'a/b', priceUsd: -1, unit: 'hour' },
			{ id: 'a/b', priceUsd: 0, unit: 'task' },
		],
		[
			{ id: 'a/b', priceUsd: 'much' },
			{ id: 'a/b', priceUsd: 0, unit: 'task' },
		],
	])('are read from %j as %j', (row, model) => {
		expect(readModels({ model: [row] })).toEqual([model]);
	});

	it('name their price only if it is known', () => {
		expect(models.map(describeModel)).toEqual([
			'acme/painter (0.05 USD per task)',
			'acme/clips (0.2 USD per second)',
			'acme/new',
			`${IMAGE_MODEL} (0.1 USD per task)`,
		]);
	});
});

it('sums lose what binary fractions add', () => {
	expect(roundUsd(0.1 + 0.2)).toBe(0.3);
	const sum = Array<number>(200)
		.fill(0.08)
		.reduce((total, price) => total + price);
	expect(roundUsd(sum)).toBe(16);
});
