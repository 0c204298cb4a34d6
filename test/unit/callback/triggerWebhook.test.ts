import nock from '../../nock';

import { recentStarts } from '../../../nodes/MediaGeneration/callback/gate';
import { keyInProcess } from '../../../nodes/MediaGeneration/callback/ledger';
import { callbackToken } from '../../../nodes/MediaGeneration/callback/callbackAddress';
import { API_KEY, executeContext, SERVICE, TRIGGER, TRIGGER_PATH } from '../../workflow/engine';
import { passTime, settle, time, virtualTime } from '../../workflow/time';
import { type Arrived, type Callback, deliver as deliverTo, outcome } from './webhook';
import { MINUTE } from '../../durations';

const RECORD = {
	taskId: 'task-1',
	state: 'SUCCESS',
	resultUrls: ['https://m.example.com/1.png'],
	creditsConsumed: 8,
	prompt: 'A lighthouse',
};
const STARTED = {
	taskId: 'task-1',
	state: 'SUCCESS',
	resultUrls: RECORD.resultUrls,
	creditsConsumed: 8,
	record: RECORD,
	baseUrl: SERVICE,
};
const STARTS = { starts: [STARTED] };
const DUPLICATE = {
	status: 200,
	body: { accepted: false, reason: 'duplicate' },
	retryAfter: undefined,
};
const TRY_AGAIN = { status: 503, retryAfter: '5' };

/** The trigger of the present test: what the process remembers of others must not reach it. */
let node: string;
let tests = 0;
const deliver = (callback: Callback = {}) => deliverTo({ node, ...callback });

/** What a callback comes to that is delivered now. */
const came = async (callback?: Callback) => await outcome(deliver(callback));

/** A read of the task. */
const asked = (baseUrl = SERVICE, options?: nock.Options) =>
	nock(baseUrl, options).get('/api/generate/task-1');

/** The service answers one read of the task with this. */
const service = (record: object = RECORD, status = 200) => asked().reply(status, record);

/** The first callback of the task, which n8n is to start the workflow for. */
const first = async (callback?: Callback) => {
	service();
	expect(await came(callback)).toHaveProperty('starts');
};

/** The task has started the workflow, as the execution tells the process. */
const hasStarted = async (callback?: Callback) => {
	await first(callback);
	const context = executeContext({ node: { ...TRIGGER, id: node } });
	recentStarts.set(keyInProcess(context, 'task-1'), true);
};

const free = (callback: Callback): Callback => ({
	...callback,
	parameters: { options: { requireToken: false } },
});

const TOKEN = callbackToken(TRIGGER_PATH, API_KEY);
const REFERENCE = 'row 7\n"ü🙂"&=';
const referring = {
	query: { reference: REFERENCE },
	token: callbackToken(TRIGGER_PATH, API_KEY, REFERENCE),
};

virtualTime();
beforeEach(() => {
	node = `trigger-${++tests}`;
});

it('is told by n8n that it was accepted, with the task id', async () => {
	service();
	const { webhookResponse } = await deliver().result;
	expect(webhookResponse).toEqual({ accepted: true, taskId: 'task-1' });
});

it.each([
	['in an address that a proxy has changed', { url: `https://hooks.example/media?token=${TOKEN}` }],
	['in the parts of its address', { callback: { query: { token: TOKEN } } }],
	['somewhere', { log: [TOKEN.toUpperCase()] }],
])('hides the token of a callback that the record repeats %s', async (_what, more) => {
	service({ ...RECORD, ...more });
	const came = JSON.stringify(await outcome(deliver()));
	expect(came).toContain('***');
	expect(came.toLowerCase()).not.toContain(TOKEN);
});

const BEHIND_A_PROXY = '/inside/webhook/3f1c2a/callback';
const NOT_PARSED = Buffer.from(JSON.stringify({ data: { taskId: 'task-1' } }));
it.each<[string, Callback, object?]>([
	[
		'that says otherwise: with the record that the service has',
		{ body: { taskId: 'task-1', state: 'FAILURE', resultUrls: ['https://evil.example.com'] } },
	],
	['that n8n has not parsed', { body: {}, rawBody: NOT_PARSED }],
	['of exactly 1 MiB', { rawBody: Buffer.alloc(1024 ** 2) }],
	[
		'with a token for the path of this very request, behind a proxy that cuts a prefix',
		{ path: BEHIND_A_PROXY, token: callbackToken(BEHIND_A_PROXY, API_KEY) },
	],
	['with a token for the public path, behind such a proxy', { path: BEHIND_A_PROXY }],
	['at a bare URL, where no token is needed', free({ token: null })],
	['for events by an expression', { parameters: { events: '={{ "SUCCESS" }}' } }],
	['with a reference', referring, { reference: REFERENCE }],
	['with a reference, where no token is needed', free(referring), { reference: REFERENCE }],
])('a callback %s starts the workflow', async (_what, callback, more = {}) => {
	service();
	expect(await came(callback)).toEqual({ starts: [{ ...STARTED, ...more }] });
});

it.each<[string, Callback, number]>([
	['no token', { token: null }, 401],
	['a wrong token', { token: callbackToken(TRIGGER_PATH, 'sk-live-other') }, 401],
	['a wrong token and nothing in it', { token: 'x', body: {} }, 401],
	['no task id', { body: { state: 'SUCCESS' } }, 400],
	['more than 1 MiB', { rawBody: Buffer.alloc(1024 ** 2 + 1) }, 413],
	['a reference that was altered', { ...referring, query: { reference: 'row 8' } }, 401],
	['a reference taken out', { token: referring.token }, 401],
	['a reference made empty', { ...referring, query: { reference: '' } }, 401],
	['a reference added', { query: referring.query }, 401],
	['a reference added empty', { query: { reference: '' } }, 401],
	['two references', { ...referring, query: { reference: [REFERENCE, 'row 8'] } }, 401],
	['a reference, and no token is needed', free({ ...referring, token: null }), 401],
	[
		'an altered reference where no token is needed',
		free({ ...referring, query: { reference: 'x' } }),
		401,
	],
])('a callback with %s is refused, and nothing is read', async (_what, callback, status) => {
	const read = service();
	expect(await came(callback)).toMatchObject({ status });
	expect(read.isDone()).toBe(false);
});

it('of events, both are selected by default', async () => {
	service({ taskId: 'task-1', state: 'FAILURE', error: 'Unsafe' });
	expect(await came()).toMatchObject({
		starts: [{ taskId: 'task-1', state: 'FAILURE', resultUrls: [] }],
	});
});

it('of events, those that are not selected are answered 200 and start nothing', async () => {
	service();
	expect(await came({ parameters: { events: ['FAILURE'] } })).toMatchObject({
		status: 200,
		body: { accepted: false, reason: 'event not selected' },
	});
});

it.each(['SUCCESS,FAILURE', 7, ['SUCCESS', 'success'], []])(
	'waits where the expression of the events gives %j',
	async (events) => {
		service();
		expect(await came({ parameters: { events } })).toMatchObject(TRY_AGAIN);
	},
);

it("waits where n8n's engine v2 runs the workflow, which would start it for each callback", async () => {
	const settings = { engineType: 'v2' } as const;
	service();
	expect(await came({ settings })).toMatchObject(TRY_AGAIN);
	expect(nock.isDone()).toBe(false);
	expect(await came({ settings, token: null })).toMatchObject({ status: 401 });
});

describe('what the service says of the task', () => {
	it.each([
		[404, {}],
		[410, {}],
		[404, 'Not Found'],
	])('HTTP %d with %j is answered 404', async (status, said) => {
		asked().reply(status, said);
		expect(await came()).toMatchObject({ status: 404, retryAfter: undefined });
	});

	it.each<[string, object, number?]>([
		...[400, 401, 402, 403, 429, 500, 502, 503].map((status) => [`${status}`, {}, status] as never),
		...['PENDING', 'running', 'QUEUED'].map((state) => [state, { state }] as never),
		['nothing of a state', { ok: true }],
	])('%s is answered 503 with Retry-After, so that the sender comes again', async (_, ...said) => {
		service(...said);
		expect(await came()).toMatchObject(TRY_AGAIN);
	});

	it('a refused key is named in the answer, which the check for callbacks shows', async () => {
		service({}, 401);
		const { body } = (await came()) as { body: { message: string } };
		expect(body.message).toContain('refuses the API key');
	});

	it('after each of these the task starts the workflow when its callback comes again', async () => {
		for (const said of [[{ state: 'PENDING' }], [{}, 500], [{}, 404]] as Array<[object, number?]>) {
			service(...said);
			await came();
		}
		service();
		expect(await came()).toEqual(STARTS);
	});
});

describe('what cannot be checked', () => {
	const broken = "={{ $('No such node').first().json.events }}";

	it.each<[string, Callback]>([
		['Events', { parameters: { events: broken } }],
		['Require Token', { parameters: { options: { requireToken: broken } } }],
		['a credential without a key', { apiKey: ' ', token: 'x' }],
	])('for %s comes again, and then the task starts the workflow', async (_what, callback) => {
		const read = service();
		expect(await came(callback)).toMatchObject(TRY_AGAIN);
		expect(await came(callback)).toMatchObject(TRY_AGAIN);
		expect(read.isDone()).toBe(false);
		time.jump(MINUTE);
		expect(await came()).toEqual(STARTS);
	});
});

describe('a callback that comes again', () => {
	it('after its task has started the workflow is a duplicate for five minutes, and costs no read', async () => {
		await hasStarted();
		const read = service();
		time.jump(5 * MINUTE - 1);
		expect(await came()).toMatchObject(DUPLICATE);
		expect(read.isDone()).toBe(false);
		time.jump(1);
		expect(await came()).toEqual(STARTS);
	});

	it('while no execution has started for its task is admitted: the first one may have died', async () => {
		await first();
		service();
		expect(await came()).toEqual(STARTS);
	});

	it('at another trigger starts that one', async () => {
		await hasStarted();
		service();
		expect(await came({ node: `${node}-other` })).toEqual(STARTS);
	});

	it('of another task is no duplicate', async () => {
		await hasStarted();
		nock(SERVICE)
			.get('/api/generate/task-2')
			.reply(200, { ...RECORD, taskId: 'task-2' });
		expect(await came({ body: { taskId: 'task-2' } })).toHaveProperty('starts');
	});

	it('in a test run is shown again, and then starts the workflow as if it came for the first time', async () => {
		await first({ mode: 'manual' });
		for (const mode of ['manual', 'webhook'] as const) {
			service();
			expect(await came({ mode })).toEqual(STARTS);
		}
	});
});

it('callbacks of one task that arrive together are all admitted, and none waits for another: the ledger decides', async () => {
	asked().times(5).reply(200, RECORD);
	const all = Array.from({ length: 5 }, () => deliver());
	expect(await Promise.all(all.map(outcome))).toEqual(Array(5).fill(STARTS));
});

describe('where the service keeps silent, an answer within 10 s', () => {
	/** The service takes the request, and answers when it is released. */
	const silence = () => {
		let release = () => {};
		const released = new Promise<void>((resolve) => (release = resolve));
		asked()
			.times(3)
			.reply(async () => await released.then(() => [200, RECORD]));
		return release;
	};

	/** All have their answers in time. */
	const answeredInTime = async (all: Arrived[], startedAt: number) => {
		let answers: unknown[] | undefined;
		void Promise.all(all.map(outcome)).then((result) => (answers = result));
		while (!answers && Date.now() - startedAt < MINUTE) await time.pass(100);
		expect(Date.now() - startedAt).toBeLessThan(10_000);
		expect(answers).toMatchObject(all.map(() => TRY_AGAIN));
	};

	it('is given to each of several that come together', async () => {
		const release = silence();
		const all = Array.from({ length: 3 }, () => deliver());
		await answeredInTime(all, Date.now());
		release();
	});

	it.each([5_000, 60_000])(
		'is given although n8n takes %d ms to look the credential up',
		async (lookUpMs) => {
			const release = silence();
			await answeredInTime([deliver({ lookUpMs })], Date.now());
			release();
		},
	);

	it('leaves the task to the next callback, although the look-up ends after the answer', async () => {
		service();
		await answeredInTime([deliver({ lookUpMs: 9_000 })], Date.now());
		await time.pass(MINUTE);
		await settle();
		service();
		expect(await came()).toEqual(STARTS);
		nock.cleanAll();
	});
});

describe('the credential', () => {
	it('is looked up once a minute for each trigger, and once more for wrong tokens, also for callbacks that come together', async () => {
		const lookUps = async (token: string, other = node) => {
			const all = [deliver({ token, node: other }), deliver({ token })];
			await Promise.all(all.map(outcome));
			return all.map(({ lookUp }) => lookUp.mock.calls.length);
		};
		const seen = [await lookUps('x', `${node}-other`), await lookUps('x')];
		time.jump(MINUTE - 1);
		const read = service({ state: 'PENDING' });
		seen.push(await lookUps(TOKEN));
		expect(read.isDone()).toBe(true);
		time.jump(1);
		service({ state: 'PENDING' });
		seen.push(await lookUps(TOKEN));
		time.jump(MINUTE);
		seen.push(await lookUps('x'));
		expect(seen).toEqual([
			[2, 2],
			[0, 0],
			[0, 0],
			[1, 0],
			[2, 0],
		]);
	});

	/** A callback that is answered without waiting for anything but the credential. */
	const NOT_SELECTED = { parameters: { events: ['FAILURE'] } };
	const decided = async (callback: Callback = {}) => {
		service();
		return await passTime(came({ ...NOT_SELECTED, ...callback }));
	};
	const DECIDED = { status: 200 };

	it('is used for a minute from the beginning of its look-up, and no longer', async () => {
		await passTime(came({ lookUpMs: 5_000 }));
		await time.pass(54_000);
		expect(await decided({ lookUpMs: MINUTE })).toMatchObject(DECIDED);
		await time.pass(1_000);
		expect(await decided({ lookUpMs: MINUTE })).toMatchObject(TRY_AGAIN);
	});

	it('that n8n could not look up is looked up for the next callback', async () => {
		expect(await came({ isAway: true })).toMatchObject(TRY_AGAIN);
		service();
		expect(await came()).toEqual(STARTS);
	});

	const reqheaders = { authorization: 'Bearer sk-live-new' };
	const asNew = () => asked(SERVICE, { reqheaders }).reply(200, RECORD);

	it('whose key was changed admits tokens made with the new key at once, unless wrong tokens came just before', async () => {
		service({}, 500);
		await came();
		expect(await came({ token: 'x' })).toMatchObject({ status: 401 });
		asNew();
		time.jump(1999);
		expect(await came({ apiKey: 'sk-live-new' })).toMatchObject({ status: 401 });
		time.jump(1);
		expect(await came({ apiKey: 'sk-live-new' })).toEqual(STARTS);
	});

	it('whose key is changed right after its look-up admits tokens made with the new key', async () => {
		service({}, 500);
		await came();
		asNew();
		expect(await came({ apiKey: 'sk-live-new' })).toEqual(STARTS);
	});

	it('whose key was changed admits all callbacks with the new key that come during the look-up', async () => {
		await decided();
		asNew();
		asNew();
		const changed = { apiKey: 'sk-live-new', lookUpMs: 3_000, ...NOT_SELECTED };
		const both = Promise.all([changed, changed].map(came));
		expect(await passTime(both)).toMatchObject([DECIDED, DECIDED]);
	});

	it('whose base URL was changed starts no task again', async () => {
		await hasStarted();
		time.jump(MINUTE);
		expect(await came({ baseUrl: 'https://other.example.com' })).toEqual(DUPLICATE);
	});

	it('whose key was replaced is of the same account: no task starts again', async () => {
		await hasStarted();
		time.jump(2000);
		expect(await came({ apiKey: 'sk-live-the-next' })).toEqual(DUPLICATE);
	});
});

describe("n8n's log", () => {
	const info = () => jest.spyOn(executeContext().logger, 'info');

	it('names each task that is admitted before n8n stores its execution, so that a kill loses no name', async () => {
		const logged = info();
		await first();
		expect(logged.mock.calls).toEqual([
			[expect.stringContaining('task task-1 is to start the workflow')],
		]);
		logged.mockRestore();
	});

	it('names none that is answered, and none of a test event', async () => {
		const logged = info();
		service({ ...RECORD, state: 'PENDING' });
		await came();
		await first({ mode: 'manual' });
		expect(logged.mock.calls).toEqual([]);
		logged.mockRestore();
	});
});
