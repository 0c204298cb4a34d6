import nock from '../../nock';

import { accountOf } from '../../../nodes/MediaGeneration/callback/startOnce';
import { callbackToken } from '../../../nodes/MediaGeneration/callback/callbackToken';
import {
	START_AGAIN_HEADER,
	startAgainHeader,
} from '../../../nodes/MediaGeneration/callback/startAgain';
import { API_KEY, executeContext, TRIGGER_PATH } from '../../workflow/engine';
import { fakeTime, passTime, settle } from '../../workflow/time';
import { type Arrived, type Callback, deliver as deliverTo, outcome, SERVICE } from './webhook';

const RECORD = {
	taskId: 'task-1',
	state: 'SUCCESS',
	resultUrls: ['https://m.example.com/1.png'],
	creditsConsumed: 8,
	prompt: 'A lighthouse',
};
const STARTS = {
	starts: [
		{
			taskId: 'task-1',
			state: 'SUCCESS',
			resultUrls: RECORD.resultUrls,
			creditsConsumed: 8,
			record: RECORD,
			callbackId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
			account: accountOf(SERVICE, 'credential'),
		},
	],
};
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

/** The service answers reads of the task with this, the next one or all. */
const service = (record: object = RECORD, status = 200) =>
	nock(SERVICE).get('/api/generate/task-1').reply(status, record);

beforeEach(() => {
	fakeTime();
	node = `trigger-${++tests}`;
});
afterEach(() => {
	jest.useRealTimers();
});

it("waits where n8n's engine v2 runs the workflow, which would start it for each callback", async () => {
	const settings = { engineType: 'v2' } as const;
	expect(await outcome(deliver({ settings }))).toMatchObject(TRY_AGAIN);
	expect(await outcome(deliver({ settings, token: null }))).toMatchObject({ status: 401 });
});

describe('a callback with the right token', () => {
	it('starts the workflow with the record that the service has, and not with what it says itself', async () => {
		service();
		const body = { taskId: 'task-1', state: 'FAILURE', resultUrls: ['https://evil.example.com'] };
		expect(await outcome(deliver({ body }))).toEqual(STARTS);
	});

	it('is told so by n8n, with the task id', async () => {
		service();
		const { webhookResponse } = await deliver().result;
		expect(webhookResponse).toEqual({ accepted: true, taskId: 'task-1' });
	});

	it.each([
		[{ taskId: 'task-1' }],
		[{ task_id: 'task-1' }],
		[{ id: 'task-1' }],
		[{ data: { task_id: 'task-1' } }],
		[{ task: { id: 'task-1' } }],
		[{ id: 'evt_1', type: 'task.completed', data: { taskId: 'task-1' } }],
	])('may name its task as %j', async (body) => {
		service();
		expect(await outcome(deliver({ body }))).toEqual(STARTS);
	});

	it.each([
		['without a content type', {}],
		['as text', '{ "data": { "taskId": "task-1" } }'],
	])('may be JSON that n8n has not parsed, %s', async (_what, body) => {
		service();
		const rawBody = Buffer.from(JSON.stringify({ data: { taskId: 'task-1' } }));
		expect(await outcome(deliver({ body, rawBody }))).toEqual(STARTS);
	});

	it('may carry one made for the path of this very request, behind a proxy that cuts a prefix', async () => {
		service();
		const path = '/inside/webhook/3f1c2a/callback';
		const token = callbackToken(path, API_KEY);
		expect(await outcome(deliver({ path, token }))).toEqual(STARTS);
	});

	it('may carry one made for the public path behind such a proxy', async () => {
		service();
		const path = '/inside/webhook/3f1c2a/callback';
		expect(await outcome(deliver({ path }))).toEqual(STARTS);
	});
});

describe('what is refused without a request to the service', () => {
	it.each<[string, Callback, number]>([
		['no token', { token: null }, 401],
		['a wrong token', { token: callbackToken(TRIGGER_PATH, 'sk-live-other') }, 401],
		['a token of another path', { token: callbackToken('/webhook/other/callback', API_KEY) }, 401],
		['two tokens', { token: [callbackToken(TRIGGER_PATH, API_KEY), 'x'] }, 401],
		['no task id', { body: { state: 'SUCCESS' } }, 400],
		['an empty body', { body: {} }, 400],
		['a list', { body: [{ taskId: 'task-1' }] }, 400],
		['a path as the task id', { body: { taskId: '..' } }, 400],
		['more than 1 MiB', { rawBody: Buffer.alloc(1024 ** 2 + 1) }, 413],
	])('%s', async (_what, callback, status) => {
		const read = service();
		expect(await outcome(deliver(callback))).toMatchObject({ status });
		expect(read.isDone()).toBe(false);
	});

	it('a wrong token is refused before anything is said of the body', async () => {
		expect(await outcome(deliver({ token: 'x', body: {} }))).toMatchObject({ status: 401 });
	});

	it('a body of exactly 1 MiB is not', async () => {
		service();
		expect(await outcome(deliver({ rawBody: Buffer.alloc(1024 ** 2) }))).toEqual(STARTS);
	});
});

describe('without the need for a token', () => {
	const parameters = { options: { requireToken: false } };

	it('a bare URL is admitted', async () => {
		service();
		expect(await outcome(deliver({ token: null, parameters }))).toEqual(STARTS);
	});

	it('a task that the service does not know is still refused', async () => {
		service({}, 404);
		expect(await outcome(deliver({ token: null, parameters }))).toMatchObject({ status: 404 });
	});
});

describe('a reference in the address', () => {
	const query = { reference: 'row 7\n"ü🙂"&=' };
	const token = callbackToken(TRIGGER_PATH, API_KEY, query.reference);
	const requireToken = (value: boolean) => ({ parameters: { options: { requireToken: value } } });

	it('comes with the task', async () => {
		service();
		const [started] = STARTS.starts;
		expect(await outcome(deliver({ query, token }))).toEqual({
			starts: [{ ...started, reference: query.reference }],
		});
	});

	it.each<[string, Callback]>([
		['was altered', { query: { reference: 'row 8' }, token }],
		['was taken out', { token }],
		['was made empty', { query: { reference: '' }, token }],
		['was added', { query }],
		['was added empty', { query: { reference: '' } }],
		['is there twice', { query: { reference: ['row 7', 'row 8'] }, token }],
		['has no token', { query, token: null }],
		['has no token, and none is needed', { query, token: null, ...requireToken(false) }],
		[
			'was altered, and no token is needed',
			{ query: { reference: 'x' }, token, ...requireToken(false) },
		],
	])('that %s is refused, and the service is not asked', async (_what, callback) => {
		const read = service();
		expect(await outcome(deliver(callback))).toMatchObject({ status: 401 });
		expect(read.isDone()).toBe(false);
	});

	it('with its token comes with the task also where no token is needed', async () => {
		service();
		expect(await outcome(deliver({ query, token, ...requireToken(false) }))).toMatchObject({
			starts: [query],
		});
	});
});

describe('a request to start again', () => {
	const RUN = 'a'.repeat(32);
	const subject = { path: TRIGGER_PATH, taskId: 'task-1', apiKey: API_KEY };
	const asking = (run = RUN, of: Partial<typeof subject> = {}) => ({
		headers: startAgainHeader({ ...subject, ...of }, run),
	});
	const [started] = STARTS.starts;
	const startsAgain = (startAgain = RUN) => ({ starts: [{ ...started, startAgain }] });

	/** The task's own callback, which has started the workflow. */
	const hasStarted = async () => {
		service();
		const first = deliver();
		await outcome(first);
		first.response.end(200);
	};

	it('starts the workflow with a task that has started it a moment ago', async () => {
		await hasStarted();
		service();
		expect(await outcome(deliver(asking()))).toEqual(startsAgain());
	});

	it('starts it once for each who asks', async () => {
		await hasStarted();
		service();
		const first = deliver(asking());
		expect(await outcome(first)).toEqual(startsAgain());
		first.response.end(200);
		expect(await outcome(deliver(asking()))).toMatchObject(DUPLICATE);
		service();
		const other = 'b'.repeat(32);
		expect(await outcome(deliver(asking(other)))).toEqual(startsAgain(other));
	});

	it('goes along with a reference', async () => {
		service();
		const query = { reference: 'row 7' };
		const token = callbackToken(TRIGGER_PATH, API_KEY, 'row 7');
		expect(await outcome(deliver({ ...asking(), query, token }))).toMatchObject({
			starts: [{ reference: 'row 7', startAgain: RUN }],
		});
	});

	it('may be signed with a key that was changed a moment ago', async () => {
		service({}, 500);
		await outcome(deliver());
		jest.setSystemTime(Date.now() + 3000);
		service();
		const apiKey = 'sk-live-new';
		expect(await outcome(deliver({ apiKey, ...asking(RUN, { apiKey }) }))).toEqual(startsAgain());
	});

	const name = START_AGAIN_HEADER;
	const good = asking().headers[name] ?? '';
	it.each<[string, Callback]>([
		[
			'the token of the address in its place',
			{ headers: { [name]: callbackToken(TRIGGER_PATH, API_KEY) } },
		],
		[
			'the token as its signature',
			{ headers: { [name]: `${Date.now()}.${RUN}.${callbackToken(TRIGGER_PATH, API_KEY)}` } },
		],
		['no signature', { headers: { [name]: 'true' } }],
		['nothing in it', { headers: { [name]: '' } }],
		['a signature of another key', asking(RUN, { apiKey: 'sk-live-other' })],
		['a signature for another task', asking(RUN, { taskId: 'task-2' })],
		['a signature for another trigger', asking(RUN, { path: '/webhook/other/callback' })],
		[
			'the signature of somebody else who asks',
			{ headers: { [name]: good.replace(RUN, 'b'.repeat(32)) } },
		],
		['a body without a task', { ...asking(), body: {} }],
		['a good signature but no token', { ...asking(), token: null }],
		[
			'a signature of another key, where no token is needed',
			{
				...asking(RUN, { apiKey: 'x' }),
				token: null,
				parameters: { options: { requireToken: false } },
			},
		],
	])('with %s is refused, and the service is not asked', async (_what, callback) => {
		const read = service();
		expect(await outcome(deliver(callback))).toMatchObject({ status: 401 });
		expect(read.isDone()).toBe(false);
	});

	it.each([
		[-6, 401],
		[-4, 'starts'],
		[4, 'starts'],
		[6, 401],
	])('made %d minutes from now comes to %s', async (minutes, result) => {
		const headers = startAgainHeader(subject, RUN, Date.now() + minutes * 60_000);
		service();
		const came = await outcome(deliver({ headers }));
		expect('starts' in came ? 'starts' : came.status).toBe(result);
	});

	it.each<[string, Callback]>([
		['body', { body: { taskId: 'task-1', startAgain: RUN } }],
		['query', { query: { startAgain: RUN, [name]: good } }],
	])('in the %s of a callback is not heard', async (_where, callback) => {
		await hasStarted();
		expect(await outcome(deliver(callback))).toMatchObject(DUPLICATE);
	});
});

describe("the trigger's own parameters, where they cannot be read", () => {
	const broken = "={{ $('No such node').first().json.events }}";

	it.each([
		['Events', { events: broken }],
		['Events that come to nothing', { events: '={{ $json.events }}' }],
		['Require Token', { options: { requireToken: broken } }],
	])(
		'%s: the sender comes again, and then the task starts the workflow',
		async (_what, parameters) => {
			const read = service();
			expect(await outcome(deliver({ parameters }))).toMatchObject(TRY_AGAIN);
			expect(await outcome(deliver({ parameters }))).toMatchObject(TRY_AGAIN);
			expect(read.isDone()).toBe(false);
			expect(await outcome(deliver())).toEqual(STARTS);
		},
	);
});

describe('what the service says of the task', () => {
	it.each([404, 410])('HTTP %d is answered 404', async (status) => {
		service({}, status);
		expect(await outcome(deliver())).toMatchObject({ status: 404, retryAfter: undefined });
	});

	it.each([400, 401, 402, 403, 429, 500, 502, 503])(
		'HTTP %d is answered 503 with Retry-After, so that the sender comes again',
		async (status) => {
			service({}, status);
			expect(await outcome(deliver())).toMatchObject(TRY_AGAIN);
		},
	);

	it.each(['PENDING', 'running', 'QUEUED'])(
		'%s is not the end of it yet, so that the sender comes again',
		async (state) => {
			service({ state });
			expect(await outcome(deliver())).toMatchObject(TRY_AGAIN);
		},
	);

	it('no state at all is answered 503', async () => {
		service({ ok: true });
		expect(await outcome(deliver())).toMatchObject(TRY_AGAIN);
	});

	it('a lost connection is answered 503', async () => {
		nock(SERVICE)
			.get('/api/generate/task-1')
			.replyWithError(Object.assign(new Error('Lost'), { code: 'ECONNRESET' }));
		expect(await outcome(deliver())).toMatchObject(TRY_AGAIN);
	});

	it('after each of these the task starts the workflow when its callback comes again', async () => {
		service({ state: 'PENDING' });
		await outcome(deliver());
		service({}, 500);
		await outcome(deliver());
		service({}, 404);
		await outcome(deliver());
		service();
		expect(await outcome(deliver())).toEqual(STARTS);
	});
});

describe('events', () => {
	it('that are not selected are answered 200 and start nothing', async () => {
		service();
		expect(await outcome(deliver({ parameters: { events: ['FAILURE'] } }))).toMatchObject({
			status: 200,
			body: { accepted: false, reason: 'event not selected' },
		});
	});

	it('may be one by an expression', async () => {
		service();
		expect(await outcome(deliver({ parameters: { events: '={{ "SUCCESS" }}' } }))).toEqual(STARTS);
	});

	it('FAILURE is one of the two that are selected by default', async () => {
		service({ taskId: 'task-1', state: 'FAILURE', error: 'Unsafe' });
		expect(await outcome(deliver())).toMatchObject({
			starts: [{ taskId: 'task-1', state: 'FAILURE', resultUrls: [] }],
		});
	});
});

describe('a callback that comes again', () => {
	it('after its execution was stored is a duplicate, and costs no read', async () => {
		service();
		const first = deliver();
		await outcome(first);
		first.response.end(200);
		const read = service();
		expect(await outcome(deliver())).toMatchObject(DUPLICATE);
		expect(read.isDone()).toBe(false);
	});

	it('after n8n could not store its execution starts it', async () => {
		service();
		const first = deliver();
		await outcome(first);
		first.response.end(500);
		service();
		expect(await outcome(deliver())).toEqual(STARTS);
	});

	it('after its sender was gone before the answer starts it', async () => {
		service();
		const first = deliver();
		await outcome(first);
		first.response.close();
		service();
		expect(await outcome(deliver())).toEqual(STARTS);
	});

	it('after its sender was gone while the task was read starts it', async () => {
		service();
		const first = deliver();
		first.response.close();
		await outcome(first);
		service();
		expect(await outcome(deliver())).toEqual(STARTS);
	});

	it('at another trigger starts that one', async () => {
		service();
		const first = deliver();
		await outcome(first);
		first.response.end(200);
		service();
		expect(await outcome(deliver({ node: `${node}-other` }))).toEqual(STARTS);
	});

	it('of another task is no duplicate', async () => {
		service();
		const first = deliver();
		await outcome(first);
		first.response.end(200);
		nock(SERVICE)
			.get('/api/generate/task-2')
			.reply(200, { ...RECORD, taskId: 'task-2' });
		expect(await outcome(deliver({ body: { taskId: 'task-2' } }))).toHaveProperty('starts');
	});
});

describe('callbacks of one task that arrive together', () => {
	/** The one of them that is decided first, and those that wait for it. */
	const firstOf = async (all: Arrived[]) => {
		const decided = all.map(async (arrived) => {
			await arrived.result;
			return arrived;
		});
		const first = await Promise.race(decided);
		return { first, others: all.filter((arrived) => arrived !== first) };
	};

	/** The one that starts the workflow, which n8n is about to store, and those that wait for it. */
	const together = async (waiting: number) => {
		service();
		const arrived = await firstOf(Array.from({ length: waiting + 1 }, () => deliver()));
		expect(await outcome(arrived.first)).toEqual(STARTS);
		return arrived;
	};

	it('are read once, and all but the first are duplicates when the first is stored', async () => {
		const { first, others } = await together(5);
		first.response.end(200);
		const outcomes = await Promise.all(others.map(outcome));
		expect(outcomes).toEqual(Array(5).fill(DUPLICATE));
	});

	it('are answered before that by nothing', async () => {
		const { others } = await together(2);
		await settle();
		expect(others.map(({ response }) => response.body)).toEqual([undefined, undefined]);
	});

	it('are taken over by the next one where the first could not be stored', async () => {
		const { first, others } = await together(3);
		service();
		first.response.end(500);
		const next = await firstOf(others);
		expect(await outcome(next.first)).toEqual(STARTS);
		next.first.response.end(200);
		expect(await Promise.all(next.others.map(outcome))).toEqual(Array(2).fill(DUPLICATE));
	});

	it.each([
		[{ state: 'PENDING' }, 200, 503],
		[{}, 500, 503],
		[{}, 404, 404],
	])(
		'share the answer where the service says %j with HTTP %d',
		async (record, status, answered) => {
			service(record, status);
			const all = [deliver(), deliver(), deliver()];
			const outcomes = await Promise.all(all.map(outcome));
			expect(outcomes.map((each) => 'status' in each && each.status)).toEqual(
				Array(3).fill(answered),
			);
		},
	);

	it('are told to come again where a busy n8n has not stored the first within 8 s', async () => {
		const { others } = await together(1);
		const startedAt = Date.now();
		const [other] = others;
		expect(other && (await passTime(outcome(other)))).toMatchObject(TRY_AGAIN);
		expect(Date.now() - startedAt).toBe(8_000);
	});
});

describe('an answer within 10 s', () => {
	/** A service that takes the request and then keeps silent, until it is released. */
	const silentService = () => {
		let release = () => {};
		const silence = new Promise<void>((resolve) => (release = resolve));
		nock(SERVICE)
			.get('/api/generate/task-1')
			.reply(async () => {
				await silence;
				return [200, RECORD];
			});
		return { release };
	};

	/** How long the answer took, in milliseconds of the fake clock. */
	const answeredAfter = async (arrived: ReturnType<typeof deliver>, startedAt: number) => {
		let answer: Awaited<ReturnType<typeof outcome>> | undefined;
		void outcome(arrived).then((result) => (answer = result));
		while (answer === undefined && Date.now() - startedAt < 60_000) {
			await jest.advanceTimersByTimeAsync(100);
		}
		return { answer, ms: Date.now() - startedAt };
	};

	it('is given where the service does not answer', async () => {
		const { release } = silentService();
		const { answer, ms } = await answeredAfter(deliver(), Date.now());
		release();
		expect(answer).toMatchObject(TRY_AGAIN);
		expect(ms).toBeLessThan(10_000);
	});

	it('is given to all that came together, where the service does not answer', async () => {
		const { release } = silentService();
		const startedAt = Date.now();
		const all = [deliver(), deliver(), deliver()];
		for (const arrived of all) {
			const { answer, ms } = await answeredAfter(arrived, startedAt);
			expect(answer).toMatchObject(TRY_AGAIN);
			expect(ms).toBeLessThan(10_000);
		}
		release();
	});

	it('is given to one that waited for another and then found the service silent', async () => {
		service();
		const first = deliver();
		await outcome(first);
		const startedAt = Date.now();
		const second = deliver();
		await jest.advanceTimersByTimeAsync(7000);
		const { release } = silentService();
		first.response.end(500);
		const { answer, ms } = await answeredAfter(second, startedAt);
		release();
		expect(answer).toMatchObject(TRY_AGAIN);
		expect(ms).toBeLessThan(10_000);
	});
});

describe('a test run', () => {
	it('shows every event, also one that was seen before', async () => {
		nock(SERVICE).get('/api/generate/task-1').times(2).reply(200, RECORD);
		const first = deliver({ mode: 'manual' });
		expect(await outcome(first)).toEqual(STARTS);
		first.response.end(200);
		expect(await outcome(deliver({ mode: 'manual' }))).toEqual(STARTS);
	});
});

describe('the credential', () => {
	it('that cannot be used is answered 503, so that the sender comes again', async () => {
		expect(await outcome(deliver({ apiKey: ' ' }))).toMatchObject(TRY_AGAIN);
	});

	it('whose key was changed admits tokens made with the new key', async () => {
		service({}, 500);
		await outcome(deliver());
		jest.setSystemTime(Date.now() + 3000);
		nock(SERVICE, { reqheaders: { authorization: 'Bearer sk-live-new' } })
			.get('/api/generate/task-1')
			.reply(200, RECORD);
		expect(await outcome(deliver({ apiKey: 'sk-live-new' }))).toEqual(STARTS);
	});
});

describe('the same task id', () => {
	it('of another account behind the same trigger starts the workflow, too', async () => {
		const other = 'https://other.example.com';
		service();
		nock(other).get('/api/generate/task-1').reply(200, RECORD);
		const first = deliver();
		expect(await outcome(first)).toEqual(STARTS);
		first.response.end(200);
		// The trigger's credential was set to another service; it is looked up once a minute.
		jest.advanceTimersByTime(61_000);
		const second = deliver({ baseUrl: other });
		expect(await outcome(second)).toMatchObject({
			starts: [{ taskId: 'task-1', account: accountOf(other, 'credential') }],
		});
	});

	it('is the same task after the API key was replaced', async () => {
		service();
		const first = deliver();
		await outcome(first);
		first.response.end(200);
		expect(await outcome(deliver({ apiKey: 'sk-live-the-next' }))).toEqual(DUPLICATE);
	});
});

describe("n8n's log", () => {
	const info = () =>
		jest.spyOn(
			executeContext({ node: {}, credential: { baseUrl: SERVICE, apiKey: API_KEY } }).logger,
			'info',
		);

	it('names each task that is admitted before n8n stores its execution, so that a kill loses no name', async () => {
		service();
		const logged = info();
		const { result } = deliver();
		await result;
		expect(logged.mock.calls).toEqual([
			[expect.stringContaining('task task-1 is to start the workflow')],
		]);
		logged.mockRestore();
	});

	it('names none that is answered, and none of a test event', async () => {
		const logged = info();
		service({ ...RECORD, state: 'PENDING' });
		await deliver().result;
		service();
		await deliver({ mode: 'manual' }).result;
		expect(logged.mock.calls).toEqual([]);
		logged.mockRestore();
	});
});
