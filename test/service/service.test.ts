import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { json, text } from 'node:stream/consumers';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { type Listening, listen } from '../listen';
import { until } from '../n8n/until';
import { IMAGE_MODEL, VIDEO_MODEL } from '../workflow/support';
import { time, virtualTime } from '../workflow/time';
import { parseCreate } from './createRequest';
import { ofThisProcess } from './effects';
import { ServiceModel } from './model';
import { priceInCredits } from './prices';
import { type SimulatedService, startService } from './service';
import { type AskedWait, draw, type Settings } from './settings';
import { Switches } from './switches';

describe('a create (section 4.1)', () => {
	const input = { prompt: 'x' };

	it.each<[string, unknown]>([
		['a body that is no object', []],
		['no model', { input }],
		['a model without a provider', { model: 'image', input }],
		['no input', { model: IMAGE_MODEL }],
		['an input without a prompt', { model: IMAGE_MODEL, input: {} }],
		['a webhook_url that is none', { model: IMAGE_MODEL, input, webhook_url: 'x' }],
		...[
			{ x: 1 },
			{ outcome: 'DONE' },
			{ latencyMs: -1 },
			{ createStatus: { times: 2 } },
			{ createStatus: { status: 503, retryAftr: 1 } },
			{ readWay: 'slow' },
			{ mediaWay: { times: 1 } },
			{ readsPerSecond: { limit: 1, retryAfterIn: 'words' } },
		].map((simulate): [string, unknown] => [
			`the switches ${JSON.stringify(simulate)}`,
			{ model: IMAGE_MODEL, input: { prompt: 'x', simulate } },
		]),
	])('is refused with %s', (_what, body) => {
		expect(() => parseCreate(body)).toThrow(expect.objectContaining({ status: 400 }));
	});

	it.each<[number, ...Parameters<typeof priceInCredits>]>([
		[8, IMAGE_MODEL, {}, 1],
		[24, IMAGE_MODEL, {}, 3],
		[51.25, VIDEO_MODEL, {}, 1],
		[30.75, VIDEO_MODEL, { duration: 3 }, 1],
	])('costs %d credits for %s with %j and %d results', (credits, ...task) => {
		expect(priceInCredits(...task)).toBe(credits);
	});
});

describe('switches', () => {
	it('that are limited count over the service, or per task where they are its own', () => {
		const limited = { readStatus: { status: 500, times: 1 } };
		const switches = new Switches(limited);
		const refuses = (own: Settings, task: string) =>
			switches.refusal('read', own, () => task) !== undefined;
		expect([refuses({}, 'a'), refuses({}, 'b')]).toEqual([true, false]);
		expect([refuses(limited, 'a'), refuses(limited, 'b'), refuses(limited, 'a')]).toEqual([
			true,
			true,
			false,
		]);
		switches.configure(limited);
		expect([refuses({}, 'a'), refuses({}, 'a')]).toEqual([true, false]);
	});

	it.each<[string, object, string]>([
		['the first two', { times: 2 }, 'xx......'],
		['all but the first two', { after: 2 }, '..xxxxxx'],
		['the third and the fourth', { after: 2, times: 2 }, '..xx....'],
		['each third', { every: 3 }, '..x..x..'],
	])('may be for %s', (_which, when, due) => {
		const switches = new Switches({ readStatus: { status: 502, ...when } });
		const refusals = Array.from(due, () => (switches.refusal('read') ? 'x' : '.'));
		expect(refusals.join('')).toBe(due);
	});

	it('of a time take two limits', () => {
		expect(Math.abs(draw([20, 120]) - 70)).toBeLessThanOrEqual(50);
	});
});

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
		const create = (input: object = {}) =>
			model
				.create({
					model: IMAGE_MODEL,
					input: { prompt: 'x', ...input },
					webhook_url: 'https://n8n.test/',
				})
				.answer();
		const read = () => JSON.parse(model.read('task-1').answer().body) as object;
		/** Lets time pass until a moment, milliseconds. */
		const pass = async (ms: number) => await time.pass(ms - Date.now());
		return { model, create, read, pass, posted };
	}

	it.each([
		['SUCCESS', 8],
		['FAILURE', 0],
	] as const)('a task ends in %s, is billed %d then, and stays so', async (outcome, consumed) => {
		const { model, create, read, pass } = modelWith({ outcome });
		create();
		await pass(999);
		expect(read()).toMatchObject({ state: 'PENDING' });
		expect([model.store.balance, model.store.reserved]).toEqual([99_992, 8]);
		await pass(1_000);
		model.store.complete('task-1', outcome === 'SUCCESS' ? 'FAILURE' : 'SUCCESS');
		expect(read()).toMatchObject({ state: outcome, creditsConsumed: consumed });
		expect([model.store.balance, model.store.reserved]).toEqual([100_000 - consumed, 0]);
	});

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

	it('createStatus with `taken`: a page answers for a task that was created', () => {
		const page = { status: 503, retryAfter: 1, body: '<h1>Guru</h1>', taken: true, times: 1 };
		const { model, create } = modelWith({ createStatus: page });
		expect(create()).toMatchObject({ status: 503, type: 'text/html', body: '<h1>Guru</h1>' });
		expect([...model.store.tasks.keys()]).toEqual(['task-1']);
	});

	it.each<[unknown, unknown]>([
		[[''], ['']],
		[null, null],
		['$nothing', undefined],
		[
			{ first: '$1', second: '$2' },
			{ first: '/m/task-1/1.png', second: '/m/task-1/2.png' },
		],
		['["$1"]', '["/m/task-1/1.png"]'],
		['$1,\n$2', '/m/task-1/1.png,\n/m/task-1/2.png'],
		['$path', '/m/task-1/1.png'],
	])('resultShape: %j gives the links as %j', async (resultShape, resultUrls) => {
		const { create, read, pass } = modelWith({ resultShape, resultCount: 2 });
		create();
		await pass(1_000);
		const text = JSON.stringify(read()).replaceAll('https://media.test/media', '/m');
		expect(
			(JSON.parse(text.replaceAll('/media/', '/m/')) as { resultUrls?: unknown }).resultUrls,
		).toEqual(resultUrls);
	});

	it('readShape: a record stands inside something else', () => {
		const { create, read } = modelWith({ readShape: { code: 200, data: '$record' } });
		create();
		expect(read()).toMatchObject({ code: 200, data: { taskId: 'task-1', state: 'PENDING' } });
	});

	it('createStatus of a task: refuses the first of the requests with the same body', () => {
		const { create } = modelWith({});
		const simulate = { createStatus: { status: 500, times: 1 } };
		const statuses = ['a', 'b', 'a', 'b'].map((prompt) => create({ prompt, simulate }).status);
		expect(statuses).toEqual([500, 500, 200, 200]);
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

	it('a service whose tasks are forgotten calls back no more', async () => {
		const { model, create, pass, posted } = modelWith({ callbackDelayMs: 500 });
		create();
		await pass(1_200);
		model.clear();
		await pass(10_000);
		expect(posted).toEqual([]);
	});
});

describe('over HTTP', () => {
	let service: SimulatedService;
	let receiver: Listening | undefined;
	beforeAll(async () => {
		service = await startService({ settings: { latencyMs: 60_000 } });
	});
	afterAll(async () => {
		await service.close();
		await receiver?.close();
	});

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

	/** When the parts of an answer came, milliseconds after the first one, and all of them. */
	async function parts(path: string) {
		const { hostname, port } = new URL(service.url);
		const socket = connect(Number(port), hostname);
		const key = `Authorization: Bearer ${service.apiKey}`;
		socket.write(`GET ${path} HTTP/1.1\r\nHost: service\r\n${key}\r\n\r\n`);
		const times: number[] = [];
		let all = '';
		for await (const chunk of socket) {
			times.push(performance.now());
			all += String(chunk);
		}
		return { count: times.length, ms: times.at(-1)! - times[0]!, all };
	}

	it.each([
		['trickles', 19],
		['trickles from its head', 150],
	] as const)('creditsWay: the answer %s, and comes whole', async (fate, least) => {
		service.configure({ creditsWay: { fate, everyMs: 4 }, creditsShape: { balance: '$balance' } });
		const { count, ms, all } = await parts('/api/credits');
		service.resetSettings();
		expect(count).toBeGreaterThan(least * 0.5);
		expect(ms).toBeGreaterThanOrEqual(least * 3);
		expect(all).toMatch(/^HTTP\/1\.1 200 \r\n[^{]*\r\n\r\n\{"balance":\d+\}$/);
	});

	it('mediaWay: a file stands still in its middle', async () => {
		const { taskId } = service.createTask(IMAGE_MODEL, {
			prompt: 'x',
			simulate: { mediaWay: 'stalls' },
		});
		const answer = await fetch(`${service.mediaUrl}/media/${taskId}/1.png`);
		const length = Number(answer.headers.get('content-length'));
		const reader = answer.body!.getReader();
		let bytes = 0;
		while (bytes < Math.floor(length / 2)) bytes += (await reader.read()).value?.length ?? 0;
		const more = reader.read().then(() => 'more');
		expect(await Promise.race([more, pause(300, 'nothing')])).toBe('nothing');
		expect(bytes).toBe(Math.floor(length / 2));
		await reader.cancel();
	});

	it('posts the record, with what is asked for besides, once and then by hand', async () => {
		const bodies: unknown[] = [];
		receiver = await listen(async (request, response) => {
			bodies.push(await json(request));
			response.writeHead(204).end();
		});
		const { url } = receiver;
		const simulate = { repeatWebhookUrl: true, extraFields: { progress: 100 } };
		const { taskId } = service.createTask(IMAGE_MODEL, { prompt: 'x', simulate }, url);
		service.complete(taskId);
		await until('the callback', 5_000, () => service.callbacks[0]?.status !== undefined);
		await service.deliverCallback(taskId, { copies: 2 });
		const record = await read(taskId);
		const authorization = `Bearer ${service.apiKey}`;
		const logged = { host: 'api', method: 'GET', path: `/api/generate/${taskId}`, authorization };
		expect(service.requests.at(-1)).toMatchObject(logged);
		expect(record).toMatchObject({ state: 'SUCCESS', progress: 100, webhook_url: url });
		expect(bodies).toEqual([record, record, record]);
		expect(service.callbacks).toEqual(Array(3).fill({ taskId, url, status: 204 }));
	});

	it('closes with work under way, and waits for none of it', async () => {
		const busy = await startService({ settings: { readDelayMs: 60_000 } });
		const { taskId } = busy.createTask(IMAGE_MODEL, { prompt: 'x' });
		const headers = { authorization: `Bearer ${busy.apiKey}` };
		const answer = fetch(`${busy.url}/api/generate/${taskId}`, { headers }).catch(() => 'ended');
		await until('the read', 5_000, () => busy.requests.length === 1);
		await busy.close();
		expect(await answer).toBe('ended');
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
