import type { IDataObject, INodeExecutionData } from 'n8n-workflow';
import nock from '../../nock';

import { accountOf, TaskStart } from '../../../nodes/MediaGeneration/callback/startOnce';
import { callbackToken } from '../../../nodes/MediaGeneration/callback/callbackToken';
import {
	checkItem,
	type CheckState,
	type DeliveryCheck,
	doneItems,
	type ResultsCheck,
} from '../../../nodes/MediaGeneration/suspend/checkState';
import { digest } from '../../../nodes/MediaGeneration/shared/json';
import { API_KEY, CREDENTIAL, executeContext, SERVICE, TRIGGER } from '../../workflow/engine';
import { store, useProcessedData } from '../../workflow/processedData';
import { caught } from '../support';
import {
	delivery,
	deliveryCheck,
	indexes,
	item,
	MINUTE,
	NOW,
	PARENT,
	resultsCheck,
} from './checks';
import { type SubExecution, turnOf } from '../../workflow/subExecution';
import { passTime, time, virtualTime } from '../../workflow/time';

virtualTime();
afterEach(() => nock.cleanAll());

async function at(operation: string, items: INodeExecutionData[], given: SubExecution = {}) {
	const { until, ...ran } = await passTime(turnOf(operation, items, given));
	// Between two reads some milliseconds pass.
	return { ...ran, until: until && new Date(until.getTime() - (until.getTime() % 1000)) };
}

/** A turn that checks. */
async function turn<T extends CheckState>(
	state: T,
	stored: SubExecution['stored'] = { 7: PARENT },
	woken = false,
	credential = CREDENTIAL,
	runs = 20,
) {
	const kept: IDataObject = { state: state as unknown as IDataObject, runs };
	const items = [woken ? { json: { woken } } : checkItem(state)];
	const ran = await at('check', items, { stored, kept, credential });
	return { ...ran, next: ran.kept.state as unknown as T };
}

const STOPPED = { message: 'stopped' };

const asked = (taskId: string) => nock(SERVICE).get(`/api/generate/${taskId}`);
const task = (taskId: string, state: string, more: IDataObject = {}) =>
	asked(taskId).reply(200, { taskId, state, ...more });

it('the first turn leaves an output behind, and the second reads nothing and sleeps for a minute', async () => {
	const items = [checkItem(resultsCheck({ startedAt: NOW }))];
	const { until, output, kept } = await at('check', items);
	expect(until).toBeUndefined();
	// What n8n tells the supervisor where this one dies after a callback has woken it.
	expect(output).toMatchObject(items);
	const second = await at('check', items, { kept });
	expect(second.until).toEqual(new Date(NOW + MINUTE));
	expect(second.kept.state).toEqual(resultsCheck({ startedAt: NOW }));
});

it('the first check comes when the time of a task is up, whatever the interval is', async () => {
	const items = [item(0, NOW + 1000)];
	const state = resultsCheck({ startedAt: NOW, intervalMs: 60 * MINUTE, items });
	const kept: IDataObject = { state: state as unknown as IDataObject, runs: 1 };
	const { until } = await at('check', [checkItem(state)], { kept });
	expect(until).toEqual(new Date(NOW + 1000));
});

it('the results of the turn before end the branch', async () => {
	const { output } = await at('check', doneItems([{ json: { taskId: 'task-0' } }]));
	expect(output).toBeUndefined();
});

describe('a check whose credential cannot be used', () => {
	const check = async (state: CheckState) =>
		await turn(state, { 7: PARENT }, false, { ...CREDENTIAL, apiKey: '' });

	it('is no end, and is followed by another', async () => {
		const { until } = await check(resultsCheck());
		expect(until).toEqual(new Date(NOW + 2.5 * MINUTE));
	});

	it('names twenty of the unfinished tasks, and counts all: n8n stores that anew at each check', async () => {
		const items = indexes(30).map((index) => item(index));
		const { output } = await check(resultsCheck({ items }));
		const tasks = indexes(20).map((index) => `task-${index}`);
		expect(output?.[0]?.json).toMatchObject({ unfinished: 30, tasks });
	});

	it('gives up no task whose time is up: the store of the credential may be back soon', async () => {
		const { until, next } = await check(resultsCheck({ items: [item(0, NOW)] }));
		expect(until).toEqual(new Date(NOW + MINUTE));
		expect((next as ResultsCheck).items).toMatchObject([{ waits: { overdueAt: NOW } }]);
	});

	it('says so of each task whose time is up for ten minutes', async () => {
		const overdueAt = NOW - 10 * MINUTE;
		const waits = { until: overdueAt, timeoutMs: 70 * MINUTE, overdueAt };
		const items = [0, 1, 2, 3, 4].map((index) => ({ ...item(index), waits }));
		const { output } = await check(resultsCheck({ items, onError: 'continueErrorOutput' }));
		const why = expect.stringContaining("the last read failed: The 'API Key'") as string;
		expect(output?.map(({ json }) => json.error)).toEqual(items.map(() => why));
	});

	it('fails at the time of its callbacks where nobody supervises it, as on n8n 1', async () => {
		const deliveries = [delivery(0, NOW - 10 * MINUTE)];
		const overdueAt = NOW - 10 * MINUTE;
		const alone = deliveryCheck({ deliveries, overdueAt, supervisorId: undefined as never });
		await expect(check(alone)).rejects.toThrow('did not reach their trigger in time');
	});
});

it('a check soon after the start of n8n gives up no task that a service in trouble says nothing of', async () => {
	asked('task-0').reply(503, {});
	const { until } = await turn(resultsCheck({ items: [item(0, NOW - 60 * MINUTE)] }));
	expect(until).toEqual(new Date(NOW + MINUTE));
});

it('nor does the first check after n8n was asleep, as on a laptop that was closed', async () => {
	const HOUR = 60 * MINUTE;
	time.jump(2 * HOUR);
	time.setWall(NOW + 10 * HOUR);
	asked('task-0').reply(503, {});
	const { until } = await turn(resultsCheck({ items: [item(0, NOW + 9 * HOUR)] }));
	expect(until).toEqual(new Date(NOW + 10 * HOUR + MINUTE));
});

it.each([
	['results', resultsCheck, false],
	['results, be it woken by a callback', resultsCheck, true],
	['lost callbacks', deliveryCheck, false],
])('a check for %s reads nothing before the time that the service asked for', async (...given) => {
	const [, make, woken] = given;
	const read = task('task-0', 'SUCCESS');
	const state = make({ notBefore: NOW + 20 * MINUTE });
	const { until, next } = await turn<CheckState>(state, { 7: PARENT }, woken);
	expect(read.isDone()).toBe(false);
	expect(until).toEqual(new Date(NOW + 20 * MINUTE));
	expect(next).toEqual(state);
});

it.each([
	['results', resultsCheck({ items: indexes(7).map((index) => item(index)) })],
	['lost callbacks', deliveryCheck({ deliveries: indexes(7).map((index) => delivery(index)) })],
])('a check for %s sends no two reads in the same instant', async (_what, state) => {
	const readAt: number[] = [];
	const reads = nock(SERVICE).get(/task-/).times(7);
	reads.reply(404, () => {
		readAt.push(Date.now());
		return { message: 'no such task' };
	});
	await turn<CheckState>(state);
	expect(readAt).toHaveLength(7);
	expect(new Set(readAt).size).toBe(7);
});

describe('a check for results', () => {
	/** The execution, where it waits for something else. */
	const executionData = { nodeExecutionStack: [{ metadata: {} }] };
	const ELSEWHERE = { ...PARENT, executionData, waitTill: undefined };
	const late = { items: [item(0, NOW), item(1, NOW)] };

	it('sleeps on while a task is not finished, and remembers what it found', async () => {
		task('task-0', 'SUCCESS', { resultUrls: ['https://m/1'] });
		task('task-1', 'PENDING');
		const { until, next, output } = await turn(resultsCheck());
		expect(until).toEqual(new Date(NOW + 2.5 * MINUTE));
		expect(next.items.map(({ waits }) => waits !== undefined)).toEqual([false, true]);
		expect(output?.[0]?.json.tasks).toEqual(['task-1']);
	});

	it('ends with one item for each input item, in order', async () => {
		task('task-0', 'SUCCESS', { resultUrls: ['https://m/1'] });
		task('task-1', 'FAILURE', { error: { message: 'no such colour' } });
		const { until, output } = await turn(resultsCheck());
		const error = 'Task task-1 failed at the service: no such colour';
		expect(until).toBeUndefined();
		const first = { taskId: 'task-0', state: 'SUCCESS', resultUrls: ['https://m/1'] };
		expect(output).toMatchObject([
			{ json: first, pairedItem: { item: 0 } },
			{ json: { taskId: 'task-1', state: 'FAILURE', error }, pairedItem: { item: 1 } },
		]);
	});

	it('leaves failed tasks to the error output of the node that waits', async () => {
		task('task-0', 'SUCCESS');
		task('task-1', 'FAILURE');
		const { output } = await turn(resultsCheck({ onError: 'continueErrorOutput' }));
		const details = expect.objectContaining({ taskId: 'task-1', state: 'FAILURE' }) as unknown;
		expect(output?.[1]).toEqual({
			json: { error: 'Task task-1 failed at the service', details },
			pairedItem: { item: 1 },
		});
	});

	it.each([
		['all tasks failed', 'FAILURE', 'keep'],
		['the node is to stop where some fail', 'SUCCESS', 'stop'],
	] as const)('fails, and names all tasks, where %s', async (_what, state, ifSomeFail) => {
		task('task-0', state);
		task('task-1', 'FAILURE');
		const { failure } = await turn(resultsCheck({ ifSomeFail }));
		expect(failure?.message).toContain('Task task-');
		for (const id of ['task-0', 'task-1']) expect(failure?.description).toContain(id);
	});

	it('that fails also names the tasks that were created anew, and what may be paid for', async () => {
		task('task-1', 'FAILURE');
		const message = 'It is not known whether the task was created. No answer';
		const anew = { ...item(1), item: 0, json: { taskId: 'task-1', failedTaskIds: ['task-0'] } };
		const items = [anew, { item: 1, json: { model: 'm' }, failure: { message } }];
		const { failure } = await turn(resultsCheck({ items }));
		expect(failure?.description).toContain(
			'2 tasks failed, which is usually free: task-0, task-1.',
		);
		expect(failure?.description).toContain('Sent, but the answer was lost: item 2.');
	});

	it('lets a task whose time is up out as a failed item, with what is known and its id', async () => {
		task('task-0', 'SUCCESS');
		task('task-1', 'PENDING', { progress: 50 });
		const { output } = await turn(resultsCheck(late));
		expect(output?.[0]?.json).not.toHaveProperty('timedOut');
		expect(output?.[1]?.json).toMatchObject({
			taskId: 'task-1',
			timedOut: true,
			record: { progress: 50 },
			error: 'Task task-1 is not finished after 4200 s (last state: PENDING)',
		});
	});

	it('waits for the end of a pause that is over soon, although the time of its tasks is up', async () => {
		const { until, next } = await turn(resultsCheck({ ...late, notBefore: NOW + 3 * MINUTE }));
		expect(until).toEqual(new Date(NOW + 3 * MINUTE));
		expect(next.items.every(({ waits }) => waits)).toBe(true);
	});

	it('gives up at its time what the service lets nobody read then', async () => {
		const read = task('task-0', 'SUCCESS');
		const { failure } = await turn(resultsCheck({ ...late, notBefore: NOW + 20 * MINUTE }));
		expect(read.isDone()).toBe(false);
		expect(failure?.message).toContain('Task task-0 is not finished after 4200 s');
	});

	it('that a callback asked for is followed by one within a minute', async () => {
		task('task-0', 'PENDING');
		const { until } = await turn(resultsCheck(), { 7: PARENT }, true);
		expect(until).toEqual(new Date(NOW + MINUTE));
	});

	it.each<[string, IDataObject | undefined]>([
		['was deleted', undefined],
		['was stopped', { ...PARENT, resultData: { error: STOPPED } }],
		['died before it was suspended', { resultData: {}, executionData: {} }],
		['waits for something else now', ELSEWHERE],
	])('reads nothing where the execution %s', async (_what, parent) => {
		const { until, output } = await turn(resultsCheck(), { 7: parent });
		expect(until).toBeUndefined();
		expect(output).toHaveLength(1);
		expect(output?.[0]?.json).toEqual({
			message: expect.stringContaining("waited for these tasks of 'Media' has ended") as string,
			taskIds: ['task-0', 'task-1'],
		});
	});

	it.each<[string, IDataObject | undefined]>([
		['has not stored that the execution waits', { resultData: {}, executionData: {} }],
		['has stored nothing of a run by hand', undefined],
	])('reads nothing in its first runs while n8n %s', async (_what, parent) => {
		const { until, next } = await turn(resultsCheck(), { 7: parent }, false, CREDENTIAL, 19);
		expect(until).toEqual(new Date(NOW + MINUTE));
		expect(next).toEqual(resultsCheck());
	});

	it.each<[string, string | undefined, number]>([
		['goes on with the error of the execution that is retried', digest(STOPPED), 0],
		['ends with another error than that', digest({ message: 'another' }), 1],
	])('%s', async (_what, earlierError, ended) => {
		task('task-0', 'PENDING');
		const parent = { ...PARENT, resultData: { error: STOPPED } };
		const { output } = await turn(resultsCheck({ earlierError }), { 7: parent });
		expect(output?.filter(({ json }) => json.message)).toHaveLength(ended);
	});

	it('gives up no task whose time comes while another is read: most of them have not been read before', async () => {
		asked('task-0').reply(200, () => {
			time.jump(20_000);
			return { taskId: 'task-0', state: 'PENDING' };
		});
		const soon = NOW + 10_000;
		const { next, until } = await turn(resultsCheck({ items: [item(0, soon), item(1, soon)] }));
		expect(next.items.every(({ waits }) => waits)).toBe(true);
		expect(until).toEqual(new Date(soon));
	});

	it('keeps to a pause that is asked for late in it', async () => {
		asked('task-0').reply(() => {
			time.jump(20_000);
			return [429, {}, { 'Retry-After': '300' }];
		});
		const { until } = await turn(resultsCheck());
		expect(until).toEqual(new Date(NOW + 320_000));
	});

	it('hands no results to an execution that went on while they were fetched', async () => {
		const stored: Record<string, unknown> = { 7: PARENT };
		task('task-0', 'SUCCESS');
		asked('task-1').reply(200, () => {
			stored[7] = ELSEWHERE;
			return { taskId: 'task-1', state: 'SUCCESS' };
		});
		const { output } = await turn(resultsCheck(), stored);
		expect(output?.[0]?.json.taskIds).toEqual(['task-0', 'task-1']);
	});
});

describe('a check for lost callbacks', () => {
	useProcessedData();

	const PATH = '/webhook/a/callback';
	const token = callbackToken(PATH, API_KEY);
	const trigger = (status: number, body: object = { accepted: true }, taskId = 'task-0') =>
		nock('https://n8n.test')
			.post(PATH, { taskId, state: 'SUCCESS' })
			.query({ token })
			.reply(status, body);
	const until0 = (first: number, second: number) =>
		deliveryCheck({ deliveries: [delivery(0, first), delivery(1, second)] });
	const leftIn = ({ deliveries }: DeliveryCheck) => deliveries.map(({ taskId }) => taskId);

	it('delivers what is finished under the token, and sleeps on for the rest', async () => {
		task('task-0', 'SUCCESS');
		task('task-1', 'PENDING');
		const delivered = trigger(200);
		const { until, next } = await turn(deliveryCheck());
		expect(delivered.isDone()).toBe(true);
		expect(until).toEqual(new Date(NOW + 2.5 * MINUTE));
		expect(leftIn(next)).toEqual(['task-1']);
	});

	it('asks neither the service nor a trigger of this workflow that has started for the task', async () => {
		const node = { ...TRIGGER, id: 'trigger' };
		const start = { account: accountOf(SERVICE, 'credential'), taskId: 'task-0' };
		await new TaskStart(executeContext({ node }), start, 'callback').claim();
		const own = { ...delivery(0), triggerId: 'trigger', triggerCredentialId: 'credential' };
		const { output } = await turn(deliveryCheck({ deliveries: [own] }));
		expect(output).toMatchObject([{ json: { delivered: true } }]);
		expect(store.rows.size).toBe(1);
	});

	it.each([0, 60 * MINUTE])(
		'checks again a minute after the timeout for what could not be delivered just then (interval %d ms)',
		async (intervalMs) => {
			task('task-0', 'SUCCESS');
			asked('task-1').reply(500);
			trigger(502);
			const startedAt = NOW - 120 * MINUTE;
			const { next, until } = await turn({ ...until0(NOW, NOW), intervalMs, startedAt });
			expect(until).toEqual(new Date(NOW + MINUTE));
			expect(leftIn(next)).toHaveLength(2);
		},
	);

	it('forgets none whose time is up while another is waited for: it is delivered late, or named at the end', async () => {
		task('task-0', 'PENDING');
		task('task-1', 'PENDING');
		const { next } = await turn(until0(NOW - MINUTE, NOW + 60 * MINUTE));
		expect(leftIn(next)).toEqual(['task-0', 'task-1']);

		task('task-0', 'PENDING');
		task('task-1', 'SUCCESS');
		trigger(200, { accepted: true }, 'task-1');
		const { failure } = await turn(next);
		expect(failure?.message).toContain('1 of the tasks');
		expect(failure?.description).toContain('task-0: not finished');
	});

	it('checks at the next deadline, whatever others have passed', async () => {
		task('task-0', 'PENDING');
		task('task-1', 'PENDING');
		const { until } = await turn(until0(NOW - MINUTE, NOW + MINUTE));
		expect(until).toEqual(new Date(NOW + MINUTE));
	});

	it('that comes long after the time of its tasks, since n8n was down, is followed by others for ten minutes', async () => {
		const own = { ...delivery(0, NOW - 60 * MINUTE), triggerId: 'trigger' };
		const check = async (state: DeliveryCheck) => {
			task('task-0', 'SUCCESS');
			// It has stored an execution for the task, which has not begun yet.
			trigger(200, { accepted: false, reason: 'duplicate' });
			return await turn(state);
		};
		const first = await check(deliveryCheck({ deliveries: [own] }));
		expect(first.failure).toBeUndefined();
		expect(leftIn(first.next)).toEqual(['task-0']);
		time.jump(10 * MINUTE);
		const { failure } = await check(first.next);
		expect(failure?.description).toContain('task-0: delivered, and has not started');
	});

	it('fails at the timeout, and names what is left and why', async () => {
		task('task-0', 'SUCCESS');
		task('task-1', 'PENDING');
		trigger(404);
		const overdueAt = NOW - 10 * MINUTE;
		const { failure } = await turn({ ...until0(overdueAt, overdueAt), overdueAt });
		expect(failure?.message).toContain('2 of the tasks');
		expect(failure?.description).toMatch(/task-0.*HTTP 404.*task-1: not finished/);
		expect(failure?.description).not.toContain(token);
	});
});

describe('a supervisor', () => {
	const BEGIN = [checkItem(resultsCheck())];
	const supervise = async (given: SubExecution = {}, items = BEGIN) =>
		await at('supervise', items, given);
	const tasksIn = (state: CheckState | undefined) =>
		(state as ResultsCheck).items.map(({ json }) => json.taskId);

	const letOut = (output: INodeExecutionData[] = []) =>
		output.map(({ json }) => [json.taskId, json.timedOut]);
	const BOTH = [
		['task-0', true],
		['task-1', true],
	];

	it('starts one that checks, and names the tasks in case it dies itself', async () => {
		const { begun, output } = await supervise();
		expect(begun).toMatchObject([{ purpose: 'results', supervisorId: '1' }]);
		expect(letOut(output)).toEqual(BOTH);
	});

	it('starts another where that one died, which goes on with what it knew', async () => {
		const { kept } = await supervise();
		const state = resultsCheck({ items: resultsCheck().items.slice(1) });
		const contextData = { 'node:Checks the tasks': { state } };
		const { begun } = await supervise({ kept, stored: { 3: { executionData: { contextData } } } });
		expect(begun.map(tasksIn)).toEqual([['task-1']]);
	});

	it('has the other check a minute later, however long was waited: a check was due when that one died', async () => {
		const { kept } = await supervise();
		const [state] = (await supervise({ kept })).begun;
		const items = [checkItem(state as CheckState)];
		const first = await at('check', items);
		const { until } = await at('check', items, { kept: first.kept });
		expect(until).toEqual(new Date(NOW + MINUTE));
	});

	it('has the fifth one bring no files, since too large a file may have killed the others', async () => {
		const output = { download: true, split: false, binaryField: 'image' };
		const state = resultsCheck({ items: [{ ...item(0), output }] });
		/** What becomes of the files where each checker has run so often when it dies. */
		const filesAfter = async (...runs: number[]) => {
			let { kept, begun } = await supervise({}, [checkItem(state)]);
			const brought: unknown[] = [];
			for (const each of runs) {
				const contextData = { 'node:Checks the tasks': { state, runs: each } };
				const stored = { 3: { executionData: { contextData } } };
				({ kept, begun } = await supervise({ kept, stored }, [checkItem(state)]));
				brought.push((begun[0] as ResultsCheck).items[0]?.output?.download);
			}
			return brought;
		};
		expect(await filesAfter(2, 2, 2, 2, 2)).toEqual([true, true, true, true, false]);
		// The third one has slept after a check, so no file killed it.
		expect(await filesAfter(2, 2, 3, 2, 2)).toEqual([true, true, true, true, true]);
	});

	it('counts a death once, although n8n then starts no other checker for minutes', async () => {
		const output = { download: true, split: false, binaryField: 'image' };
		const state = resultsCheck({ items: [{ ...item(0), output }] });
		const contextData = { 'node:Checks the tasks': { state, runs: 2 } };
		const stored = { 3: { executionData: { contextData } } };
		const executeWorkflow = async () => await Promise.reject(new Error('Not now'));
		let { kept } = await supervise({}, [checkItem(state)]);
		for (let minutes = 1; minutes <= 5; minutes++) {
			({ kept } = await supervise({ kept, stored, host: { executeWorkflow } }, [checkItem(state)]));
		}
		const { begun } = await supervise({ kept, stored }, [checkItem(state)]);
		expect((begun[0] as ResultsCheck).items[0]?.output?.download).toBe(true);
	});

	it('lets n8n rest where checks kill it that bring no files, and ends some time after the time of the tasks', async () => {
		const afterDeaths = async (deaths: number, minutesLeft: number) => {
			const items = [0, 1].map((index) => item(index, NOW + minutesLeft * MINUTE));
			const state = resultsCheck({ items, onError: 'continueRegularOutput' });
			return await supervise({ kept: { checkerId: '3', deaths: deaths - 1 } }, [checkItem(state)]);
		};
		expect((await afterDeaths(5, 60)).begun).toMatchObject([{ woken: true }]);
		expect((await afterDeaths(6, 60)).begun).toMatchObject([{ woken: false }]);
		expect((await afterDeaths(6, -14)).begun).toHaveLength(1);
		const { begun, until, output } = await afterDeaths(6, -16);
		expect([begun, until, letOut(output)]).toEqual([[], undefined, BOTH]);
	});

	it('starts another from the beginning where that one was deleted', async () => {
		const { kept } = await supervise();
		const { begun } = await supervise({ kept });
		expect(begun.map(tasksIn)).toEqual([['task-0', 'task-1']]);
	});

	it('lets the items out some time after theirs is up, where n8n starts none any more', async () => {
		const executeWorkflow = async () => await Promise.reject(new Error('Not allowed'));
		const items = [0, 1].map((index) => item(index, NOW - 20 * MINUTE));
		// The service had asked the checker that died for a pause.
		const notBefore = NOW - 30 * MINUTE;
		const over = [checkItem(resultsCheck({ items, notBefore, onError: 'continueRegularOutput' }))];
		// n8n may have been down until a moment ago.
		const soon = await supervise({ host: { executeWorkflow } }, over);
		expect(soon.until).toEqual(new Date(NOW + MINUTE));
		time.jump(15 * MINUTE);
		const { until, output = [] } = await supervise({ host: { executeWorkflow } }, over);
		expect(until).toBeUndefined();
		expect(letOut(output)).toEqual(BOTH);
		// What leaves where nobody is to check any more, and not what is let out in between.
		expect(output[0]?.json.error).toContain('task-0 is not finished');
	});

	it('takes what the one that checks put out last for its death, and begins anew', async () => {
		const sleeping = [{ json: { nextCheck: '2026-01-01', tasks: ['task-0'] } }];
		expect((await at('report', sleeping, { begin: BEGIN })).output).toEqual(BEGIN);
	});

	it('fails where the node that waits is to fail', async () => {
		// n8n has words of its own for a text with this code.
		const why = { message: 'Task task-0 failed: ETIMEDOUT', description: 'Tasks: task-0' };
		const { message } = await caught(async () => await at('report', doneItems([], why)));
		expect(message).toBe(why.message);
	});
});

describe('what makes up for lost callbacks, where n8n starts no check any more,', () => {
	const executeWorkflow = async () => await Promise.reject(new Error('Not allowed'));
	const supervised = async (minutesAgo: number) => {
		time.jump(15 * MINUTE);
		const deliveries = [delivery(0, Date.now() - minutesAgo * MINUTE)];
		const items = [checkItem(deliveryCheck({ deliveries }))];
		return await at('supervise', items, { host: { executeWorkflow } });
	};

	it('ends some time after that of its tasks is up, and names them', async () => {
		const { until, failure } = await supervised(30);
		expect(until).toBeUndefined();
		expect(failure?.description).toContain('task-0');
	});

	it('tries again in a minute before that', async () => {
		const { until, failure } = await supervised(10);
		expect([until, failure]).toEqual([new Date(NOW + 16 * MINUTE), undefined]);
	});
});
