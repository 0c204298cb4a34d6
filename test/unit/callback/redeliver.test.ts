import nock from '../../nock';

import { callbackAddress } from '../../../nodes/MediaGeneration/callback/callbackUrl';
import { redeliver } from '../../../nodes/MediaGeneration/callback/redeliver';
import type { FinishedTask } from '../../../nodes/MediaGeneration/service/taskRecord';
import { Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { API_KEY, executeContext } from '../../workflow/engine';
import { caught, visibleText } from '../support';

const HOST = 'https://n8n.example.com';
const PATH = '/webhook/3f1c2a/callback';
const ADDRESS = callbackAddress(HOST + PATH, API_KEY);
const TOKEN = new URL(ADDRESS).searchParams.get('token') ?? '';

const task = (record: FinishedTask['record'] = {}): FinishedTask => ({
	taskId: 'task-1',
	state: 'SUCCESS',
	resultUrls: [],
	creditsConsumed: 8,
	record,
});

const send = async (of = task(), signal?: AbortSignal) =>
	await redeliver(
		executeContext(
			{ node: {}, credential: { baseUrl: 'https://api.example.com', apiKey: API_KEY } },
			signal,
		),
		of,
		ADDRESS,
	);

/** Why the trigger did not take it. */
const refusal = async () => await caught(send);

interface Received {
	body: string;
	query: URLSearchParams;
	headers: Record<string, unknown>;
}

/** A trigger that answers so. */
function trigger(status: number, answer: string | object = '') {
	const received: Received[] = [];
	nock(HOST)
		.post(PATH)
		.query(true)
		.reply(function (uri, body) {
			const query = new URL(uri, HOST).searchParams;
			received.push({ body: JSON.stringify(body), query, headers: this.req.headers });
			return [status, answer];
		});
	return received;
}

describe('the callback', () => {
	it('goes to the trigger with the token and the task id', async () => {
		const received = trigger(200, { accepted: true });
		await send();
		expect(received).toHaveLength(1);
		expect(received[0]?.query.get('token')).toBe(TOKEN);
		expect(JSON.parse(received[0]?.body ?? '')).toEqual({ taskId: 'task-1', state: 'SUCCESS' });
	});

	it('is not taken by a web page that answers in place of the trigger', async () => {
		trigger(200, '<!DOCTYPE html><title>Log in</title>');
		expect((await refusal()).message).toBe(
			`A web page answers in place of the trigger: ${HOST}${PATH}`,
		);
	});

	it.each([
		['a queue', 'OK'],
		['a proxy', ''],
		['another API', { ok: true }],
	])('is taken by %s, and nobody knows what becomes of it', async (_what, answer) => {
		trigger(200, answer);
		expect(await send()).toBeUndefined();
	});

	it('carries no API key', async () => {
		const received = trigger(200);
		await send();
		expect(JSON.stringify([received, ADDRESS])).not.toContain(API_KEY);
		expect(received[0]?.headers).not.toHaveProperty('authorization');
	});

	it('is small, however large the record is', async () => {
		const received = trigger(200);
		await send(task({ image: 'x'.repeat(5 * 1024 * 1024) }));
		expect(received[0]?.body.length).toBeLessThan(1024);
	});

	it.each([
		[{ accepted: true, taskId: 'task-1' }, 'accepted'],
		[{ accepted: false, reason: 'duplicate' }, 'duplicate'],
		[{ accepted: false, reason: 'event not selected' }, 'notSelected'],
	])('that is answered 200 and %j was delivered: %s', async (body, delivery) => {
		trigger(200, body);
		expect(await send()).toBe(delivery);
	});
});

describe('a trigger that does not take it', () => {
	it.each([
		[400, "Check that 'Callback URL' is the production URL"],
		[401, 'a credential with the same API key'],
		[404, 'Check that the workflow of the trigger is published'],
		[413, "Check that 'Callback URL' is the production URL"],
		[500, "Check that 'Callback URL' is the production URL"],
		[503, 'Try again later'],
		[204, "Check that 'Callback URL' is the production URL"],
		[302, "Check that 'Callback URL' is the production URL"],
	])('with HTTP %d is told with the next step', async (statusCode, next) => {
		trigger(statusCode, { message: 'So it is' });
		expect(await refusal()).toMatchObject({
			message: expect.stringMatching(
				new RegExp(`did not take the callback of task task-1 \\(HTTP ${statusCode}\\)`),
			) as string,
			description: expect.stringContaining(next) as string,
		});
	});

	it('is quoted, if it says something', async () => {
		trigger(503, { message: 'The task could not be read' });
		const { message } = await refusal();
		expect(message).toContain('(HTTP 503): The task could not be read');
	});

	it('because nobody answers there, is told with the address without the token', async () => {
		nock(HOST)
			.post(PATH)
			.query(true)
			.replyWithError(Object.assign(new Error('No'), { code: 'ECONNREFUSED' }));
		const error = await refusal();
		expect(error).toMatchObject({
			message: `The trigger cannot be reached: ${HOST}${PATH}`,
			description: expect.stringContaining('is published') as string,
		});
		expect(visibleText(error)).not.toContain(TOKEN);
	});

	it.each([401, 404, 503, 500])('with HTTP %d shows no token', async (status) => {
		trigger(status, `Cannot POST ${PATH}?token=${TOKEN}`);
		expect(visibleText(await refusal())).not.toContain(TOKEN);
	});
});

it('ends with a stop of the execution', async () => {
	const stop = new AbortController();
	nock(HOST)
		.post(PATH)
		.query(true)
		.reply(async () => {
			stop.abort();
			return await new Promise<never>(() => {});
		});
	expect(await caught(async () => await send(task(), stop.signal))).toBeInstanceOf(Stopped);
});
