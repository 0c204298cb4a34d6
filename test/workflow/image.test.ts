import type { IDataObject } from 'n8n-workflow';

import { field, IMAGE_MODEL, SECOND, stage } from './support';

const on = stage();

/** Tasks that finish at very different times. */
const uneven = (count: number) =>
	Array.from({ length: count }, (_, index) => ({
		prompt: `Picture ${index}`,
		simulate: { latencyMs: 500 + ((index * 7919) % 20) * SECOND },
	}));

/** The one item of an image. */
async function itemOf(parameters: IDataObject = {}, more = {}) {
	const ran = await on.run(
		{ parameters: { prompt: 'A lighthouse', ...parameters } },
		undefined,
		more,
	);
	expect(ran.output).toHaveLength(1);
	return ran.output[0]?.json ?? {};
}

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
});

describe('a batch', () => {
	it('comes out in input order, though its tasks finish in another', async () => {
		const latencies = { slow: 30 * SECOND, quick: 0, middling: 10 * SECOND };
		const items = Object.entries(latencies).map(([prompt, latencyMs]) => ({
			prompt,
			simulate: { latencyMs },
		}));
		const { output } = await on.images(items);
		expect(output).toMatchObject(
			items.map(({ prompt }, item) => ({ json: { input: { prompt } }, pairedItem: { item } })),
		);
	});

	it('of ten is created whole, each task once, before the first of it is finished', async () => {
		on.service.configure({ latencyMs: SECOND });
		await on.images([...'abcdefghij']);
		const finished = on.tasks.map(({ completedAt = 0 }) => completedAt);
		expect(on.inputs.map(({ prompt }) => prompt)).toEqual([...'abcdefghij']);
		expect(on.creates).toHaveLength(10);
		expect(Math.max(...on.creates.map(({ at }) => at))).toBeLessThan(Math.min(...finished));
	});

	it('of ten takes hardly longer than one', async () => {
		on.service.configure({ latencyMs: 9 * SECOND });
		await on.images([...'abcdefghij']);
		expect(on.elapsed).toBeLessThan(11 * SECOND + 10 * 50);
	});

	it.each([1, 3])(
		'has never more than %d tasks unfinished where that is the limit',
		async (limit) => {
			on.service.configure({ concurrencyLimit: limit });
			const { output, error } = await on.images(uneven(7), { maxInFlight: limit });
			expect(error).toBeUndefined();
			expect(field(output, 'state')).toEqual(Array(7).fill('SUCCESS'));
		},
	);
});

describe('polling', () => {
	const gaps = (moments: number[]) =>
		moments.slice(1).map((at, index) => at - (moments[index] ?? 0));
	const readsOf = (path: string) => on.requests('GET', path).map(({ at }) => at);

	it.each([2, 3.5, 5])(
		'reads a task every %d s, the first time that long after its creation',
		async (pollInterval) => {
			on.service.configure({ latencyMs: 60 * SECOND });
			await itemOf({ options: { pollInterval } });
			const [created = 0] = on.creates.map(({ at }) => at);
			const all = gaps([created, ...readsOf('/api/generate/')]);
			expect(new Set(all)).toEqual(new Set([pollInterval * SECOND]));
		},
	);

	it('reads none of the tasks of a batch sooner than that', async () => {
		await on.images(uneven(20), { maxInFlight: 20 });
		const all = on.taskIds.flatMap((id) => gaps(readsOf(id)));
		expect(Math.min(...all)).toBeGreaterThanOrEqual(2 * SECOND);
	});
});

it('split results are one item for each result, all paired with their input', async () => {
	on.service.configure({ resultCount: 3 });
	const { output } = await on.images(['a', 'b'], { splitResults: true });
	expect(field(output, 'resultIndex')).toEqual([0, 1, 2, 0, 1, 2]);
	expect(output.map(({ pairedItem }) => pairedItem)).toEqual(
		[0, 0, 0, 1, 1, 1].map((item) => ({ item })),
	);
	for (const { json } of output) {
		expect(json.resultUrl).toBe((json.resultUrls as string[])[Number(json.resultIndex)]);
	}
});
