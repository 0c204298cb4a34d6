import type { IDataObject } from 'n8n-workflow';

import {
	describeModel,
	estimateCostUsd,
	findBalance,
	IMAGE_MODEL,
	readModels,
	roundUsd,
	VIDEO_MODEL,
} from '../../../nodes/MediaGeneration/service/money';
import { numberAt } from '../../../nodes/MediaGeneration/shared/json';

const painter = { id: 'acme/painter', priceUsd: 0.05, unit: 'task' };
const clips = { id: 'acme/clips', priceUsd: 0.2, unit: 'second' };
const free = { id: 'acme/new', priceUsd: 0, unit: 'task' };
const dear = { id: IMAGE_MODEL, priceUsd: 0.1, unit: 'task' };
const models = readModels({ model: [painter, clips, free, dear] });

it.each<[string, model: string, input: IDataObject, cost: number | undefined]>([
	['an image', IMAGE_MODEL, {}, 0.08],
	['an image, whatever its input', IMAGE_MODEL, { duration: 9 }, 0.08],
	['a video of a second', VIDEO_MODEL, { duration: 1 }, 0.1025],
	['a video of five seconds', VIDEO_MODEL, { duration: 5 }, 0.5125],
	['a video of a number in a text', VIDEO_MODEL, { duration: '6' }, 0.615],
	['a video of half a second', VIDEO_MODEL, { duration: 0.5 }, 0.05125],
	['a video of no length', VIDEO_MODEL, {}, undefined],
	['a video of no length', VIDEO_MODEL, { duration: 0 }, undefined],
	['a video of no length', VIDEO_MODEL, { duration: -1 }, undefined],
	['a video of no length', VIDEO_MODEL, { duration: 'long' }, undefined],
	['a video of no length', VIDEO_MODEL, { duration: null }, undefined],
	['a video of no length', VIDEO_MODEL, { duration: {} }, undefined],
	['another model', 'other/model', { duration: 5 }, undefined],
])('%s costs what the specification says (%s %j): %s USD', (_what, model, input, cost) => {
	expect(estimateCostUsd(model, input, [])).toBe(cost);
});

it.each<IDataObject>([
	{ duration: 1, seconds: 2 },
	{ duration: 2, settings: { seconds: 100 } },
	{ seconds: 2 },
	{ duration_seconds: '2' },
	{ durationSeconds: 2 },
	{ video_length: 2 },
	{ length: 2 },
	{ duration: 'short', settings: { seconds: 2 } },
])('the duration is found under the names that models have for it: %j', (input) => {
	expect(estimateCostUsd(VIDEO_MODEL, input, [])).toBe(0.205);
});

describe('an input that asks for several results', () => {
	it.each<[IDataObject, number | undefined]>([
		[{ n: 4 }, 0.32],
		[{ num_images: 4 }, 0.32],
		[{ numOutputs: '2' }, 0.16],
		[{ number_of_images: 3 }, 0.24],
		[{ max_images: 2 }, 0.16],
		[{ batch_size: 2, n: 3 }, 0.48],
		[{ parameters: { sampleCount: 2 } }, 0.16],
		[{ n: 0.5, count: null, num_images: '' }, 0.08],
		[{ num_images: 'four' }, undefined],
		[{ images: ['a', 'b'], num_inference_steps: 30, image_count_hint: 3 }, 0.08],
	])('costs that many times, or nobody knows: %j', (input, cost) => {
		expect(estimateCostUsd(IMAGE_MODEL, input, [])).toBe(cost);
	});

	it('costs that many times its seconds', () => {
		expect(estimateCostUsd(VIDEO_MODEL, { duration: 5, n: 2 }, [])).toBe(1.025);
	});
});

describe('the models of the credential', () => {
	it.each<[string, model: string, input: IDataObject, cost: number | undefined]>([
		['by the task', 'acme/painter', {}, 0.05],
		['by the second', 'acme/clips', { duration: 5 }, 1],
		['that needs a duration', 'acme/clips', {}, undefined],
		['that is not known', 'acme/new', {}, undefined],
		['that nobody has entered', 'acme/unknown', {}, undefined],
		['in place of that of the specification', IMAGE_MODEL, {}, 0.1],
	])('give a price %s', (_what, model, input, cost) => {
		expect(estimateCostUsd(model, input, models)).toBe(cost);
	});

	it('leave nothing of the prices of the specification, which are those of no account', () => {
		const unpriced = readModels([{ ...dear, priceUsd: 0 }]);
		for (const own of [unpriced, readModels([painter])]) {
			expect(estimateCostUsd(IMAGE_MODEL, {}, own)).toBeUndefined();
		}
		expect(estimateCostUsd(IMAGE_MODEL, {}, [])).toBe(0.08);
	});

	it.each([undefined, null, '', {}, { model: [] }, [], { model: [{ id: ' ' }, {}, null, 7] }])(
		'are none in %j',
		(value) => {
			expect(readModels(value)).toEqual([]);
		},
	);

	it.each([
		[{ id: ' a/b ', priceUsd: '0.5', unit: 'second' }, 0.5, 'second'],
		[{ id: 'a/b' }, 0, 'task'],
		[{ id: 'a/b', priceUsd: -1, unit: 'hour' }, 0, 'task'],
		[{ id: 'a/b', priceUsd: 'much' }, 0, 'task'],
	])('are read from %j: %d USD per %s', (row, priceUsd, unit) => {
		expect(readModels({ model: [row] })).toEqual([{ id: 'a/b', priceUsd, unit }]);
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

describe('the balance', () => {
	it.each([
		['a numeric string', { balance: '42' }],
		['a bare number', 42],
		['snake case', { credit_balance: 42 }],
		['camel case', { availableCredits: 42 }],
		['what remains', { remaining_balance: 42, total_balance: 100 }],
		['upper case', { CREDITS: 42 }],
		['the telling name among others', { credits: 7, used: 3, balance: 42 }],
		['what remains, beside all credits', { credits: 100, used: 58, remaining: 42 }],
		['a wrapped number', { data: 42 }],
		['an object named after it', { credits: { remaining: 42, total: 100 } }],
		['an envelope with a code', { code: 200, message: 'ok', data: { credits: 42 } }],
		['three levels', { data: { account: { balance: 42 } } }],
		['the shallowest place', { balance: 42, data: { balance: 7 } }],
	])('is found in %s', (_shape, body) => {
		expect(findBalance(body)).toBe(42);
	});

	it.each([0, -3.5])('may be %d', (balance) => {
		expect(findBalance({ balance })).toBe(balance);
	});

	it.each([
		['nothing', undefined],
		['null', null],
		['an empty object', {}],
		['other numbers', { total: 100, used: 58 }],
		['a text', 'plenty'],
		['a text field', { balance: 'plenty' }],
		['a boolean', { balance: true }],
		['two wallets that both name one', { image: { balance: 1 }, video: { balance: 2 } }],
		['a list', [{ balance: 42 }]],
		['four levels', { a: { b: { c: { balance: 42 } } } }],
	])('is null rather than wrong in %s', (_shape, body) => {
		expect(findBalance(body)).toBeNull();
	});
});

describe('the balance at a place that the user named', () => {
	const body = { data: { wallet: { amount: '42', name: 'main' } }, list: [{ credits: 7 }] };

	it('is the number there', () => {
		const paths = ['data.wallet.amount', 'list.0.credits', 'list[0].credits'];
		expect(paths.map((path) => numberAt(body, path))).toEqual([42, 7, 7]);
	});

	const NOT_THERE = ['data.none.amount', 'list.1.credits', 'data.wallet.amount.more', ''];
	const NO_NUMBER = ['data.wallet.name', 'data.wallet', 'list.credits'];
	it.each([...NOT_THERE, ...NO_NUMBER, 'constructor.length', 'list.length'])(
		'%j is null, since no number stands there',
		(path) => {
			expect(numberAt(body, path)).toBeNull();
		},
	);
});
