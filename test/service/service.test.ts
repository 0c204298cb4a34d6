import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { join } from 'node:path';

import { IMAGE_MODEL } from '../workflow/support';
import { time, virtualTime } from '../workflow/time';
import { ofThisProcess } from './effects';
import { ServiceModel } from './model';
import { type SimulatedService, startService } from './service';
import type { AskedWait, Settings } from './settings';

describe('over time', () => {
	virtualTime(0);

	/** A service without HTTP, in which every task is called back, by an address that answers with `status`. */
	function modelWith(settings: Settings, status = 200) {
		const posted: Array<{ at: number; body: unknown }> = [];
		let tasks = 0;
		const model = new ServiceModel(
			{
				...ofThisProcess,
				newTaskId: () => `task-${++tasks}`,
				async post(_url, body) {
					posted.push({ at: Date.now(), body });
					return status;
				},
			},
			{ settings: { latencyMs: 1_000, ...settings }, mediaUrl: () => 'https://media.test' },
		);
		const order = { model: IMAGE_MODEL, input: { prompt: 'x' }, webhook_url: 'https://n8n.test/' };
		const create = () => model.create(order).answer();
		const read = () => JSON.parse(model.read('task-1').answer().body) as object;
		/** Lets time pass until a moment, milliseconds. */
		const pass = async (ms: number) => await time.pass(ms - Date.now());
		return { create, read, pass, posted };
	}

	it('createsPerSecond: lets a second’s creates in at once, and then as they are earned', async () => {
		const { create, pass } = modelWith({ createsPerSecond: { limit: 2, retryAfter: 7 } });
		create();
		create();
		const refusal = { status: 429, headers: { 'retry-after': '7' } };
		expect(() => create()).toThrow(expect.objectContaining(refusal));
		await pass(500);
		expect(create().status).toBe(200);
		expect(() => create()).toThrow('2 tasks a second');
	});

	it.each<[AskedWait, object, object]>([
		[{ retryAfter: 7 }, { 'retry-after': '7' }, {}],
		[{ retryAfter: 7, retryAfterIn: 'retry-after-ms' }, { 'retry-after-ms': '7000' }, {}],
		[{ retryAfter: 7, retryAfterIn: 'ratelimit-reset' }, { 'ratelimit-reset': '7' }, {}],
		[{ retryAfter: 7, retryAfterIn: 'x-ratelimit-reset' }, { 'x-ratelimit-reset': '7' }, {}],
		[{ retryAfter: 7, retryAfterIn: 'body' }, {}, { retry_after: 7 }],
		[{}, {}, {}],
	])('%j asks to wait with %j and %j', async (asked, headers, fields) => {
		const { create } = modelWith({ createsPerSecond: { limit: 0, ...asked } });
		const body = { error: expect.objectContaining(fields) as object };
		expect(() => create()).toThrow(expect.objectContaining({ status: 429, headers, body }));
		const status = modelWith({
			createStatus: { status: 429, body: {}, ...asked },
		});
		expect(status.create()).toMatchObject({ headers, body: JSON.stringify(fields) });
	});

	it('readsPerSecond: refuses what is read above it', async () => {
		const { create, read, pass } = modelWith({ readsPerSecond: { limit: 1, retryAfter: 1 } });
		create();
		expect(read()).toMatchObject({ state: 'PENDING' });
		expect(read).toThrow('read 1 tasks a second');
		await pass(1_000);
		expect(read()).toMatchObject({ state: 'SUCCESS' });
	});

	it('shapes: answers a create with the record, and calls back with an event around it', async () => {
		const callbackShape = { id: 'event-1', data: '$record' };
		const settings = { createShape: '$record', callbackShape, repeatWebhookUrl: true };
		const { create, pass, posted } = modelWith(settings);
		const record = { taskId: 'task-1', webhook_url: 'https://n8n.test/' };
		expect(JSON.parse(create().body)).toMatchObject({ ...record, state: 'PENDING' });
		await pass(1_000);
		const data = { ...record, state: 'SUCCESS' };
		expect(posted).toMatchObject([{ body: { id: 'event-1', data } }]);
	});

	it('createLagMs and endLagMs: the endpoint that reads knows later of a task, and of its end', async () => {
		const { create, read, pass, posted } = modelWith({ createLagMs: 300, endLagMs: 4_000 });
		create();
		await pass(299);
		expect(read).toThrow('There is no task task-1');
		await pass(4_999);
		expect(posted).toMatchObject([{ body: { taskId: 'task-1', state: 'SUCCESS' } }]);
		expect(read()).toMatchObject({ state: 'PENDING' });
		expect(read()).not.toHaveProperty('resultUrls');
		await pass(5_000);
		expect(read()).toMatchObject({ state: 'SUCCESS' });
	});

	it.each<[Settings, number, number[]]>([
		[{}, 200, [1000]],
		[{ callbackLost: true }, 200, []],
		[{ callbackCopies: 3 }, 200, [1000, 1000, 1000]],
		[{ callbackDelayMs: 60 }, 200, [1060]],
		[{ callbackBackoffMs: 20 }, 503, [1000, 1020, 1060, 1140]],
	])('%j, with %d for an answer, calls back at %j', async (settings, status, moments) => {
		const { create, pass, posted } = modelWith(settings, status);
		create();
		await pass(60_000);
		expect(posted.map(({ at }) => at)).toEqual(moments);
	});
});

describe('over HTTP', () => {
	let service: SimulatedService;
	beforeAll(async () => {
		service = await startService({ settings: { latencyMs: 60_000 } });
	});
	afterAll(async () => await service.close());

	const read = async (taskId: string) => {
		const headers = { authorization: `Bearer ${service.apiKey}` };
		return await (await fetch(`${service.url}/api/generate/${taskId}`, { headers })).json();
	};

	it.each(['lost', 'cut short'])('readWay: one answer of each task is %s', async (fate) => {
		const simulate = { readWay: { fate, times: 1 } };
		for (const prompt of ['x', 'y']) {
			const { taskId } = service.createTask(IMAGE_MODEL, { prompt, simulate });
			await expect(read(taskId)).rejects.toThrow();
			expect(await read(taskId)).toMatchObject({ state: 'PENDING' });
		}
	});

	it.each([
		['in use', () => new URL(service.url).port, /^Port \d+ of .* in use.*\n$/],
		['that is none', () => 'x', /--port takes a whole number/],
	])('does not start on a port %s, and says so', async (_what, port, message) => {
		const main = join(__dirname, 'main.ts');
		const child = spawn(process.execPath, ['--import', 'tsx', main, '--port', port()]);
		const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
		expect([code, errors]).toEqual([1, expect.stringMatching(message)]);
	});
});
