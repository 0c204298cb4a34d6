import type { IDataObject } from 'n8n-workflow';

import { field, IMAGE_MODEL, imageNode, prompts, stage } from './support';

const on = stage();

/** Tasks that finish at very different times. */
const uneven = (count: number) =>
	prompts(
		...Array.from({ length: count }, (_, index) => ({
			prompt: `Picture ${index}`,
			simulate: { latencyMs: 500 + ((index * 7919) % 20) * 1000 },
		})),
	);

describe('the output of an image', () => {
	it('has exactly the fields of the contract', async () => {
		const { output } = await on.run({ parameters: { prompt: 'A lighthouse' } });
		const [taskId = ''] = on.taskIds;
		expect(output).toEqual([
			{
				json: {
					taskId,
					state: 'SUCCESS',
					resultUrls: [`${on.service.mediaUrl}/media/${taskId}/1.png`],
					creditsConsumed: 8,
					model: IMAGE_MODEL,
					input: { prompt: 'A lighthouse' },
					record: expect.objectContaining({ taskId, state: 'SUCCESS' }) as IDataObject,
					estimatedCostUsd: 0.08,
				},
				pairedItem: { item: 0 },
			},
		]);
	});

	it('has the record as the service sent it, prompt metadata included', async () => {
		on.service.configure({ extraFields: { metadata: { seed: 7 } } });
		const { output } = await on.run({ parameters: { prompt: 'A lighthouse' } });
		expect(output[0]?.json.record).toMatchObject({
			input: { prompt: 'A lighthouse' },
			metadata: { seed: 7 },
		});
	});

	it('has no estimate for a model whose price is not known', async () => {
		const { output } = await on.run({ parameters: { prompt: 'A', model: 'other/model' } });
		expect(output[0]?.json).not.toHaveProperty('estimatedCostUsd');
	});

	it('is the same for a service that writes its states in lower case', async () => {
		on.service.configure({ stateCase: 'lower' });
		const { output } = await on.run({ parameters: { prompt: 'A lighthouse' } });
		expect(field(output, 'state')).toEqual(['SUCCESS']);
	});

	it('is an empty list where a success has no results', async () => {
		on.service.configure({ omitResultUrls: true });
		const { output } = await on.run({ parameters: { prompt: 'A lighthouse' } });
		expect(field(output, 'resultUrls')).toEqual([[]]);
	});

	it.each(['flat', 'wrapped', 'task', 'record', 'snake', 'id'] as const)(
		'comes about whatever the shape of the answer to a create (%s)',
		async (createShape) => {
			on.service.configure({ createShape });
			const { output } = await on.run({ parameters: { prompt: 'A lighthouse' } });
			expect(field(output, 'taskId')).toEqual(on.taskIds);
		},
	);
});

describe('a batch', () => {
	it('comes out in input order, though its tasks finish in another', async () => {
		const { output } = await on.run(
			imageNode(),
			prompts(
				{ prompt: 'slow', simulate: { latencyMs: 30_000 } },
				{ prompt: 'quick', simulate: { latencyMs: 0 } },
				{ prompt: 'middling', simulate: { latencyMs: 10_000 } },
			),
		);
		expect(output.map(({ json, pairedItem }) => [json.input, pairedItem])).toMatchObject([
			[{ prompt: 'slow' }, { item: 0 }],
			[{ prompt: 'quick' }, { item: 1 }],
			[{ prompt: 'middling' }, { item: 2 }],
		]);
	});

	it('of ten is created whole before the first of it is finished', async () => {
		on.service.configure({ latencyMs: 1000 });
		await on.run(imageNode(), prompts(...'abcdefghij'));
		const finished = [...on.service.tasks.values()].map(({ completedAt = 0 }) => completedAt);
		expect(on.creates).toHaveLength(10);
		expect(Math.max(...on.creates.map(({ at }) => at))).toBeLessThan(Math.min(...finished));
	});

	it('of ten takes hardly longer than one', async () => {
		on.service.configure({ latencyMs: 9000 });
		const startedAt = Date.now();
		await on.run(imageNode(), prompts(...'abcdefghij'));
		expect(Date.now() - startedAt).toBeLessThan(9000 + 2000 + 10 * 50);
	});

	it.each([1, 3])(
		'has never more than %d tasks unfinished where that is the limit',
		async (limit) => {
			on.service.configure({ concurrencyLimit: limit });
			const { output, error } = await on.run(imageNode({ maxInFlight: limit }), uneven(7));
			expect(error).toBeUndefined();
			expect(field(output, 'state')).toEqual(Array(7).fill('SUCCESS'));
		},
	);

	it('creates each of its tasks once', async () => {
		await on.run(imageNode(), prompts(...'abcdefg'));
		const sent = [...on.service.tasks.values()].map(({ record }) => record.input.prompt);
		expect(sent).toEqual([...'abcdefg']);
	});
});

describe('polling', () => {
	const reads = () => on.requests('GET', '/api/generate/').map(({ at }) => at);
	const gaps = (moments: number[]) =>
		moments.slice(1).map((at, index) => at - (moments[index] ?? 0));

	it.each([2, 3.5, 5])(
		'reads a task every %d s, the first time that long after its creation',
		async (pollInterval) => {
			on.service.configure({ latencyMs: 60_000 });
			await on.run({ parameters: { prompt: 'A', options: { pollInterval } } });
			const [created = 0] = on.creates.map(({ at }) => at);
			expect(new Set(gaps([created, ...reads()]))).toEqual(new Set([pollInterval * 1000]));
		},
	);

	it('reads none of the tasks of a batch sooner than that', async () => {
		await on.run(imageNode({ maxInFlight: 20 }), uneven(20));
		const all = on.taskIds.flatMap((id) => gaps(on.requests('GET', id).map(({ at }) => at)));
		expect(Math.min(...all)).toBeGreaterThanOrEqual(2000);
	});

	it.each([
		['a read that is refused for a while', { readStatus: { status: 503, times: 3 } }],
		['too many requests', { readStatus: { status: 429, times: 2, retryAfter: 1 } }],
		['a connection that is lost', { readDropped: { times: 2 } }],
		['a body that is cut short', { readCutShort: { times: 2 } }],
	])('survives %s', async (_what, settings) => {
		on.service.configure(settings);
		const { output } = await on.run({ parameters: { prompt: 'A lighthouse' } });
		expect(field(output, 'state')).toEqual(['SUCCESS']);
	});

	it('keeps a Retry-After', async () => {
		on.service.configure({ readStatus: { status: 429, times: 1, retryAfter: 20 } });
		await on.run({ parameters: { prompt: 'A lighthouse' } });
		expect(gaps(reads())).toEqual([20_000]);
	});
});

describe('split results', () => {
	it('are one item for each result, all paired with their input', async () => {
		on.service.configure({ resultCount: 3 });
		const { output } = await on.run(imageNode({ splitResults: true }), prompts('a', 'b'));
		expect(output).toHaveLength(6);
		expect(field(output, 'resultIndex')).toEqual([0, 1, 2, 0, 1, 2]);
		expect(output.map(({ pairedItem }) => pairedItem)).toEqual(
			[0, 0, 0, 1, 1, 1].map((item) => ({ item })),
		);
		for (const { json } of output) {
			expect(json.resultUrl).toBe((json.resultUrls as string[])[Number(json.resultIndex)]);
		}
	});
});

describe('the base URL', () => {
	it('may end in a slash', async () => {
		const { url, apiKey } = on.service;
		const credential = { baseUrl: `${url}/`, apiKey };
		const { output } = await on.run({ parameters: { prompt: 'A' } }, undefined, { credential });
		expect(field(output, 'state')).toEqual(['SUCCESS']);
	});
});
