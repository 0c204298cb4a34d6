import { WebhookContext } from 'n8n-core';
import type { IDataObject, INodeExecutionData } from 'n8n-workflow';
import nock from 'nock';

import { callbackToken } from '../../../nodes/MediaGeneration/callback/address';
import type { admitResume } from '../../../nodes/MediaGeneration/callback/resumeGate';
import { API_KEY } from '../../workflow/engine';
import { fakeTime, passTime } from '../../workflow/time';
import { resume, type ResumingCallback, type Suspended, waiting } from './resuming';
import { type Arrived, outcome, SERVICE } from './webhook';

const SECOND = 1000;

/** The present state of each task at the service; what is not there is not known to it. */
const states: Record<string, string> = {};
/** The moments at which each task was read. */
let reads: Array<{ taskId: string; at: number; authorization: unknown }>;
/** How long the service takes for a read, and statuses that it answers in place of a record. */
let readMs: number;
let statuses: Record<string, number>;

let executionId: string;
let executions = 0;

const suspended = (taskIds: string[], more: Partial<Suspended> = {}): Suspended => ({
	executionId,
	stored: taskIds.map((taskId, index) => waiting(taskId, index)),
	...more,
});
const finish = (...taskIds: string[]) => {
	for (const taskId of taskIds) states[taskId] = 'SUCCESS';
};
const begin = (...taskIds: string[]) => {
	for (const taskId of taskIds) states[taskId] = 'PENDING';
};
const readsOf = (id: string) => reads.filter(({ taskId }) => taskId === id).length;

/** What a callback came to; one that resumes is stored and answered by n8n at once. */
async function answered(arrived: Arrived) {
	const came = await outcome(arrived);
	if ('starts' in came) arrived.response.end(200);
	return came;
}

/** Delivers a callback and waits for its end. */
const call = async (execution: Suspended, callback: ResumingCallback = {}) =>
	await passTime(answered(resume(execution, callback)));

/** Lets time pass also while the service is at work on a read. */
async function passSeconds(seconds: number) {
	for (let left = seconds * SECOND; left > 0; left -= 100) {
		for (let turns = 0; turns < 20; turns++) await new Promise((done) => setImmediate(done));
		await jest.advanceTimersByTimeAsync(100);
	}
}

const of = (taskId: string): ResumingCallback => ({ taskId });

const WAITING = { status: 200, body: { accepted: true, resumed: false } };
const DUPLICATE = { status: 200, body: { accepted: false, reason: 'duplicate' } };
const NOT_WAITING = {
	status: 404,
	body: { message: 'The execution does not wait for this task' },
};
const resumedWith = (...taskIds: string[]) => ({
	starts: taskIds.map(
		(taskId) => expect.objectContaining({ taskId, state: 'SUCCESS' }) as IDataObject,
	),
});

beforeAll(() => nock.disableNetConnect());
beforeEach(() => {
	fakeTime();
	executionId = String(++executions);
	for (const taskId of Object.keys(states)) delete states[taskId];
	reads = [];
	readMs = 0;
	statuses = {};
	nock(SERVICE)
		.persist()
		.get(/^\/api\/generate\/[^/]+$/)
		.reply(function (uri, _body, answer) {
			const taskId = uri.split('/').at(-1) ?? '';
			reads.push({ taskId, at: Date.now(), authorization: this.req.headers.authorization });
			const state = states[taskId];
			const record = {
				taskId,
				state,
				creditsConsumed: 8,
				...(state === 'SUCCESS' && { resultUrls: [1, 2].map((n) => `https://m/${taskId}/${n}`) }),
				...(state === 'FAILURE' && { error: { message: 'no such colour' } }),
			};
			const status = statuses[taskId] ?? (state === undefined ? 404 : 200);
			const send = () => answer(null, [status, record]);
			if (readMs === 0) send();
			else setTimeout(send, readMs);
		});
});
afterEach(() => {
	jest.useRealTimers();
	nock.cleanAll();
});
afterAll(() => nock.restore());

describe('what is refused without a request to the service', () => {
	it.each<[string, ResumingCallback, number]>([
		['no token', { token: null }, 401],
		['a wrong token', { token: '0'.repeat(64) }, 401],
		['a token made with another key', { token: callbackToken('/webhook-waiting/1', 'other') }, 401],
		[
			'the token of another execution',
			{ token: callbackToken('/webhook-waiting/x/callback', API_KEY) },
			401,
		],
		['no task id', { body: { state: 'SUCCESS' } }, 400],
		['a task that the execution does not wait for', { taskId: 'task-9' }, 404],
	])('%s', async (_what, callback, status) => {
		finish('task-1', 'task-9');
		expect(await call(suspended(['task-1']), callback)).toMatchObject({ status });
		expect(reads).toEqual([]);
	});

	it('a task whose item is finished, or went out with its error', async () => {
		finish('task-1', 'task-2', 'task-3');
		const done: INodeExecutionData = { json: { taskId: 'task-2', state: 'SUCCESS' } };
		const failed = waiting('task-3', 2, { error: 'It was waited for in vain' });
		const execution = suspended([], { stored: [waiting('task-1'), done, failed] });
		expect(await call(execution, of('task-2'))).toMatchObject(NOT_WAITING);
		expect(await call(execution, of('task-3'))).toMatchObject(NOT_WAITING);
		expect(reads).toEqual([]);
		expect(await call(execution)).toMatchObject({
			starts: [{ taskId: 'task-1', state: 'SUCCESS' }, done.json, failed.json],
		});
	});
});

describe('a token', () => {
	it('is good for the path of the very request, behind a proxy that cuts a prefix', async () => {
		finish('task-1');
		const path = '/inside/webhook-waiting/7/callback';
		const token = callbackToken(path, API_KEY);
		expect(await call(suspended(['task-1']), { path, token })).toEqual(resumedWith('task-1'));
	});

	it('is not the key, which goes to the service alone', async () => {
		finish('task-1');
		const came = await call(suspended(['task-1']));
		expect(JSON.stringify(came)).not.toContain(API_KEY);
		expect(reads.map(({ authorization }) => authorization)).toEqual([`Bearer ${API_KEY}`]);
	});
});

describe('an execution', () => {
	it('is resumed by the callback that comes last, in input order', async () => {
		const execution = suspended(['task-1', 'task-2', 'task-3']);
		begin('task-1', 'task-2', 'task-3');
		for (const taskId of ['task-3', 'task-1']) {
			finish(taskId);
			expect(await call(execution, of(taskId))).toMatchObject(WAITING);
		}
		finish('task-2');
		expect(await call(execution, of('task-2'))).toEqual(resumedWith('task-1', 'task-2', 'task-3'));
	});

	it('takes over nothing that a callback says but the task id', async () => {
		states['task-1'] = 'FAILURE';
		const body = { taskId: 'task-1', state: 'SUCCESS', resultUrls: ['https://evil.example.com'] };
		expect(await call(suspended(['task-1']), { body })).toEqual({
			starts: [
				expect.objectContaining({
					state: 'FAILURE',
					resultUrls: [],
					error: 'Task task-1 failed at the service: no such colour',
				}),
			],
		});
	});

	it('is resumed although callbacks of others were lost', async () => {
		const taskIds = Array.from({ length: 500 }, (_, index) => `task-${index + 1}`);
		finish(...taskIds);
		expect(await call(suspended(taskIds), of('task-500'))).toEqual(resumedWith(...taskIds));
		expect(reads).toHaveLength(500);
		// 500 requests in one process: seconds on a busy machine.
	}, 60_000);

	it('is told so by n8n', async () => {
		finish('task-1');
		const { webhookResponse } = await passTime(resume(suspended(['task-1'])).result);
		expect(webhookResponse).toEqual({ accepted: true, resumed: true });
	});

	it('is evaluated once to be resumed, and no address of its own is', async () => {
		finish('task-1');
		const evaluate = jest.spyOn(WebhookContext.prototype, 'evaluateExpression');
		expect(await call(suspended(['task-1']))).toHaveProperty('starts');
		const evaluated = evaluate.mock.calls.map(([expression]) => expression);
		evaluate.mockRestore();
		expect(evaluated).toEqual(['{{ $input.all() }}']);
	});

	it('lets no item out as timed out', async () => {
		finish('task-1');
		states['task-2'] = 'FAILURE';
		const came = await call(suspended(['task-1', 'task-2']));
		expect(JSON.stringify(came)).not.toContain('timedOut');
	});

	it('lets each result out by itself, where that is wanted', async () => {
		finish('task-1');
		const options = { splitResults: true };
		const came = await call(suspended(['task-1'], { parameters: { options } }));
		expect(came).toMatchObject({
			starts: [
				{ taskId: 'task-1', resultUrl: 'https://m/task-1/1', resultIndex: 0 },
				{ taskId: 'task-1', resultUrl: 'https://m/task-1/2', resultIndex: 1 },
			],
		});
	});

	it.each(['additionalInput', 'splitResults'])(
		'is resumed although an expression in %s cannot be evaluated any more',
		async (option) => {
			finish('task-1');
			const options = { [option]: "={{ $('Gone').item.json.extra }}" };
			const came = await call(suspended(['task-1'], { parameters: { options } }));
			expect(came).toEqual(resumedWith('task-1'));
		},
	);
});

describe('callbacks that come together', () => {
	it('of one task: one resumes, the others are duplicates', async () => {
		finish('task-1');
		const execution = suspended(['task-1']);
		const calls = Array.from({ length: 5 }, () => resume(execution));
		const [first, ...others] = calls as [Arrived, ...Arrived[]];
		expect(await passTime(outcome(first))).toEqual(resumedWith('task-1'));
		first.response.end(200);
		for (const other of others) {
			expect(await passTime(outcome(other))).toMatchObject(DUPLICATE);
		}
		expect(reads).toHaveLength(1);
	});

	it('of all tasks: one resumes, and each task is read once', async () => {
		const taskIds = Array.from({ length: 50 }, (_, index) => `task-${index + 1}`);
		finish(...taskIds);
		const execution = suspended(taskIds);
		const calls = taskIds.map((taskId) => answered(resume(execution, of(taskId))));
		const came = await passTime(Promise.all(calls));
		expect(came.filter((one) => 'starts' in one)).toEqual([resumedWith(...taskIds)]);
		expect(came.filter((one) => !('starts' in one))).toHaveLength(49);
		expect(reads).toHaveLength(50);
	});

	it('where n8n could not store the first: the next one resumes', async () => {
		finish('task-1');
		const execution = suspended(['task-1']);
		const [first, second] = [resume(execution), resume(execution)];
		await passTime(first.result);
		first.response.end(500);
		expect(await passTime(outcome(second))).toEqual(resumedWith('task-1'));
	});

	it('and the first is never answered: the next one is to come again', async () => {
		finish('task-1');
		const execution = suspended(['task-1']);
		await passTime(resume(execution).result);
		expect(await call(execution)).toMatchObject({ status: 503, retryAfter: '5' });
	});

	it('are never fewer than what they tell: the last one sees that all are finished', async () => {
		readMs = 300;
		begin('task-1', 'task-2', 'task-3');
		const execution = suspended(['task-1', 'task-2', 'task-3']);
		const outcomes: Array<ReturnType<typeof outcome>> = [];
		for (const taskId of ['task-2', 'task-3', 'task-1']) {
			finish(taskId);
			outcomes.push(answered(resume(execution, of(taskId))));
			await passSeconds(0.1);
		}
		await passSeconds(10);
		const came = await Promise.all(outcomes);
		expect(came.some((one) => 'starts' in one)).toBe(true);
	});
});

describe('the service', () => {
	/** The least time between two reads of one task. */
	const closest = () =>
		Math.min(
			...reads.map(({ taskId, at }, index) => {
				const next = reads.slice(index + 1).find((later) => later.taskId === taskId);
				return next === undefined ? Infinity : next.at - at;
			}),
		);

	it('is asked about a pending task every two seconds at most, however often it calls back', async () => {
		begin('task-1', 'task-2', 'task-3');
		const execution = suspended(['task-1', 'task-2', 'task-3']);
		// The third is found pending by its own callback, and then finished by the look of the others.
		expect(await call(execution, of('task-3'))).toMatchObject({ status: 503 });
		finish('task-1', 'task-2', 'task-3');
		const calls = ['task-1', 'task-2', 'task-3', 'task-3'].map((taskId) =>
			call(execution, of(taskId)),
		);
		await passTime(Promise.all(calls));
		expect(closest()).toBeGreaterThanOrEqual(2 * SECOND);
		expect(readsOf('task-3')).toBe(2);
	});

	it('is asked no more because a callback that came too early comes in a storm', async () => {
		begin('task-1');
		const execution = suspended(['task-1']);
		const calls = Array.from({ length: 20 }, () => call(execution));
		const came = await passTime(Promise.all(calls));
		expect(came.every((one) => 'status' in one && one.status === 503)).toBe(true);
		expect(reads.length).toBeLessThanOrEqual(2);
		expect(closest()).toBeGreaterThanOrEqual(2 * SECOND);
	});

	it('costs one read for each callback, and one for a task that is still pending', async () => {
		const taskIds = Array.from({ length: 20 }, (_, index) => `task-${index + 1}`);
		begin(...taskIds);
		const execution = suspended(taskIds);
		for (const taskId of taskIds.toReversed()) {
			finish(taskId);
			await call(execution, of(taskId));
		}
		expect(reads.length).toBeLessThanOrEqual(2 * 20);
	});

	it('that takes too long is not waited for: the sender is to try again within 10 s', async () => {
		readMs = 30 * SECOND;
		finish('task-1');
		const startedAt = Date.now();
		const arrived = resume(suspended(['task-1']));
		let answeredAt = Infinity;
		arrived.response.once('close', () => (answeredAt = Date.now()));
		await passSeconds(40);
		expect(await outcome(arrived)).toMatchObject({ status: 503, retryAfter: '5' });
		expect(answeredAt - startedAt).toBeLessThan(10 * SECOND);
	});

	it.each([
		[404, 404],
		[410, 404],
		[401, 503],
		[429, 503],
		[500, 503],
	])(
		'that answers %d for the task of the callback has it answered %d',
		async (status, answered) => {
			statuses = { 'task-1': status };
			expect(await call(suspended(['task-1']))).toMatchObject({ status: answered });
		},
	);

	it.each([404, 401, 500])(
		'that answers %d for another task has the callback come again',
		async (status) => {
			finish('task-1', 'task-2');
			statuses = { 'task-2': status };
			const execution = suspended(['task-1', 'task-2']);
			expect(await call(execution)).toMatchObject({ status: 503, retryAfter: '5' });
			statuses = {};
			expect(await call(execution)).toEqual(resumedWith('task-1', 'task-2'));
			expect(readsOf('task-1')).toBe(1);
		},
	);
});

describe('several processes, each with a memory of its own', () => {
	/** Another process, which knows nothing of what this one remembers. */
	function anotherProcess(): ResumingCallback {
		let admit: typeof admitResume = () => Promise.reject(new Error('Not loaded'));
		jest.isolateModules(() => {
			({ admitResume: admit } = jest.requireActual<{ admitResume: typeof admitResume }>(
				'../../../nodes/MediaGeneration/callback/resumeGate',
			));
		});
		return { admit };
	}

	it('a restart loses nothing', async () => {
		begin('task-2', 'task-3');
		finish('task-1');
		const execution = suspended(['task-1', 'task-2', 'task-3']);
		expect(await call(execution)).toMatchObject(WAITING);
		finish('task-2', 'task-3');
		expect(await call(execution, { ...anotherProcess(), taskId: 'task-3' })).toEqual(
			resumedWith('task-1', 'task-2', 'task-3'),
		);
	});

	it('in a loop, no round is resumed with the tasks of one that another process has resumed', async () => {
		begin('task-2', 'task-3');
		finish('task-1');
		const first = suspended(['task-1', 'task-2']);
		expect(await call(first)).toMatchObject(WAITING);
		finish('task-2');
		expect(await call(first, { ...anotherProcess(), taskId: 'task-2' })).toEqual(
			resumedWith('task-1', 'task-2'),
		);
		const second = suspended(['task-3']);
		expect(await call(second, of('task-1'))).toMatchObject(NOT_WAITING);
		expect(await call(second, of('task-2'))).toMatchObject(NOT_WAITING);
		finish('task-3');
		expect(await call(second, of('task-3'))).toEqual(resumedWith('task-3'));
	});
});

describe('a loop', () => {
	it('resumes each round with its own tasks, and answers late callbacks of earlier ones', async () => {
		for (const taskId of ['task-1', 'task-2', 'task-3']) {
			finish(taskId);
			expect(await call(suspended([taskId]), of(taskId))).toEqual(resumedWith(taskId));
		}
		expect(await call(suspended(['task-4']), of('task-3'))).toMatchObject(NOT_WAITING);
	});

	it('resumes no round with an earlier one whose sender left before n8n answered', async () => {
		finish('task-1');
		const arrived = resume(suspended(['task-1']));
		await passTime(arrived.result);
		arrived.response.close();
		begin('task-2');
		const second = suspended(['task-2']);
		expect(await call(second, of('task-1'))).toMatchObject(NOT_WAITING);
		finish('task-2');
		expect(await call(second, of('task-2'))).toEqual(resumedWith('task-2'));
	});
});
