import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import nock from '../../nock';

import { accountOf, mayStart } from '../../../nodes/MediaGeneration/callback/startOnce';
import { callbackToken } from '../../../nodes/MediaGeneration/callback/callbackToken';
import { runCheckOperation } from '../../../nodes/MediaGeneration/suspend/checkRun';
import {
	type DeliveryCheck,
	type ResultsCheck,
	type AwaitedDelivery,
	type CheckState,
	diedItems,
	doneItems,
	readDone,
	checkItem,
} from '../../../nodes/MediaGeneration/suspend/checkState';
import { without } from '../../../nodes/MediaGeneration/shared/json';
import { API_KEY, executeContext, TRIGGER } from '../../workflow/engine';
import { type ProcessedData, useProcessedData } from '../../workflow/processedData';
import { caught, FakeClock } from '../support';

const SERVICE = 'https://api.example.com';
const NOW = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;

const base = {
	version: 1,
	nodeName: 'Media',
	startedAt: NOW - 10 * MINUTE,
	intervalMs: 0,
	supervisorId: '8',
} as const;
const results = (more: Partial<ResultsCheck> = {}): ResultsCheck => ({
	...base,
	purpose: 'results',
	turn: 'checks',
	parentExecutionId: '7',
	onError: 'stopWorkflow',
	ifSomeFail: 'keep',
	output: { download: false, split: false, binaryField: 'data' },
	items: ['task-1', 'task-2'].map((taskId, item) => ({
		item,
		json: { taskId, state: 'PENDING', model: 'm', input: { prompt: taskId } },
		waits: { until: NOW + 60 * MINUTE, timeoutMs: 70 * MINUTE },
	})),
	...more,
});
const delivery = (more: Partial<DeliveryCheck> = {}): DeliveryCheck => ({
	...base,
	purpose: 'delivery',
	turn: 'checks',
	deliveries: ['task-1', 'task-2'].map((taskId) => ({
		taskId,
		until: NOW + 60 * MINUTE,
		address: 'https://n8n.test/webhook/a/callback',
	})),
	...more,
});

/** What n8n has stored of other executions. */
type Stored = Record<string, IDataObject | undefined>;

/** The execution that waits, which names the supervisor. */
const PARENT = {
	resultData: {},
	waitTill: new Date(NOW + 60 * MINUTE),
	executionData: { nodeExecutionStack: [{ metadata: { waitingChildExecutionIds: ['8'] } }] },
};

/** One turn of the node in a sub-execution. */
async function turn(state: CheckState, stored: Stored = { 7: PARENT }) {
	const context = executeContext({
		node: { parameters: { resource: 'task', operation: 'check' } },
		items: [checkItem(state)],
		credential: { baseUrl: SERVICE, apiKey: API_KEY },
	});
	let until: Date | undefined;
	const asked: string[] = [];
	const changed: Partial<IExecuteFunctions> = {
		putExecutionToWait: async (date) => {
			until = date;
			await Promise.resolve();
		},
		getExecutionDataById: async (id) => {
			asked.push(id);
			return await Promise.resolve(stored[id] as never);
		},
	};
	Object.assign(context, changed);
	const output = await runCheckOperation(context, 'check', new FakeClock(), () => NOW);
	const [next] = context.getExecuteData().data.main?.[0] ?? [];
	const done = readDone(output?.[0] ?? []);
	return {
		output: done?.results ?? output?.[0],
		failure: done?.failure,
		until,
		next: next?.json.check as CheckState | undefined,
		asked,
	};
}

const task = (taskId: string, state: string, more: IDataObject = {}) =>
	nock(SERVICE)
		.get(`/api/generate/${taskId}`)
		.reply(200, { taskId, state, ...more });

it('the first turn leaves an output behind, and the second reads nothing and sleeps for a minute', async () => {
	const first = await turn(without(results({ startedAt: NOW }), 'turn'), {});
	expect(first.until).toBeUndefined();
	// What n8n tells the supervisor where this one dies after a callback has woken it.
	const rests = first.output?.[0]?.json.check as unknown as CheckState;
	const { until, next } = await turn(rests, {});
	expect(until).toEqual(new Date(NOW + MINUTE));
	expect(next).toMatchObject({
		turn: 'checks',
		items: [{ json: { taskId: 'task-1' } }, { json: { taskId: 'task-2' } }],
	});
});

it('the results of the turn before end the branch', async () => {
	const context = executeContext({
		node: {},
		items: doneItems([{ json: { taskId: 'task-1' } }]),
		credential: { baseUrl: SERVICE, apiKey: API_KEY },
	});
	expect(await runCheckOperation(context, 'check')).toBeNull();
});

describe('a check for results', () => {
	it('sleeps on while a task is not finished, and remembers what it found', async () => {
		task('task-1', 'SUCCESS', { resultUrls: ['https://m/1'] });
		task('task-2', 'PENDING');
		const { until, next, output } = await turn(results());
		expect(until).toEqual(new Date(NOW + 2.5 * MINUTE));
		expect((next as ResultsCheck).items.map(({ json, waits }) => waits && json.taskId)).toEqual([
			undefined,
			'task-2',
		]);
		expect(output?.[0]?.json.tasks).toEqual(['task-2']);
	});

	it('ends with one item for each input item, in order', async () => {
		task('task-1', 'SUCCESS', { resultUrls: ['https://m/1'] });
		task('task-2', 'FAILURE', { error: { message: 'no such colour' } });
		const { until, output } = await turn(results());
		expect(until).toBeUndefined();
		expect(output).toMatchObject([
			{
				json: { taskId: 'task-1', state: 'SUCCESS', resultUrls: ['https://m/1'], model: 'm' },
				pairedItem: { item: 0 },
			},
			{
				json: {
					taskId: 'task-2',
					state: 'FAILURE',
					error: 'Task task-2 failed at the service: no such colour',
				},
				pairedItem: { item: 1 },
			},
		]);
	});

	it('leaves failed tasks to the error output of the node that waits', async () => {
		task('task-1', 'SUCCESS');
		task('task-2', 'FAILURE');
		const { output } = await turn(results({ onError: 'continueErrorOutput' }));
		expect(output?.[1]).toEqual({
			json: {
				error: 'Task task-2 failed at the service',
				details: expect.objectContaining({ taskId: 'task-2', state: 'FAILURE' }) as unknown,
			},
			pairedItem: { item: 1 },
		});
	});

	it.each([
		['all tasks failed', 'FAILURE', 'keep'],
		['the node is to stop where some fail', 'SUCCESS', 'stop'],
	])('fails, and names all tasks, where %s', async (_what, state, ifSomeFail) => {
		task('task-1', state);
		task('task-2', 'FAILURE');
		const { failure } = await turn(results({ ifSomeFail }));
		expect(failure?.message).toContain('Task task-');
		for (const id of ['task-1', 'task-2']) expect(failure?.description).toContain(id);
	});

	it('that fails also names the tasks that were created anew, and what may be paid for', async () => {
		task('task-1', 'FAILURE');
		const [first] = results().items;
		const items = [
			{ ...first, item: 0, json: { ...first?.json, failedTaskIds: ['task-0'] } },
			{
				item: 1,
				json: { model: 'm' },
				failure: { message: 'It is not known whether the task was created. No answer' },
			},
		];
		const { failure } = await turn(results({ items }));
		expect(failure?.description).toContain(
			'2 tasks failed, which is usually free: task-0, task-1.',
		);
		expect(failure?.description).toContain('Sent, but the answer was lost: item 2.');
	});

	it('lets a task whose time is up out as a failed item, with what is known and its id', async () => {
		task('task-1', 'SUCCESS');
		task('task-2', 'PENDING', { progress: 50 });
		const { items } = results();
		const late = items.map((item) => ({
			...item,
			waits: { until: NOW, timeoutMs: 70 * MINUTE },
		}));
		const { output } = await turn(results({ items: late }));
		expect(output?.[0]?.json).not.toHaveProperty('timedOut');
		expect(output?.[1]?.json).toMatchObject({
			state: 'PENDING',
			timedOut: true,
			record: { progress: 50 },
			error: 'Task task-2 is not finished after 4200 s (last state: PENDING)',
		});
	});

	it('reads nothing before the time that the service asked for, be it woken by a callback', async () => {
		const read = task('task-1', 'SUCCESS');
		const notBefore = NOW + 20 * MINUTE;
		const { until, next } = await turn(results({ notBefore, woken: true }));
		expect(read.isDone()).toBe(false);
		expect(until).toEqual(new Date(notBefore));
		expect(next).toMatchObject({ notBefore, items: results().items });
		nock.cleanAll();
	});

	it('gives up at its time what the service lets nobody read then', async () => {
		const read = task('task-1', 'SUCCESS');
		const items = results().items.map((item) => ({
			...item,
			waits: { until: NOW, timeoutMs: 70 * MINUTE },
		}));
		const { failure } = await turn(results({ items, notBefore: NOW + 20 * MINUTE }));
		expect(read.isDone()).toBe(false);
		expect(failure?.message).toContain('Task task-1 is not finished after 4200 s');
		nock.cleanAll();
	});

	it('that is refused sleeps as long as the service asks', async () => {
		nock(SERVICE).get('/api/generate/task-1').reply(429, {}, { 'Retry-After': '1200' });
		const { until } = await turn(results());
		expect(until).toEqual(new Date(NOW + 20 * MINUTE));
	});

	it('that cannot use the credential is no end', async () => {
		nock(SERVICE).get(/.*/).reply(401, {});
		const { until } = await turn(results());
		expect(until).toEqual(new Date(NOW + 2.5 * MINUTE));
	});

	it.each<[string, IDataObject | undefined]>([
		['was deleted', undefined],
		['was stopped', { ...PARENT, resultData: { error: { message: 'stopped' } } }],
		['died before it was suspended', { resultData: {}, executionData: {} }],
		[
			'waits for something else now',
			{ ...PARENT, executionData: { nodeExecutionStack: [{ metadata: {} }] }, waitTill: undefined },
		],
	])('reads nothing where the execution %s', async (_what, parent) => {
		const { until, output } = await turn(results(), { 7: parent });
		expect(until).toBeUndefined();
		expect(output).toHaveLength(1);
		expect(output?.[0]?.json.taskIds).toEqual(['task-1', 'task-2']);
	});
});

describe('a check for lost callbacks', () => {
	const token = callbackToken('/webhook/a/callback', API_KEY);
	const trigger = (status: number) =>
		nock('https://n8n.test')
			.post('/webhook/a/callback', { taskId: 'task-1', state: 'SUCCESS' })
			.query({ token })
			.reply(status, { accepted: true });

	it('delivers what is finished under the token, and sleeps on for the rest', async () => {
		task('task-1', 'SUCCESS');
		task('task-2', 'PENDING');
		const delivered = trigger(200);
		const { until, next } = await turn(delivery());
		expect(delivered.isDone()).toBe(true);
		expect(until).toEqual(new Date(NOW + 2.5 * MINUTE));
		expect((next as DeliveryCheck).deliveries.map(({ taskId }) => taskId)).toEqual(['task-2']);
	});

	it('reads nothing before the time that the service asked for', async () => {
		const read = task('task-1', 'SUCCESS');
		const notBefore = NOW + 20 * MINUTE;
		const { until, next } = await turn(delivery({ notBefore }));
		expect(read.isDone()).toBe(false);
		expect(until).toEqual(new Date(notBefore));
		expect(next).toMatchObject({ notBefore });
		nock.cleanAll();
	});

	it('tries a trigger again that does not take it', async () => {
		task('task-1', 'SUCCESS');
		task('task-2', 'PENDING');
		trigger(404);
		const { next } = await turn(delivery());
		expect((next as DeliveryCheck).deliveries).toHaveLength(2);
	});

	describe('to a trigger of this workflow', () => {
		let ledger: ProcessedData;
		beforeAll(async () => {
			ledger = await useProcessedData();
		});
		beforeEach(() => ledger.reset());

		const own = {
			...delivery().deliveries[0],
			triggerId: 'trigger',
			triggerCredentialId: 'credential',
		} as AwaitedDelivery;

		it('asks neither the service nor the trigger where that has started for the task', async () => {
			const credential = { baseUrl: SERVICE, apiKey: API_KEY };
			const node = { ...TRIGGER, id: 'trigger' };
			const start = { account: accountOf(SERVICE, 'credential'), taskId: 'task-1' };
			await mayStart(executeContext({ node, credential }), start, 'callback');
			const { output } = await turn(delivery({ deliveries: [own] }));
			expect(output).toEqual([{ json: { delivered: true } }]);
			expect(ledger.rows.size).toBe(1);
		});

		it('delivers once more what was only stored there: n8n may have lost it', async () => {
			task('task-1', 'SUCCESS');
			nock('https://n8n.test')
				.post('/webhook/a/callback')
				.query(true)
				.reply(200, { accepted: false, reason: 'duplicate' });
			const { next } = await turn(delivery({ deliveries: [own] }));
			expect((next as DeliveryCheck).deliveries[0]?.last).toContain('has not started');
		});
	});

	describe('to a trigger of this n8n, whose public address has changed', () => {
		const ofThen = {
			taskId: 'task-1',
			until: NOW + 60 * MINUTE,
			address: '/a/callback?reference=row+7',
		};
		const tokenOf7 = callbackToken('/webhook/a/callback', API_KEY, 'row 7');
		const at = (origin: string, status: number) =>
			nock(origin)
				.post('/webhook/a/callback', { taskId: 'task-1', state: 'SUCCESS' })
				.query({ token: tokenOf7, reference: 'row 7' })
				.reply(status, { accepted: true });

		it('goes to the present one, with the reference', async () => {
			task('task-1', 'SUCCESS');
			const taken = at('https://n8n.test', 200);
			const { output } = await turn(delivery({ deliveries: [ofThen] }));
			expect(taken.isDone()).toBe(true);
			expect(output).toEqual([{ json: { delivered: true } }]);
		});

		it('goes to no other n8n than the one that was entered', async () => {
			task('task-1', 'SUCCESS');
			const address = 'https://gone.test/webhook/a/callback?reference=row+7';
			const refused = at('https://gone.test', 404);
			const { next } = await turn(delivery({ deliveries: [{ ...ofThen, address }] }));
			expect(refused.isDone()).toBe(true);
			expect((next as DeliveryCheck).deliveries[0]?.last).toContain('HTTP 404');
		});
	});

	it('ends when all have arrived', async () => {
		const { deliveries } = delivery();
		task('task-1', 'SUCCESS');
		trigger(200);
		const { until, output } = await turn(delivery({ deliveries: deliveries.slice(0, 1) }));
		expect(until).toBeUndefined();
		expect(output).toEqual([{ json: { delivered: true } }]);
	});

	it('checks again after the timeout for what could not be delivered just then', async () => {
		task('task-1', 'SUCCESS');
		nock(SERVICE).get('/api/generate/task-2').reply(500);
		trigger(502);
		const deliveries = delivery().deliveries.map((each) => ({ ...each, until: NOW }));
		const { next, until } = await turn(delivery({ deliveries }));
		expect(until).toBeInstanceOf(Date);
		expect((next as DeliveryCheck).deliveries).toHaveLength(2);
	});

	it('forgets none whose time is up while another is waited for: it is delivered late, or named at the end', async () => {
		task('task-1', 'PENDING');
		task('task-2', 'PENDING');
		const [first, second] = delivery().deliveries;
		const early = { ...first, until: NOW - MINUTE } as AwaitedDelivery;
		const state = delivery({ deliveries: [early, second as AwaitedDelivery] });
		const { next } = await turn(state);
		expect((next as DeliveryCheck).deliveries.map(({ taskId }) => taskId)).toEqual([
			'task-1',
			'task-2',
		]);

		task('task-1', 'PENDING');
		task('task-2', 'SUCCESS');
		nock('https://n8n.test').post('/webhook/a/callback').query(true).reply(200, { accepted: true });
		const { failure } = await turn(next as DeliveryCheck);
		expect(failure?.message).toContain('1 of the tasks');
		expect(failure?.description).toContain('task-1: not finished');
	});

	it('checks at the next deadline, whatever others have passed', async () => {
		task('task-1', 'PENDING');
		task('task-2', 'PENDING');
		const [first, second] = delivery().deliveries;
		const { until } = await turn(
			delivery({
				deliveries: [
					{ ...first, until: NOW - MINUTE } as AwaitedDelivery,
					{ ...second, until: NOW + MINUTE } as AwaitedDelivery,
				],
			}),
		);
		expect(until).toEqual(new Date(NOW + MINUTE));
	});

	it('fails at the timeout, and names what is left and why', async () => {
		task('task-1', 'SUCCESS');
		task('task-2', 'PENDING');
		trigger(404);
		const late = NOW - 10 * MINUTE;
		const deliveries = delivery().deliveries.map((each) => ({ ...each, until: late }));
		const { failure } = await turn(delivery({ deliveries }));
		expect(failure?.message).toContain('2 of the tasks');
		expect(failure?.description).toContain('task-1');
		expect(failure?.description).toContain('HTTP 404');
		expect(failure?.description).toContain('task-2: not finished');
		expect(failure?.description).not.toContain(token);
	});
});

describe('a supervisor', () => {
	/** One turn of it; what the node keeps in its context is kept in `store`. */
	async function supervise(
		items: INodeExecutionData[],
		store: IDataObject = {},
		stored: Stored = {},
		start: IExecuteFunctions['executeWorkflow'] = async () =>
			await Promise.resolve({ executionId: '9', data: [null], waitTill: new Date() }),
	) {
		const context = executeContext({
			node: {},
			items,
			credential: { baseUrl: SERVICE, apiKey: API_KEY },
		});
		const begun: CheckState[] = [];
		let until: Date | undefined;
		const changed: Partial<IExecuteFunctions> = {
			getContext: () => store,
			getExecutionDataById: async (id) => await Promise.resolve(stored[id] as never),
			putExecutionToWait: async (date) => {
				until = date;
				await Promise.resolve();
			},
			executeWorkflow: async (...given) => {
				begun.push(given[1]?.[0]?.json.check as unknown as CheckState);
				return await start(...given);
			},
		};
		Object.assign(context, changed);
		const output = await runCheckOperation(context, 'supervise', new FakeClock(), () => NOW);
		return { output: output?.[0], begun, until };
	}

	it('starts one that checks, and names the tasks in case it dies itself', async () => {
		const { begun, output } = await supervise([checkItem(results())]);
		expect(begun).toMatchObject([{ purpose: 'results', supervisorId: '1' }]);
		expect(output?.map(({ json }) => [json.taskId, json.timedOut])).toEqual([
			['task-1', true],
			['task-2', true],
		]);
	});

	it('starts another where that one died, which goes on with what it knew', async () => {
		const store: IDataObject = {};
		await supervise([checkItem(results())], store);
		const last = results({ items: results().items.slice(1) });
		const { begun } = await supervise(diedItems(), store, {
			9: { executionData: { nodeExecutionStack: [{ data: { main: [[checkItem(last)]] } }] } },
		});
		expect(begun).toHaveLength(1);
		expect((begun[0] as ResultsCheck).items.map(({ json }) => json.taskId)).toEqual(['task-2']);
	});

	it('has the other check a minute later, however long was waited: a check was due when that one died', async () => {
		const store: IDataObject = {};
		await supervise([checkItem(results())], store);
		const { begun } = await supervise(diedItems(), store);
		const first = await turn(begun[0] as ResultsCheck);
		const { until } = await turn(first.output?.[0]?.json.check as unknown as ResultsCheck);
		expect(until).toEqual(new Date(NOW + MINUTE));
	});

	it('starts another from the beginning where that one was deleted', async () => {
		const store: IDataObject = {};
		await supervise([checkItem(results())], store);
		const { begun } = await supervise(diedItems(), store);
		expect((begun[0] as ResultsCheck).items).toHaveLength(2);
	});

	it('ends with the results', async () => {
		const store: IDataObject = {};
		await supervise([checkItem(results())], store);
		const { output, begun } = await supervise([{ json: { taskId: 'task-1' } }], store);
		expect(output).toBeUndefined();
		expect(begun).toEqual([]);
	});

	it('tries again in a minute where n8n does not start one', async () => {
		const store: IDataObject = {};
		const refused = async () => await Promise.reject(new Error('The database is away'));
		const { until } = await supervise([checkItem(results())], store, {}, refused);
		expect(until).toEqual(new Date(NOW + MINUTE));
	});

	const report = async (items: INodeExecutionData[]) => {
		const context = executeContext({
			node: {},
			items,
			credential: { baseUrl: SERVICE, apiKey: API_KEY },
		});
		return (await runCheckOperation(context, 'report'))?.[0];
	};

	it.each([
		['an error', [{ json: { error: 'job stalled more than maxStalledCount' } }]],
		['what it last put out', [{ json: { nextCheck: '2026-01-01', tasks: ['task-1'] } }]],
	])('takes %s of the one that checks for its death', async (_what, items) => {
		expect(await report(items)).toEqual(diedItems());
	});

	it('hands results on as they are', async () => {
		const items = [{ json: { taskId: 'task-1' }, pairedItem: { item: 0 } }];
		expect(await report(doneItems(items))).toEqual(items);
	});

	it('fails where the node that waits is to fail', async () => {
		const failed = doneItems([], { message: 'Task task-1 failed', description: 'Tasks: task-1' });
		expect((await caught(async () => await report(failed))).message).toBe('Task task-1 failed');
	});
});
