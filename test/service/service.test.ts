import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { join } from 'node:path';

import { IMAGE_MODEL } from '../workflow/support';
import { time, virtualTime } from '../workflow/time';
import { ofThisProcess } from './effects';
import { ServiceModel } from './model';
import { startService } from './service';
import type { AskedWait, Settings } from './settings';

describe('over time', () => {
	virtualTime(0);

	/** A service without HTTP, in which every task is called back, by an address that answers with `status`. */
	function modelWith(settings: Settings, status = 200) {
		const posted: number[] = [];
		let tasks = 0;
		const model = new ServiceModel(
			{
				...ofThisProcess,
				newTaskId: () => `task-${++tasks}`,
				async post() {
					posted.push(Date.now());
					return status;
				},
			},
			{ settings: { latencyMs: 1_000, ...settings }, mediaUrl: () => 'https://media.test' },
		);
		const order = { model: IMAGE_MODEL, input: { prompt: 'x' }, webhook_url: 'https://n8n.test/' };
		const create = () => model.create(order).answer();
		/** Lets time pass until a moment, milliseconds. */
		const pass = async (ms: number) => await time.pass(ms - Date.now());
		return { create, pass, posted };
	}

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
		const status = modelWith({ createStatus: { status: 429, body: {}, ...asked } });
		expect(status.create()).toMatchObject({ headers, body: JSON.stringify(fields) });
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
		expect(posted).toEqual(moments);
	});
});

describe('the command', () => {
	it.each([
		['in use', true, /^Port \d+ of .* in use.*\n$/],
		['that is none', false, /--port takes a whole number/],
	])('does not start on a port %s, and says so', async (_what, isInUse, message) => {
		const service = await startService();
		const port = isInUse ? new URL(service.url).port : 'x';
		const main = join(__dirname, 'main.ts');
		const child = spawn(process.execPath, ['--import', 'tsx', main, '--port', port]);
		const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
		expect([code, errors]).toEqual([1, expect.stringMatching(message)]);
		await service.close();
	});
});
