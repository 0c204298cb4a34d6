import { startService } from './service';
import {
	Client,
	client,
	IMAGE_MODEL,
	service,
	startReceiver,
	until,
	useService,
	VIDEO_MODEL,
} from './support';

useService({ settings: { latencyMs: 10 } });

const finished = async (taskId: string) => {
	await until(async () => (await client.read(taskId)).state !== 'PENDING');
	return await client.read(taskId);
};

describe('creating a task (section 4.1)', () => {
	it('answers with the task id, a string', async () => {
		const response = await client.post({ model: IMAGE_MODEL, input: { prompt: 'A lighthouse' } });
		expect(response.status).toBe(200);
		expect(await response.json()).toEqual({ taskId: expect.any(String) });
	});

	it('accepts other models behind the same endpoint', async () => {
		const taskId = await client.create({}, { model: 'othervendor/some-model' });
		expect((await finished(taskId)).state).toBe('SUCCESS');
	});

	it.each([
		['a body that is no object', []],
		['no model', { input: { prompt: 'x' } }],
		['a model without a provider', { model: 'image', input: { prompt: 'x' } }],
		['no input', { model: IMAGE_MODEL }],
		['an input without a prompt', { model: IMAGE_MODEL, input: {} }],
		[
			'a webhook_url that is none',
			{ model: IMAGE_MODEL, input: { prompt: 'x' }, webhook_url: 'x' },
		],
		[
			'a switch that does not exist',
			{ model: IMAGE_MODEL, input: { prompt: 'x', simulate: { x: 1 } } },
		],
	])('refuses %s with 400 and a reason', async (_what, body) => {
		const response = await client.post(body);
		expect(response.status).toBe(400);
		expect(await response.json()).toEqual({
			error: { code: expect.any(String), message: expect.any(String) },
		});
	});

	it('refuses a body that is not JSON with a JSON error', async () => {
		const response = await client.request('/api/generate', { method: 'POST', body: '{' });
		expect(response.status).toBe(400);
		expect(await response.json()).toHaveProperty('error.message');
	});
});

describe('reading a task (section 4.2)', () => {
	it('goes from PENDING, without results, to SUCCESS, with absolute result URLs', async () => {
		service.configure({ latencyMs: 60_000 });
		const taskId = await client.create();
		const pending = await client.read(taskId);
		expect(pending).toMatchObject({ taskId, state: 'PENDING', model: IMAGE_MODEL });
		expect(pending).not.toHaveProperty('resultUrls');
		service.complete(taskId);
		const record = await client.read(taskId);
		expect(record.state).toBe('SUCCESS');
		expect(record.resultUrls).toHaveLength(1);
		expect(record.resultUrls?.[0]).toMatch(`${service.mediaUrl}/media/${taskId}/`);
		expect(Date.parse(record.completedAt ?? '')).toBeGreaterThanOrEqual(
			Date.parse(record.createdAt),
		);
	});

	it('gives the prompt metadata back as it was sent', async () => {
		const taskId = await client.create({ prompt: 'Zażółć 🌊', style: { tone: 'calm' } });
		expect((await client.read(taskId)).input).toEqual({
			prompt: 'Zażółć 🌊',
			style: { tone: 'calm' },
		});
	});

	it('keeps a finished task readable, and counts the reads', async () => {
		const taskId = await client.create();
		const first = await finished(taskId);
		expect(await client.read(taskId)).toEqual(first);
		expect(service.tasks.get(taskId)?.reads).toBeGreaterThanOrEqual(3);
	});

	it('answers 404 for a task it does not know', async () => {
		const response = await client.request('/api/generate/nobody');
		expect(response.status).toBe(404);
		expect(await response.json()).toHaveProperty('error.message');
	});

	it('leaves a terminal task as it is', async () => {
		service.configure({ latencyMs: 60_000 });
		const taskId = await client.create();
		service.complete(taskId, 'FAILURE');
		service.complete(taskId, 'SUCCESS');
		expect((await client.read(taskId)).state).toBe('FAILURE');
	});
});

describe('credits (sections 1 and 4.3)', () => {
	it('takes 8 credits for an image: 0.08 USD', async () => {
		const record = await finished(await client.create());
		expect(record.creditsConsumed).toBe(8);
		expect(await client.credits()).toEqual({ balance: 99_992, reserved: 0 });
	});

	it('takes 10.25 credits for each second of a video, which has 5 unless the input says otherwise', async () => {
		const five = await finished(await client.create({}, { model: VIDEO_MODEL }));
		expect(five.creditsConsumed).toBe(51.25);
		const three = await finished(await client.create({ duration: 3 }, { model: VIDEO_MODEL }));
		expect(three.creditsConsumed).toBe(30.75);
		expect(service.balance).toBe(100_000 - 51.25 - 30.75);
	});

	it('holds the credits back while the task is unfinished', async () => {
		service.configure({ latencyMs: 60_000 });
		await client.create();
		expect(await client.credits()).toEqual({ balance: 99_992, reserved: 8 });
	});

	it('refunds a failed task, which is billed at 0', async () => {
		const record = await finished(await client.create({ simulate: { outcome: 'FAILURE' } }));
		expect(record).toMatchObject({
			state: 'FAILURE',
			creditsConsumed: 0,
			error: { message: expect.any(String) },
		});
		expect(record).not.toHaveProperty('resultUrls');
		expect(await client.credits()).toEqual({ balance: 100_000, reserved: 0 });
	});

	it('refuses a task with 402 when the balance is too low', async () => {
		const poor = await startService({ credits: 10, settings: { latencyMs: 60_000 } });
		const poorClient = new Client(poor);
		await poorClient.create();
		const response = await poorClient.post({ model: IMAGE_MODEL, input: { prompt: 'x' } });
		expect(response.status).toBe(402);
		expect(poor.tasks.size).toBe(1);
		await poor.close();
	});
});

describe('authentication (section 5)', () => {
	const paths = [
		['POST', '/api/generate'],
		['GET', '/api/generate/some-task'],
		['GET', '/api/credits'],
	] as const;

	it.each(paths)('refuses %s %s with a wrong key, and with none', async (method, path) => {
		for (const authorization of ['Bearer sk-live-wrong', '']) {
			const response = await client.request(path, { method, headers: { authorization } });
			expect(response.status).toBe(401);
			expect(await response.json()).toHaveProperty('error.message');
		}
	});

	it('follows when the key changes', async () => {
		const oldKey = service.apiKey;
		service.rotateApiKey('sk-live-new');
		const headers = { authorization: `Bearer ${oldKey}` };
		expect((await client.request('/api/credits', { headers })).status).toBe(401);
		expect((await client.request('/api/credits')).status).toBe(200);
		service.rotateApiKey(oldKey);
	});
});

describe('callbacks (section 6)', () => {
	it.each(['SUCCESS', 'FAILURE'] as const)('posts the task record on %s', async (outcome) => {
		const receiver = await startReceiver();
		const taskId = await client.create({ simulate: { outcome } }, { webhook_url: receiver.url });
		await until(() => receiver.bodies.length === 1);
		expect(receiver.bodies[0]).toEqual(await client.read(taskId));
		expect(receiver.bodies[0]?.state).toBe(outcome);
		expect(service.callbacks).toMatchObject([{ taskId, url: receiver.url, status: 200 }]);
		await receiver.close();
	});

	it('sends none for a task without a webhook_url', async () => {
		await finished(await client.create());
		expect(service.callbacks).toEqual([]);
	});

	it('notes why a callback could not be delivered, and the task stays readable', async () => {
		const simulate = { callbackRetries: 0 };
		const taskId = await client.create({ simulate }, { webhook_url: 'http://127.0.0.1:9/' });
		await until(() => service.callbacks[0]?.error !== undefined);
		expect((await client.read(taskId)).state).toBe('SUCCESS');
	});

	it('can be delivered again by hand, in copies, to any address, with any body', async () => {
		const receiver = await startReceiver();
		const { taskId } = service.createTask(IMAGE_MODEL, { prompt: 'x' });
		const body = { data: { task_id: taskId } };
		const sent = await service.deliverCallback(taskId, { url: receiver.url, body, copies: 3 });
		expect(sent.map(({ status }) => status)).toEqual([200, 200, 200]);
		expect(receiver.bodies).toEqual([body, body, body]);
		await receiver.close();
	});
});

describe('the service itself', () => {
	it('serves the API below a path prefix', async () => {
		const prefixed = await startService({ pathPrefix: '/v1/' });
		expect(prefixed.url).toMatch(/:\d+\/v1$/);
		expect((await new Client(prefixed).request('/api/credits')).status).toBe(200);
		const bare = prefixed.url.replace('/v1', '/api/credits');
		expect((await fetch(bare)).status).toBe(404);
		await prefixed.close();
	});

	it('names the port that is already in use', async () => {
		const port = Number(new URL(service.url).port);
		await expect(startService({ port })).rejects.toThrow(
			`Port ${port} of 127.0.0.1 is already in use`,
		);
		await expect(startService({ mediaPort: port })).rejects.toThrow(
			`Port ${port} of 127.0.0.1 is already in use`,
		);
	});

	it('closes with connections kept alive and work under way, and waits for none of it', async () => {
		const busy = await startService({ settings: { latencyMs: 60_000, readDelayMs: 60_000 } });
		const busyClient = new Client(busy);
		const taskId = await busyClient.create();
		const read = busyClient.read(taskId).catch(() => 'ended');
		await until(() => busy.requests.length === 2);
		await busy.close();
		expect(await read).toBe('ended');
	});

	it('logs every request with its task, status, key and connection', async () => {
		const taskId = await client.create();
		await client.read(taskId);
		await fetch(`${service.url}/elsewhere`);
		const authorization = `Bearer ${service.apiKey}`;
		await until(() => service.requests[2]?.status !== undefined);
		expect(service.requests).toMatchObject([
			{ method: 'POST', path: '/api/generate', taskId, status: 200, authorization, host: 'api' },
			{ method: 'GET', path: `/api/generate/${taskId}`, taskId, status: 200, authorization },
			{ method: 'GET', path: '/elsewhere', status: 404 },
		]);
		expect(service.requests[0]?.remotePort).toBeGreaterThan(0);
		expect(service.requests[2]).not.toHaveProperty('authorization');
	});
});
