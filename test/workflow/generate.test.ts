import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { callbackToken } from '../../nodes/MediaGeneration/callback/callbackToken';
import nock from '../nock';
import { SERVICE, type TestNode, TRIGGER, TRIGGER_PATH } from './engine';
import {
	field,
	hintsOf,
	IMAGE_MODEL,
	imageNode,
	prompts,
	SECOND,
	stage,
	VIDEO_MODEL,
} from './support';

// The simulated service.
beforeAll(() => nock.enableNetConnect('127.0.0.1'));
const on = stage();

const webhookUrls = () => on.tasks.map(({ webhookUrl }) => webhookUrl);
const gaps = (moments: number[]) => moments.slice(1).map((at, index) => at - (moments[index] ?? 0));

/** Tasks that finish at very different times. */
const uneven = (count: number) =>
	Array.from({ length: count }, (_, index) => ({
		prompt: `Picture ${index}`,
		simulate: { latencyMs: 500 + ((index * 7919) % 20) * SECOND },
	}));

describe('an image', () => {
	const lighthouse = async (more: IDataObject = {}) =>
		(await on.run({ parameters: { prompt: 'A lighthouse', ...more } })).output;

	const common = () => ({
		taskId: on.taskIds[0],
		model: IMAGE_MODEL,
		input: { prompt: 'A lighthouse' },
		estimatedCostUsd: 0.08,
	});

	it('has exactly the fields of the contract', async () => {
		const output = await lighthouse();
		const [taskId = ''] = on.taskIds;
		const resultUrls = [`${on.service.mediaUrl}/media/${taskId}/1.png`];
		const record = expect.objectContaining({ taskId, state: 'SUCCESS' }) as IDataObject;
		const json = { ...common(), state: 'SUCCESS', resultUrls, creditsConsumed: 8, record };
		expect(output).toEqual([{ json, pairedItem: { item: 0 } }]);
	});

	it('with Return Immediately leaves with the answer to the create, reads nothing and asks for no callback', async () => {
		const output = await lighthouse({ completion: 'return' });
		const pending = { state: 'PENDING', resultUrls: [], creditsConsumed: null };
		const json = { ...common(), ...pending, record: { taskId: on.taskIds[0] } };
		expect(output).toEqual([{ json, pairedItem: { item: 0 } }]);
		expect(on.requests('GET')).toEqual([]);
		expect(webhookUrls()).toEqual([undefined]);
	});

	it.each([2, 3.5, 5])(
		'is read every %d s, the first time that long after its creation',
		async (pollInterval) => {
			on.service.configure({ latencyMs: 60 * SECOND });
			await lighthouse({ options: { pollInterval } });
			const reads = on.requests('GET', '/api/generate/');
			const moments = [...on.creates, ...reads].map(({ at }) => at);
			expect(new Set(gaps(moments))).toEqual(new Set([pollInterval * SECOND]));
		},
	);
});

describe('a batch', () => {
	it('comes out in input order, though its tasks finish in another', async () => {
		const items = [30 * SECOND, 0, 10 * SECOND].map((latencyMs) => ({
			prompt: `${latencyMs} ms`,
			simulate: { latencyMs },
		}));
		const { output } = await on.images(items);
		expect(output).toMatchObject(
			items.map(({ prompt }, item) => ({ json: { input: { prompt } }, pairedItem: { item } })),
		);
	});

	it('is created whole, each task once, before its first task is finished, and takes hardly longer than one', async () => {
		on.service.configure({ latencyMs: 9 * SECOND });
		await on.images([...'abcdefghij']);
		expect(on.inputs.map(({ prompt }) => prompt)).toEqual([...'abcdefghij']);
		expect(on.creates).toHaveLength(10);
		const finished = on.tasks.map(({ completedAt = 0 }) => completedAt);
		expect(Math.max(...on.creates.map(({ at }) => at))).toBeLessThan(Math.min(...finished));
		expect(on.elapsed).toBeLessThan(11 * SECOND + 10 * 50);
	});

	it('has none of its tasks read more often than the interval says', async () => {
		await on.images(uneven(20), { maxInFlight: 20 });
		const all = on.taskIds.flatMap((id) => gaps(on.requests('GET', id).map(({ at }) => at)));
		expect(Math.min(...all)).toBeGreaterThanOrEqual(2 * SECOND);
	});
});

describe('a video', () => {
	const URL = 'https://m.example.com/1.png';
	const picture = (data: Buffer): INodeExecutionData => ({
		json: {},
		binary: { data: { data: data.toString('base64'), mimeType: 'image/png' } },
	});
	const uri = (data: Buffer) => `data:image/png;base64,${data.toString('base64')}`;

	const videoOf = async (parameters: IDataObject, items?: INodeExecutionData[]) =>
		await on.run({ parameters: { resource: 'video', prompt: 'Waves', ...parameters } }, items);

	it('starts from a picture at an address', async () => {
		const { output } = await videoOf({ imageUrl: URL, durationSeconds: 5 });
		const input = { prompt: 'Waves', duration: 5, image_url: URL };
		expect(on.inputs).toEqual([input]);
		const expected = { state: 'SUCCESS', model: VIDEO_MODEL, input, estimatedCostUsd: 0.5125 };
		expect(output[0]?.json).toMatchObject(expected);
	});

	it('has picture and duration where the names of their fields lead, and its price by that', async () => {
		const fields = { imageField: 'frames[0].url', durationField: 'settings.seconds' };
		const set = { assignments: [{ name: 'settings.seconds', type: 'number', value: 10 }] };
		const video = { imageUrl: URL, durationSeconds: 5 };
		await videoOf({ ...video, options: fields });
		const { output } = await videoOf({ ...video, options: { ...fields, additionalFields: set } });
		const input = { prompt: 'Waves', frames: [{ url: URL }] };
		expect(on.inputs).toEqual([5, 10].map((seconds) => ({ ...input, settings: { seconds } })));
		expect(output[0]?.json.estimatedCostUsd).toBe(1.025);
	});

	it('starts from the picture of each item, sent whole as a data URI; the output shows its beginning', async () => {
		const pictures = [Buffer.from('small'), Buffer.alloc(100_000, 7)];
		const { output } = await videoOf({ imageSource: 'binary' }, pictures.map(picture));
		const [small = '', large = ''] = pictures.map(uri);
		const inputs = (...urls: string[]) => urls.map((image_url) => ({ prompt: 'Waves', image_url }));
		expect(on.inputs).toEqual(inputs(small, large));
		const cut = `${large.slice(0, 64)}… (${large.length} characters)`;
		expect(field(output, 'input')).toEqual(inputs(small, cut));
	});
});

describe('Notify a Trigger', () => {
	it.each<[string, TestNode[], object]>([
		['of this workflow', [TRIGGER], {}],
		['whose URL was pasted', [], { callbackUrl: `https://n8n.test${TRIGGER_PATH}` }],
	])(
		'has the service call the trigger %s with the right token, which the items do not show',
		async (_which, triggers, more) => {
			const node = { parameters: { completion: 'trigger', ...more } };
			const { output } = await on.images(['a', 'b'], {}, node, { triggers });
			const token = callbackToken(TRIGGER_PATH, on.service.apiKey);
			expect(webhookUrls()).toEqual(
				Array(2).fill(`https://n8n.test${TRIGGER_PATH}?token=${token}`),
			);
			const pending = { state: 'PENDING', resultUrls: [], creditsConsumed: null };
			expect(output.map(({ json }) => json)).toMatchObject(
				on.taskIds.map((taskId) => ({ taskId, ...pending, record: { taskId } })),
			);
			expect(on.requests('GET')).toEqual([]);
			expect(JSON.stringify(output)).not.toContain(token);
		},
	);
});

describe('a reference', () => {
	const rows = prompts('a', 'b').map(({ json }, index) => ({
		json: { ...json, row: `row ${index}` },
	}));

	/** Orders an image for each row, with the row as its reference. */
	const order = async (
		completion: string,
		options: IDataObject = {},
		more: TestNode = {},
		items: INodeExecutionData[] = rows,
	) => {
		const node = { ...more, parameters: { completion } };
		const given = imageNode({ reference: '={{ $json.row }}', ...options }, node);
		return await on.run(given, items, { triggers: [TRIGGER] });
	};

	it.each(['wait', 'trigger', 'return'])(
		'comes out with its task after the input (%s)',
		async (completion) => {
			const { output } = await order(completion);
			expect(field(output, 'reference')).toEqual(['row 0', 'row 1']);
			const names = Object.keys(output[0]?.json ?? {});
			expect(names[names.indexOf('input') + 1]).toBe('reference');
		},
	);

	it('is waiting with its task while the execution is suspended', async () => {
		on.service.configure({ latencyMs: 60_000 });
		const { waiting } = await order('wait', { suspendAfter: 0 });
		expect(field(waiting, 'reference')).toEqual(['row 0', 'row 1']);
	});

	it.each([
		['is under its token', {}, 'row 0'],
		['is not where it is left empty', { reference: '' }, undefined],
	])('in the address of the trigger %s', async (_what, options, reference) => {
		await order('trigger', options);
		const { pathname, searchParams } = new URL(webhookUrls()[0] ?? '');
		const token = callbackToken(TRIGGER_PATH, on.service.apiKey, reference);
		expect(pathname).toBe(TRIGGER_PATH);
		expect(Object.fromEntries(searchParams)).toEqual({ ...(reference && { reference }), token });
	});

	it.each([
		['failed', { outcome: 'FAILURE' as const }],
		['was refused', { createStatus: 400 }],
	])('goes out with an item whose task %s', async (_what, settings) => {
		on.service.configure(settings);
		const { output } = await order('wait', {}, { onError: 'continueRegularOutput' });
		expect(field(output, 'reference')).toEqual(['row 0', 'row 1']);
	});

	it.each([7, 'x'.repeat(500)])('may be %j', async (reference) => {
		const { output } = await order('return', { reference }, {}, rows.slice(1));
		expect(field(output, 'reference')).toEqual([String(reference)]);
	});

	it.each([
		["={{ 'x'.repeat(501) }}", "The parameter 'Your Reference' has 501 characters"],
		['={{ [1, 2] }}', "The parameter 'Your Reference' is not a text"],
	])('%s is refused before a task is created', async (reference, message) => {
		const { error } = await order('trigger', { reference });
		expect(error?.message).toBe(message);
		expect(on.creates).toEqual([]);
	});
});

describe('the hints above the output', () => {
	it.each<[string, IDataObject, IDataObject, boolean]>([
		['say how to see results', {}, {}, true],
		['do not where results are downloaded', { downloadResults: true }, {}, false],
		['do not where there are none yet', {}, { completion: 'return' }, false],
	])('%s', async (_what, options, parameters, isSaid) => {
		const hints = hintsOf(await on.images(['a'], options, { parameters }));
		const pins = hints.filter((text) =>
			text.startsWith('Pin this output before you build the next steps'),
		);
		expect(pins).toHaveLength(isSaid ? 1 : 0);
	});

	it('say where the results will appear that a trigger gets, without the token', async () => {
		const callbackUrl = 'https://n8n.example.com/webhook/a/callback?token=x';
		const node = { parameters: { completion: 'trigger', callbackUrl } };
		const [, where, ...others] = hintsOf(await on.images(['a', 'b'], {}, node));
		expect(where).toMatch(
			/stay PENDING.* Trigger at https:\/\/n8n\.example\.com\/webhook\/a\/callback: look in the list of executions/,
		);
		expect(others).toEqual([]);
	});

	it('say what comes in place of callbacks where the service cannot call back, without the token', async () => {
		nock(SERVICE).post('/api/generate').reply(200, { taskId: 'task-1' });
		const callbackUrl = 'http://localhost:5678/webhook/a/callback?token=secret';
		const node = { parameters: { completion: 'trigger', callbackUrl } };
		const credential = { ...on.credential, baseUrl: SERVICE };
		const [, said] = hintsOf(await on.images(['a'], {}, node, { credential }));
		expect(said).toMatch(/api\.example\.com cannot call http:\/\/localhost:5678,.*WEBHOOK_URL/);
		expect(said).not.toContain('secret');
	});
});
