import { spawn } from 'node:child_process';
import { join } from 'node:path';

import { client, IMAGE_MODEL, service, until, useService } from './support';

useService({ pathPrefix: '/v1', settings: { latencyMs: 60_000 } });

/** Runs the command line until it ends. */
function run(...options: string[]): Promise<{ code: number | null; errors: string }> {
	const main = join(__dirname, 'main.ts');
	const child = spawn(process.execPath, ['--import', 'tsx', main, ...options]);
	let errors = '';
	child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
	return new Promise((resolve) => child.on('close', (code) => resolve({ code, errors })));
}

describe('the page', () => {
	const origin = () => new URL(service.url).origin;

	it('is at the root of the API, without a key and outside the request log', async () => {
		const response = await fetch(origin());
		expect(response.headers.get('content-type')).toContain('text/html');
		for (const path of (await response.text()).match(/\/page\/[\w.]+/g) ?? []) {
			expect((await fetch(origin() + path)).status).toBe(200);
		}
		expect(service.requests).toEqual([]);
	});

	it('gets the account and its tasks, newest first', async () => {
		const first = service.createTask(IMAGE_MODEL, { prompt: '<b>bold</b>' });
		const second = service.createTask(IMAGE_MODEL, { prompt: 'second' });
		service.complete(first.taskId);
		const state = (await (await fetch(`${origin()}/page/state`)).json()) as object;
		expect(state).toMatchObject({
			url: service.url,
			balance: 99_984,
			reserved: 8,
			total: 2,
			unfinished: 1,
			tasks: [
				{ taskId: second.taskId, state: 'PENDING', results: [] },
				{
					taskId: first.taskId,
					state: 'SUCCESS',
					prompt: '<b>bold</b>',
					results: first.record.resultUrls,
				},
			],
		});
	});
});

describe('a task that is to be called back', () => {
	const shown = async () => {
		const response = await fetch(`${new URL(service.url).origin}/page/state`);
		const { tasks } = (await response.json()) as { tasks: Array<{ callback?: object }> };
		return tasks[0]?.callback;
	};
	const create = async (webhookUrl: string) =>
		await client.create(
			{ simulate: { latencyMs: 0, callbackRetries: 0 } },
			{ webhook_url: webhookUrl },
		);

	it('is shown with what the receiver answered', async () => {
		const host = new URL(service.url).host;
		await create(`http://${host}/nobody/home`);
		await until(async () => 'status' in ((await shown()) ?? {}));
		expect(await shown()).toEqual({ host, deliveries: 1, status: 404 });
	});

	it('is shown as not called back where the callback was lost', async () => {
		service.configure({ callbackLost: true });
		await create('http://127.0.0.1:9/lost');
		expect(await shown()).toEqual({ host: '127.0.0.1:9', deliveries: 0 });
		service.resetSettings();
	});
});

describe('the command line', () => {
	it('says in one line which port is in use, and exits with 1', async () => {
		const { port } = new URL(service.url);
		const { code, errors } = await run('--port', port);
		expect([code, errors]).toEqual([
			1,
			expect.stringMatching(new RegExp(`^Port ${port} of .* in use.*\n`)),
		]);
	});

	it('refuses a port that is none', async () => {
		const { code, errors } = await run('--port', 'x');
		expect([code, errors]).toEqual([1, expect.stringContaining('--port takes a number')]);
	});
});
