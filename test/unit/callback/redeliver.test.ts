import nock from '../../nock';

import { redeliver } from '../../../nodes/MediaGeneration/callback/delivery';
import { callbackAddress } from '../../../nodes/MediaGeneration/callback/callbackAddress';
import { clock, Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { API_KEY, executeContext } from '../../workflow/engine';
import { caught, visibleText } from '../support';

const HOST = 'https://n8n.example.com';
const PATH = '/webhook/3f1c2a/callback';
const ADDRESS = callbackAddress(HOST + PATH, API_KEY);
const TOKEN = new URL(ADDRESS).searchParams.get('token') ?? '';

const task = { taskId: 'task-1', state: 'SUCCESS' as const };

const send = async (signal?: AbortSignal) =>
	await redeliver(executeContext({}, signal), task, ADDRESS);

/** Why the trigger did not take it. */
const refusal = async () => await caught(async () => await send());

const called = () => nock(HOST).post(PATH).query(true);

it.each([
	['a trigger', { accepted: true, taskId: 'task-1' }, 'accepted'],
	['a trigger that has it', { accepted: false, reason: 'duplicate' }, 'duplicate'],
	['a trigger for others', { accepted: false, reason: 'event not selected' }, 'notSelected'],
	['a queue', 'OK', undefined],
	['a proxy', '', undefined],
	['n8n, for a workflow without this trigger', { message: 'Workflow was started' }, undefined],
	['what looks like it', { accepted: 'true' }, undefined],
])('is taken by %s with 200 and %j: %s', async (_who, answer, delivery) => {
	called().reply(200, answer);
	expect(await send()).toBe(delivery);
});

it('is not taken by a web page that answers in place of the trigger', async () => {
	called().reply(200, '<!DOCTYPE html><title>Log in</title>');
	const { message } = await refusal();
	expect(message).toBe(`A web page answers in place of the trigger: ${HOST}${PATH}`);
});

it('says that n8n may have no free place where the trigger does not answer in time', async () => {
	const context = executeContext();
	const now = jest.spyOn(clock, 'now').mockReturnValueOnce(0).mockReturnValue(30_000);
	called().replyWithError('timeout of 30000 ms exceeded');
	const error = await caught(async () => await redeliver(context, task, ADDRESS));
	now.mockRestore();
	expect(error).toMatchObject({
		message: `The trigger does not answer within 30 s: ${HOST}${PATH}`,
		description: expect.stringContaining('N8N_CONCURRENCY_PRODUCTION_LIMIT') as string,
	});
});

const PRODUCTION = "Check that 'Callback URL' is the production URL";
it.each([
	...[400, 413, 204, 302].map((statusCode): [number, string] => [statusCode, PRODUCTION]),
	[401, 'a credential with the same API key'],
	[404, 'Check that the workflow of the trigger is published'],
	[429, 'Try again later'],
	[500, 'Try again later'],
	[503, 'Try again later'],
])('that is answered HTTP %d is an error with the next step, and no token', async (...given) => {
	const [statusCode, next] = given;
	const said = statusCode === 204 ? '' : `Cannot POST ${PATH}?token=${TOKEN}`;
	called().reply(statusCode, statusCode === 503 ? { message: said } : said);
	const error = await refusal();
	const what = `The trigger did not take the callback of task task-1 (HTTP ${statusCode})`;
	expect(error).toMatchObject({
		message: said === '' ? what : `${what}: ${said.replace(TOKEN, '***')}`,
		description: expect.stringContaining(next) as string,
	});
	expect(visibleText(error)).not.toContain(TOKEN);
});

it('that nobody answers is an error with the address, and without the token', async () => {
	called().replyWithError(Object.assign(new Error('No'), { code: 'ECONNREFUSED' }));
	const error = await refusal();
	expect(error).toMatchObject({
		message: `The trigger cannot be reached: ${HOST}${PATH}`,
		description: expect.stringContaining('is published') as string,
	});
	expect(visibleText(error)).not.toContain(TOKEN);
});

it('ends with a stop of the execution', async () => {
	const stop = new AbortController();
	called().reply(async () => {
		stop.abort();
		return await new Promise<never>(() => {});
	});
	expect(await caught(async () => await send(stop.signal))).toBeInstanceOf(Stopped);
});

it('what a trigger has said shows no part of the token, also where it is cut', async () => {
	const said = `${'x'.repeat(460)} ?token=${TOKEN}`;
	called().reply(404, said);
	const { message } = await refusal();
	expect(message).toContain('x'.repeat(460));
	expect(message).not.toContain(TOKEN.slice(0, 8));
});
