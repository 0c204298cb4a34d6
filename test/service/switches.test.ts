import { client, IMAGE_MODEL, service, startReceiver, until, useService } from './support';

useService({ settings: { latencyMs: 5 } });

const finishedTask = async (input: object = {}) => {
	const taskId = await client.create(input);
	service.complete(taskId);
	return taskId;
};
const readStatuses = async (taskId: string, times: number) => {
	const statuses: number[] = [];
	for (let read = 0; read < times; read++) {
		statuses.push((await client.request(`/api/generate/${taskId}`)).status);
	}
	return statuses;
};

describe('setting switches', () => {
	const settings = (init?: RequestInit) => client.request('/../control/settings', init);
	const put = (body: unknown) => settings({ method: 'PUT', body: JSON.stringify(body) });

	it('merges over HTTP, and null takes a switch back', async () => {
		expect(await (await put({ outcome: 'FAILURE', resultCount: 2 })).json()).toEqual({
			latencyMs: 5,
			outcome: 'FAILURE',
			resultCount: 2,
		});
		await put({ outcome: null });
		expect(await (await settings()).json()).toEqual({ latencyMs: 5, resultCount: 2 });
		expect(await (await settings({ method: 'DELETE', body: '{}' })).json()).toEqual({
			latencyMs: 5,
		});
	});

	it('refuses a switch that does not exist, and a value that a switch does not take', async () => {
		for (const body of [{ latency: 5 }, { outcome: 'DONE' }, { createStatus: { times: 2 } }, []]) {
			const response = await put(body);
			expect(response.status).toBe(400);
			expect(await response.json()).toHaveProperty('error.message');
		}
		expect(() => service.configure({ latencyMs: -1 })).toThrow('"latencyMs" takes');
	});

	it('lets the switches of a single task win over those of the service', async () => {
		service.configure({ outcome: 'FAILURE' });
		const taskId = await finishedTask({ simulate: { outcome: 'SUCCESS' } });
		expect((await client.read(taskId)).state).toBe('SUCCESS');
		expect((await client.read(await finishedTask())).state).toBe('FAILURE');
	});
});

describe('the life of a task', () => {
	it('latencyMs: lasts as long as it says, or within two limits', async () => {
		const exact = await client.create({ simulate: { latencyMs: 80 } });
		const between = await client.create({ simulate: { latencyMs: [20, 120] } });
		await until(() => [exact, between].every((id) => service.tasks.get(id)?.completedAt));
		const lasted = (id: string) => {
			const task = service.tasks.get(id);
			return (task?.completedAt ?? 0) - (task?.createdAt ?? 0);
		};
		expect(lasted(exact)).toBeGreaterThanOrEqual(78);
		expect(lasted(between)).toBeGreaterThanOrEqual(18);
	});

	it('outcome and failureMessage: fails with the message', async () => {
		const taskId = await finishedTask({
			simulate: { outcome: 'FAILURE', failureMessage: 'Unsafe.' },
		});
		expect(await client.read(taskId)).toMatchObject({
			state: 'FAILURE',
			error: { message: 'Unsafe.' },
		});
	});

	it('taskFails: fails so often, and then succeeds, whatever is ordered besides', async () => {
		const states = [];
		for (const prompt of ['a', 'b', 'a', 'a']) {
			const simulate = { taskFails: { times: 1 } };
			const taskId = await finishedTask({ prompt, simulate });
			states.push((await client.read(taskId)).state);
		}
		expect(states).toEqual(['FAILURE', 'FAILURE', 'SUCCESS', 'SUCCESS']);
	});

	it('resultCount: makes several results, each of them billed', async () => {
		const record = await client.read(await finishedTask({ simulate: { resultCount: 3 } }));
		expect(new Set(record.resultUrls).size).toBe(3);
		expect(record.creditsConsumed).toBe(24);
	});

	it('concurrencyLimit: answers 429 to what is above it, until a task has ended', async () => {
		service.configure({ latencyMs: 60_000, concurrencyLimit: { limit: 2, retryAfter: 3 } });
		const first = await client.create();
		await client.create();
		const body = { model: IMAGE_MODEL, input: { prompt: 'x' } };
		const refused = await client.post(body);
		expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3']);
		service.complete(first);
		expect((await client.post(body)).status).toBe(200);
	});
});

describe('refusals', () => {
	it('createStatus: refuses as often as it says, creates nothing, and then accepts', async () => {
		service.configure({ createStatus: { status: 503, times: 2, retryAfter: 1 } });
		const body = { model: IMAGE_MODEL, input: { prompt: 'x' } };
		const answers = [await client.post(body), await client.post(body), await client.post(body)];
		expect(answers.map(({ status }) => status)).toEqual([503, 503, 200]);
		expect(answers[0]?.headers.get('retry-after')).toBe('1');
		expect(service.tasks.size).toBe(1);
		expect(service.balance).toBe(99_992);
	});

	it('createStatus of a task: counts the requests with the same body', async () => {
		const body = (prompt: string) => ({
			model: IMAGE_MODEL,
			input: { prompt, simulate: { createStatus: { status: 500, times: 1 } } },
		});
		const statuses: number[] = [];
		for (const prompt of ['a', 'b', 'a', 'b'])
			statuses.push((await client.post(body(prompt))).status);
		expect(statuses).toEqual([500, 500, 200, 200]);
	});

	it('readStatus: of a task is counted by task, of the service over all', async () => {
		const simulate = { readStatus: { status: 502, times: 1 } };
		const [first, second] = [await finishedTask({ simulate }), await finishedTask({ simulate })];
		expect(await readStatuses(first, 2)).toEqual([502, 200]);
		expect(await readStatuses(second, 2)).toEqual([502, 200]);
		service.configure({ readStatus: { status: 429, times: 1 } });
		const [third, fourth] = [await finishedTask(), await finishedTask()];
		expect([await readStatuses(third, 1), await readStatuses(fourth, 1)]).toEqual([[429], [200]]);
	});

	it('starts counting again when a switch is set again', async () => {
		const taskId = await finishedTask();
		for (let round = 0; round < 2; round++) {
			service.configure({ readStatus: { status: 500, times: 1 } });
			expect(await readStatuses(taskId, 2)).toEqual([500, 200]);
		}
	});

	it('readStatus: may carry headers, such as those of a redirect', async () => {
		const headers = { location: 'http://127.0.0.1:9/' };
		const taskId = await finishedTask({ simulate: { readStatus: { status: 302, headers } } });
		const response = await client.request(`/api/generate/${taskId}`, { redirect: 'manual' });
		expect([response.status, response.headers.get('location')]).toEqual([302, headers.location]);
	});

	it('creditsStatus: takes a bare number, or a body of any kind', async () => {
		service.configure({ creditsStatus: 500 });
		const plain = await client.request('/api/credits');
		expect([plain.status, plain.headers.get('content-type')]).toEqual([
			500,
			expect.stringContaining('json'),
		]);
		service.configure({
			creditsStatus: { status: 502, body: '<h1>Bad</h1>', contentType: 'text/html' },
		});
		const page = await client.request('/api/credits');
		expect([page.headers.get('content-type'), await page.text()]).toEqual([
			expect.stringContaining('text/html'),
			'<h1>Bad</h1>',
		]);
	});
});

describe('accidents of the connection', () => {
	it('createDelayMs and readDelayMs: hold the answer back', async () => {
		const start = Date.now();
		const taskId = await client.create({ simulate: { createDelayMs: 60, readDelayMs: 60 } });
		await client.read(taskId);
		expect(Date.now() - start).toBeGreaterThanOrEqual(116);
	});

	it('createLost: creates the task, and the answer never comes', async () => {
		service.configure({ createLost: { times: 1 } });
		await expect(client.create()).rejects.toThrow();
		expect(service.tasks.size).toBe(1);
		expect(service.requests[0]).not.toHaveProperty('status');
		await client.create();
		expect(service.tasks.size).toBe(2);
	});

	it('readDropped: ends the connection on a read', async () => {
		const taskId = await finishedTask({ simulate: { readDropped: { times: 1 } } });
		await expect(client.read(taskId)).rejects.toThrow();
		expect((await client.read(taskId)).state).toBe('SUCCESS');
	});

	it('readCutShort: ends the body in the middle', async () => {
		const taskId = await finishedTask({ simulate: { readCutShort: { times: 1 } } });
		const response = await client.request(`/api/generate/${taskId}`);
		expect(response.status).toBe(200);
		await expect(response.text()).rejects.toThrow();
		expect((await client.read(taskId)).state).toBe('SUCCESS');
	});
});

describe('unusual answers', () => {
	it('repeatWebhookUrl: the record, and a create answered with it, has the address', async () => {
		const webhook_url = 'http://127.0.0.1:1/webhook/x/callback?token=1';
		const simulate = { repeatWebhookUrl: true, createShape: 'record', callbackLost: true };
		const input = { prompt: 'x', simulate };
		const response = await client.post({ model: IMAGE_MODEL, input, webhook_url });
		const created = (await response.json()) as { taskId: string };
		expect(created).toMatchObject({ webhook_url });
		expect(await client.read(created.taskId)).toMatchObject({ webhook_url });
	});

	it('stateCase, omitResultUrls and extraFields: change the record, in callbacks as well', async () => {
		const receiver = await startReceiver();
		const simulate = { stateCase: 'lower', omitResultUrls: true, extraFields: { progress: 100 } };
		const taskId = await client.create({ simulate }, { webhook_url: receiver.url });
		await until(() => receiver.bodies.length === 1);
		const record = await client.read(taskId);
		expect(record).toMatchObject({ state: 'success', progress: 100 });
		expect(record).not.toHaveProperty('resultUrls');
		expect(receiver.bodies).toEqual([record]);
		await receiver.close();
	});

	it.each([
		['flat', (id: string) => ({ taskId: id })],
		['wrapped', (id: string) => ({ code: 200, message: 'success', data: { taskId: id } })],
		['task', (id: string) => ({ task: { taskId: id } })],
		['record', (id: string) => expect.objectContaining({ taskId: id, state: 'PENDING' })],
		['snake', (id: string) => ({ task_id: id })],
		['id', (id: string) => ({ id })],
		['missing', () => ({})],
		['array', (id: string) => [id]],
	])('createShape %s: answers a create in that shape', async (createShape, expected) => {
		const input = { prompt: 'x', simulate: { createShape, latencyMs: 60_000 } };
		const response = await client.post({ model: IMAGE_MODEL, input });
		const [taskId = ''] = service.tasks.keys();
		expect(await response.json()).toEqual(expected(taskId));
	});

	it.each([
		['text', 'text/plain', 'accepted'],
		['html', 'text/html', '<!doctype html>'],
	])('createShape %s: answers a create with what is not JSON', async (createShape, type, start) => {
		const response = await client.post({
			model: IMAGE_MODEL,
			input: { prompt: 'x', simulate: { createShape } },
		});
		expect(response.headers.get('content-type')).toContain(type);
		expect((await response.text()).startsWith(start)).toBe(true);
	});

	it('creditsShape: answers with any body, in which $balance stands for the balance', async () => {
		const credits = async () => (await client.request('/api/credits')).json();
		service.configure({ creditsShape: { data: { credits: ['$balance'], plan: 'pro' } } });
		expect(await credits()).toEqual({ data: { credits: [100_000], plan: 'pro' } });
		service.configure({ creditsShape: '$balance' });
		expect(await credits()).toBe(100_000);
		service.configure({ creditsShape: [] });
		expect(await credits()).toEqual([]);
	});
});

describe('callbacks', () => {
	let receiver: Awaited<ReturnType<typeof startReceiver>>;
	let answer: (index: number) => number;
	beforeEach(async () => {
		answer = () => 200;
		receiver = await startReceiver((index) => answer(index));
	});
	afterEach(async () => await receiver.close());

	const callbackOf = (simulate: object, url: string) =>
		client.create({ simulate }, { webhook_url: url });

	it('callbackCopies: delivers duplicates at once', async () => {
		await callbackOf({ callbackCopies: 5 }, receiver.url);
		await until(() => receiver.bodies.length === 5);
		expect(new Set(receiver.bodies.map(({ taskId }) => taskId)).size).toBe(1);
	});

	it('callbackLost: never sends it', async () => {
		const lost = await callbackOf({ callbackLost: true }, receiver.url);
		const sent = await callbackOf({ latencyMs: 40 }, receiver.url);
		await until(() => receiver.bodies.length === 1);
		expect(receiver.bodies[0]?.taskId).toBe(sent);
		expect((await client.read(lost)).state).toBe('SUCCESS');
	});

	it('callbackDelayMs: sends it late', async () => {
		const taskId = await callbackOf({ callbackDelayMs: 60 }, receiver.url);
		await until(() => receiver.bodies.length === 1);
		const completedAt = service.tasks.get(taskId)?.completedAt ?? Infinity;
		expect(service.callbacks[0]?.at).toBeGreaterThanOrEqual(completedAt + 58);
	});

	it('callbackRetries: tries again, later each time, until the receiver accepts', async () => {
		answer = (index) => (index < 2 ? 503 : 200);
		await callbackOf({ callbackRetries: 5, callbackBackoffMs: 20 }, receiver.url);
		await until(() => service.callbacks[2]?.status !== undefined);
		const [first, second, third] = service.callbacks;
		expect(service.callbacks.map(({ status }) => status)).toEqual([503, 503, 200]);
		expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(18);
		expect((third?.at ?? 0) - (second?.at ?? 0)).toBeGreaterThanOrEqual(38);
	});

	it('callbackRetries: gives up after as many as it says', async () => {
		answer = () => 500;
		await callbackOf({ callbackRetries: 1, callbackBackoffMs: 5 }, receiver.url);
		await until(() => service.callbacks[1]?.status !== undefined);
		await new Promise((resolve) => setTimeout(resolve, 40));
		expect(service.callbacks).toHaveLength(2);
	});
});
