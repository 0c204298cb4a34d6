import type { IDataObject } from 'n8n-workflow';

import { callbackToken } from '../../nodes/MediaGeneration/shared/addresses';
import type { Settings } from '../service/settings';
import { type TestNode, TRIGGER, TRIGGER_PATH } from './engine';
import {
	field,
	IMAGE_MODEL,
	imageNode,
	item,
	jsonOf,
	keepsGoing,
	prompts,
	SECOND,
	stage,
} from './support';

const on = stage();

const webhookUrls = () => on.tasks.map(({ webhookUrl }) => webhookUrl);
const gaps = (moments: number[]) => moments.slice(1).map((at, index) => at - (moments[index] ?? 0));
/** The fields of a task that was only created. */
const PENDING = { state: 'PENDING', resultUrls: [], creditsConsumed: null };

describe('an image', () => {
	it('has exactly the fields of the contract, and with Return Immediately leaves with the answer to the create, reads nothing and asks for no callback', async () => {
		const returned = await on.run({ parameters: { prompt: 'Sea', completion: 'return' } });
		expect(on.requests('GET')).toEqual([]);
		expect(webhookUrls()).toStrictEqual([undefined]);
		const { output } = await on.run({ parameters: { prompt: 'Sea', downloadResults: false } });
		const [first, taskId = ''] = on.taskIds;
		const common = { model: IMAGE_MODEL, input: { prompt: 'Sea' }, estimatedCostUsd: 0.08 };
		const pending = { taskId: first, ...common, ...PENDING, record: {} };
		expect(returned.output).toEqual([{ json: pending, pairedItem: { item: 0 } }]);
		const resultUrls = [`${on.service.mediaUrl}/media/${taskId}/1.png`];
		const at = expect.stringContaining('2026') as unknown;
		const record = { createdAt: at, completedAt: at } as IDataObject;
		const json = { taskId, ...common, state: 'SUCCESS', resultUrls, creditsConsumed: 8, record };
		expect(output).toEqual([{ json, pairedItem: { item: 0 } }]);
	});
});

describe('a batch', () => {
	it('comes out in input order, though its tasks finish in another, and has none of them read more often than the interval says', async () => {
		const items = Array.from({ length: 20 }, (_, index) =>
			item(`Picture ${index}`, { latencyMs: 500 + ((index * 7919) % 20) * SECOND }),
		);
		const { output } = await on.images(items, { maxInFlight: 20 });
		expect(output).toMatchObject(
			items.map(({ prompt }, item) => ({ json: { input: { prompt } }, pairedItem: { item } })),
		);
		const all = on.taskIds.flatMap((id) => gaps(on.requests('GET', id).map(({ at }) => at)));
		expect(Math.min(...all)).toBeGreaterThanOrEqual(2 * SECOND);
	});
});

it.each<[string, TestNode[], object]>([
	['of this workflow', [TRIGGER], {}],
	['whose URL was pasted', [], { callbackUrl: `https://n8n.test${TRIGGER_PATH}` }],
])(
	'Notify a Trigger has the service call the trigger %s with the right token, which the items do not show',
	async (_which, triggers, more) => {
		const node = { parameters: { completion: 'trigger', ...more } };
		const { output } = await on.images(['a', 'b'], {}, node, { triggers });
		const token = callbackToken(TRIGGER_PATH, on.service.apiKey);
		expect(webhookUrls()).toEqual(Array(2).fill(`https://n8n.test${TRIGGER_PATH}?token=${token}`));
		expect(jsonOf(output)).toMatchObject(
			on.taskIds.map((taskId) => ({ taskId, ...PENDING, record: {} })),
		);
		expect(on.requests('GET')).toEqual([]);
		expect(JSON.stringify(output)).not.toContain(token);
	},
);

describe('a reference', () => {
	/** Orders two images, each with a reference. */
	const order = async (completion: string, options: IDataObject = {}, node: TestNode = {}) => {
		const all = { reference: '={{ "of " + $json.prompt }}', ...options };
		return await on.run(
			imageNode(all, { ...node, parameters: { completion } }),
			prompts('a', 'b'),
			{
				triggers: [TRIGGER],
			},
		);
	};

	it.each<[string, string, Settings, IDataObject]>([
		['with its result', 'wait', {}, {}],
		['with an item that was refused', 'wait', { createStatus: 400 }, {}],
		['with a task that a trigger waits for', 'trigger', {}, {}],
		['with a task that nobody waits for', 'return', {}, {}],
	])('comes out %s', async (_what, completion, settings, options) => {
		on.service.configure(settings);
		const { output: items } = await order(completion, options, keepsGoing);
		expect(field(items, 'reference')).toEqual(['of a', 'of b']);
		// What was refused has no task to stand beside.
		if (settings.createStatus !== undefined) return;
		expect(Object.keys(items[0]?.json ?? {}).join()).toContain('input,reference');
	});

	it.each([7, 'x'.repeat(500)])('may be %j', async (reference) => {
		const { output } = await order('return', { reference });
		expect(field(output, 'reference')).toEqual(Array(2).fill(String(reference)));
	});

	it.each([
		["={{ 'x'.repeat(501) }}", "The parameter 'Reference' has 501 characters"],
		...['[1, 2]', 'Number("x")'].map((value) => [
			`={{ ${value} }}`,
			"The parameter 'Reference' is not a text",
		]),
	])('%s is refused before a task is created', async (reference, message) => {
		const { error } = await order('trigger', { reference });
		expect(error?.message).toBe(`${message} (item 1)`);
		expect(on.creates).toEqual([]);
	});
});

it('three lines of a prompt make three pictures, in their order, each linked to the one item', async () => {
	const prompt = 'A red bird\n\nA blue bird\nA green bird';
	const node = imageNode(
		{ downloadResults: true },
		{ parameters: { prompt, promptPerLine: true } },
	);
	const { output, hints } = await on.run(node, [{ json: { row: 7 } }]);
	expect(field(output, 'input')).toEqual([
		{ prompt: 'A red bird' },
		{ prompt: 'A blue bird' },
		{ prompt: 'A green bird' },
	]);
	expect(field(output, 'row')).toEqual([7, 7, 7]);
	expect(output.map(({ pairedItem }) => pairedItem)).toEqual(Array(3).fill({ item: 0 }));
	expect(output.map(({ binary }) => binary?.data?.fileName)).toEqual([
		expect.stringMatching(/^1-1-a-red-bird-.*png/),
		expect.stringMatching(/^1-2-a-blue-bird-.*png/),
		expect.stringMatching(/^1-3-a-green-bird-.*png/),
	]);
	expect(hints.join()).toContain('3 tasks, about 0.24 USD, 24 credits.');
});
