import nock from '../nock';

import { callbackToken } from '../../nodes/MediaGeneration/shared/addresses';
import { API_KEY, executeContext, SERVICE, TRIGGER, TRIGGER_PATH } from './engine';
import { time, virtualTime } from './time';
import { type Callback, deliver as deliverTo, outcome } from './webhook';
import { MINUTE } from '../durations';

/** What the trigger answers to a callback, and which callbacks start the workflow. */

const RECORD = {
	taskId: 'task-1',
	state: 'SUCCESS',
	resultUrls: ['https://m.example.com/1.png'],
	creditsConsumed: 8,
};
const TRY_AGAIN = { status: 503, retryAfter: '5' };

/** The trigger of the present test: what the process remembers of others must not reach it. */
let node: string;
let tests = 0;
const deliver = (callback: Callback = {}) => deliverTo({ node, ...callback });
const came = async (callback?: Callback) => await outcome(deliver(callback));

const asked = () => nock(SERVICE).get('/api/generate/task-1');
/** The service answers one read of the task with this. */
const service = (record: object = RECORD, status = 200) => asked().reply(status, record);

const free = (callback: Callback): Callback => ({
	...callback,
	parameters: { options: { requireToken: false } },
});
const REFERENCE = 'row 7\n"ü🙂"&=';
const referring = {
	query: { reference: REFERENCE },
	token: callbackToken(TRIGGER_PATH, API_KEY, REFERENCE),
};

virtualTime();
beforeEach(() => {
	node = `trigger-${++tests}`;
});

const BEHIND_A_PROXY = '/inside/webhook/3f1c2a/callback';
it.each<[string, Callback, object?]>([
	[
		'that says otherwise: with the record that the service has',
		{ body: { taskId: 'task-1', state: 'FAILURE', resultUrls: ['https://evil.example.com'] } },
	],
	[
		'that n8n has not parsed',
		{ body: {}, rawBody: Buffer.from(JSON.stringify({ data: { taskId: 'task-1' } })) },
	],
	['of exactly 1 MiB', { rawBody: Buffer.alloc(1024 ** 2) }],
	[
		'with a token for the path of this very request, behind a proxy that cuts a prefix',
		{ path: BEHIND_A_PROXY, token: callbackToken(BEHIND_A_PROXY, API_KEY) },
	],
	['at a bare URL, where no token is needed', free({ token: null })],
	['with a reference', referring, { reference: REFERENCE }],
])('200, and the workflow starts: a callback %s', async (_what, callback, more = {}) => {
	service();
	const { result } = deliver(callback);
	const { workflowData, webhookResponse } = await result;
	expect(workflowData?.[0]).toMatchObject([{ json: { ...RECORD, ...more } }]);
	expect(webhookResponse).toEqual({ accepted: true, taskId: 'task-1' });
});

it.each<[number, string, Callback]>([
	[401, 'no token', { token: null }],
	[401, 'a wrong token', { token: callbackToken(TRIGGER_PATH, 'sk-live-other') }],
	[401, 'a wrong token and nothing in it', { token: 'x', body: {} }],
	[401, 'a reference that was altered', { ...referring, query: { reference: 'row 8' } }],
	[401, 'a reference taken out', { token: referring.token }],
	[401, 'a reference added', { query: referring.query }],
	[401, 'two references', { ...referring, query: { reference: [REFERENCE, 'row 8'] } }],
	[401, 'a reference, and no token is needed', free({ ...referring, token: null })],
	[400, 'no task id', { body: { state: 'SUCCESS' } }],
	[413, 'more than 1 MiB', { rawBody: Buffer.alloc(1024 ** 2 + 1) }],
	[503, 'an engine v2', { settings: { engineType: 'v2' } }],
	[503, 'a broken expression', { parameters: { events: "={{ $('No such node').item }}" } }],
	[503, 'a credential without a key', { apiKey: ' ', token: 'x' }],
])('%d, and nothing is read: a callback with %s', async (status, _what, callback) => {
	const read = service();
	expect(await came(callback)).toMatchObject({ status });
	expect(read.isDone()).toBe(false);
});

it.each<[number, string, object, number]>([
	[404, 'knows no such task', {}, 404],
	[503, 'refuses the key', {}, 401],
	[503, 'does not let the read in', {}, 429],
	[503, 'is away', {}, 502],
	[503, 'says that the task is not finished', { state: 'PENDING' }, 200],
])('%d: the service %s; the next callback starts the workflow', async (status, _what, ...said) => {
	service(...said);
	const { retryAfter } = TRY_AGAIN;
	expect(await came()).toMatchObject({ status, ...(status === 503 && { retryAfter }) });
	service();
	expect(await came()).toMatchObject({ starts: [RECORD] });
});

it('200, and nothing starts: an event that is not selected; both are selected by default', async () => {
	const failed = { taskId: 'task-1', state: 'FAILURE', error: 'Unsafe' };
	service(failed);
	expect(await came()).toMatchObject({ starts: [{ taskId: 'task-1', state: 'FAILURE' }] });
	service(failed);
	const other = { node: `${node}-other` };
	expect(await came({ ...other, parameters: { events: ['SUCCESS'] } })).toMatchObject({
		status: 200,
		body: { accepted: false, reason: 'event not selected' },
	});
});

it.each([0, 5_000, 60_000])(
	'503 within 10 s where the service keeps silent, and n8n takes %d ms to look the credential up',
	async (lookUpMs) => {
		asked().reply(async () => await new Promise<never>(() => {}));
		const from = Date.now();
		let answer: unknown;
		void outcome(deliver({ lookUpMs })).then((result) => (answer = result));
		while (!answer && Date.now() - from < MINUTE) await time.pass(100);
		expect(Date.now() - from).toBeLessThan(10_000);
		expect(answer).toMatchObject(TRY_AGAIN);
	},
);

it('a callback that comes again is a duplicate for a minute, also where the first one is still being read', async () => {
	const duplicate = { status: 200, body: { accepted: false, reason: 'duplicate' } };
	asked().times(50).reply(200, RECORD);
	const all = await Promise.all(Array.from({ length: 50 }, async () => await came()));
	expect(all.filter((each) => 'starts' in each)).toHaveLength(1);
	expect(all.filter((each) => !('starts' in each))).toMatchObject(Array(49).fill(duplicate));
	nock.cleanAll();
	time.jump(MINUTE - 1);
	const read = service();
	expect(await came()).toMatchObject(duplicate);
	expect(await came({ node: `${node}-other` })).toMatchObject({ starts: [RECORD] });
	expect(read.isDone()).toBe(true);
	time.jump(1);
	service();
	expect(await came()).toMatchObject({ starts: [RECORD] });
});

it.each<[string, object, number]>([
	['could not be read', {}, 502],
	['is not finished', { state: 'PENDING' }, 200],
])('a callback whose task %s leaves no mark', async (_what, ...said) => {
	service(...said);
	await came();
	service();
	expect(await came()).toMatchObject({ starts: [RECORD] });
});

it("an admitted task is named in n8n's log before n8n stores its execution, and no token comes out", async () => {
	const logged = jest.spyOn(executeContext({ node: TRIGGER }).logger, 'info');
	const token = callbackToken(TRIGGER_PATH, API_KEY);
	service({ ...RECORD, url: `https://hooks.example/media?token=${token}` });
	const starts = JSON.stringify(await came());
	expect(logged.mock.calls).toEqual([
		[expect.stringContaining('task task-1 is to start the workflow')],
	]);
	logged.mockRestore();
	expect(starts).toContain('***');
	expect(starts).not.toContain(token);
});
