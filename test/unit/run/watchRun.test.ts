import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';
import nock from 'nock';

import { callbackToken } from '../../../nodes/MediaGeneration/callback/address';
import { watchTasks } from '../../../nodes/MediaGeneration/run/watchRun';
import type {
	DeliveryWatch,
	GuardWatch,
	ResultsWatch,
	WatchState,
} from '../../../nodes/MediaGeneration/wait/watchState';
import { watchItem } from '../../../nodes/MediaGeneration/wait/watchState';
import { API_KEY, executeContext } from '../../workflow/engine';
import { caught, FakeClock } from '../support';

const SERVICE = 'https://api.example.com';
const NOW = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;

beforeAll(() => nock.disableNetConnect());
afterEach(() => nock.cleanAll());
afterAll(() => {
	nock.enableNetConnect();
	nock.restore();
});

const base = {
	version: 1,
	nodeName: 'Media',
	startedAt: NOW - 10 * MINUTE,
	intervalMs: 0,
} as const;
const results = (more: Partial<ResultsWatch> = {}): ResultsWatch => ({
	...base,
	purpose: 'results',
	begun: true,
	parentExecutionId: '7',
	onError: 'stopWorkflow',
	ifSomeFail: 'keep',
	output: { download: false, split: false, binaryField: 'data' },
	items: ['task-1', 'task-2'].map((taskId, item) => ({
		item,
		taskId,
		json: { taskId, state: 'PENDING', model: 'm', input: { prompt: taskId } },
		waitsFor: { taskId, until: NOW + 60 * MINUTE },
	})),
	...more,
});
const delivery = (more: Partial<DeliveryWatch> = {}): DeliveryWatch => ({
	...base,
	purpose: 'delivery',
	begun: true,
	deliveries: ['task-1', 'task-2'].map((taskId) => ({
		taskId,
		until: NOW + 60 * MINUTE,
		address: 'https://n8n.test/webhook/a/callback',
	})),
	...more,
});

/** What n8n has stored of other executions. */
type Stored = Record<string, IDataObject | undefined>;

/** The execution that waits, which names this one. */
const PARENT = {
	resultData: {},
	waitTill: new Date(NOW + 60 * MINUTE),
	executionData: { nodeExecutionStack: [{ metadata: { waitingChildExecutionIds: ['1'] } }] },
};

/** One turn of the node in a sub-execution. */
async function turn(state: WatchState, stored: Stored = { 7: PARENT }) {
	const context = executeContext({
		node: { parameters: { resource: 'task', operation: 'watch' } },
		items: [watchItem(state)],
		credential: { baseUrl: SERVICE, apiKey: API_KEY },
	});
	let until: Date | undefined;
	const looked: string[] = [];
	const changed: Partial<IExecuteFunctions> = {
		putExecutionToWait: async (date) => {
			until = date;
			await Promise.resolve();
		},
		getExecutionDataById: async (id) => {
			looked.push(id);
			return await Promise.resolve(stored[id] as never);
		},
	};
	Object.assign(context, changed);
	const output = await watchTasks(context, new FakeClock(), () => NOW);
	const [next] = context.getExecuteData().data.main?.[0] ?? [];
	return { output: output?.[0], until, next: next?.json.watch as WatchState | undefined, looked };
}

const task = (taskId: string, state: string, more: IDataObject = {}) =>
	nock(SERVICE)
		.get(`/api/generate/${taskId}`)
		.reply(200, { taskId, state, ...more });

it('the first turn reads nothing and sleeps for a minute', async () => {
	const { until, next } = await turn(results({ begun: false, startedAt: NOW }), {});
	expect(until).toEqual(new Date(NOW + MINUTE));
	expect(next).toMatchObject({ begun: true, items: [{ taskId: 'task-1' }, { taskId: 'task-2' }] });
});

it('what is no state was put out by the turn before, and the branch ends', async () => {
	const context = executeContext({ node: {}, credential: { baseUrl: SERVICE, apiKey: API_KEY } });
	expect(await watchTasks(context)).toBeNull();
});

describe('a look for results', () => {
	it('sleeps on while a task is not finished, and remembers what it found', async () => {
		task('task-1', 'SUCCESS', { resultUrls: ['https://m/1'] });
		task('task-2', 'PENDING');
		const { until, next, output } = await turn(results());
		expect(until).toEqual(new Date(NOW + 2.5 * MINUTE));
		expect((next as ResultsWatch).items.map(({ waitsFor }) => waitsFor?.taskId)).toEqual([
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
		const error = await caught(async () => await turn(results({ ifSomeFail })));
		expect(error.message).toContain('Task task-');
		expect(String((error as Error & { description: string }).description)).toContain(
			'task-1, task-2',
		);
	});

	it('lets items out at the timeout with what is known', async () => {
		task('task-1', 'SUCCESS');
		task('task-2', 'PENDING', { progress: 50 });
		const { items } = results();
		const late = items.map((item) => ({
			...item,
			waitsFor: { taskId: item.taskId ?? '', until: NOW },
		}));
		const { output } = await turn(results({ items: late }));
		expect(output?.[0]?.json).not.toHaveProperty('timedOut');
		expect(output?.[1]?.json).toMatchObject({
			state: 'PENDING',
			timedOut: true,
			record: { progress: 50 },
		});
		expect(output?.[1]?.json).not.toHaveProperty('error');
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

describe('a look for lost callbacks', () => {
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
		expect((next as DeliveryWatch).deliveries.map(({ taskId }) => taskId)).toEqual(['task-2']);
	});

	it('tries a trigger again that does not take it', async () => {
		task('task-1', 'SUCCESS');
		task('task-2', 'PENDING');
		trigger(404);
		const { next } = await turn(delivery());
		expect((next as DeliveryWatch).deliveries).toHaveLength(2);
	});

	it('ends when all have arrived', async () => {
		const { deliveries } = delivery();
		task('task-1', 'SUCCESS');
		trigger(200);
		const { until, output } = await turn(delivery({ deliveries: deliveries.slice(0, 1) }));
		expect(until).toBeUndefined();
		expect(output).toEqual([{ json: { delivered: true } }]);
	});

	it('fails at the timeout, and names what is left and why', async () => {
		task('task-1', 'SUCCESS');
		task('task-2', 'PENDING');
		trigger(404);
		const deliveries = delivery().deliveries.map((each) => ({ ...each, until: NOW }));
		const error = await caught(async () => await turn(delivery({ deliveries })));
		expect(error.message).toContain('2 of the tasks');
		const { description } = error as Error & { description: string };
		expect(description).toContain('task-1');
		expect(description).toContain('HTTP 404');
		expect(description).toContain('task-2: not finished');
		expect(description).not.toContain(token);
	});
});

describe('a guard', () => {
	const guarding = (
		watched: GuardWatch['watched'],
		more: Partial<GuardWatch> = {},
	): GuardWatch => ({
		...base,
		purpose: 'guard',
		begun: true,
		watcherId: '2',
		watched,
		...more,
	});
	const sleeping = (due: number, state: WatchState) => ({
		resultData: {},
		waitTill: new Date(due),
		executionData: { nodeExecutionStack: [{ data: { main: [[watchItem(state)]] } }] },
	});

	it('rests while the watcher sleeps, and asks the service nothing', async () => {
		const { until } = await turn(guarding(results()), {
			7: PARENT,
			2: sleeping(NOW + MINUTE, results()),
		});
		expect(until?.getTime()).toBeGreaterThanOrEqual(NOW + 2 * MINUTE);
	});

	it('goes on in place of a watcher that is twice found overdue, with what that one knew', async () => {
		task('task-2', 'SUCCESS');
		const known = results();
		const [first] = known.items;
		const { waitsFor: _, ...finished } = first ?? { item: 0, json: {} };
		const last = results({
			items: [{ ...finished, record: { state: 'SUCCESS' } }, ...known.items.slice(1)],
		});
		const stored = { 7: PARENT, 2: sleeping(NOW - 4 * MINUTE, last) };
		const suspecting = await turn(guarding(results()), stored);
		expect(suspecting.until).toEqual(new Date(NOW + MINUTE));
		const { output } = await turn(suspecting.next ?? guarding(results()), stored);
		expect(output?.map(({ json }) => json.state)).toEqual(['SUCCESS', 'SUCCESS']);
	});

	it('ends where nobody waits any more', async () => {
		const { until, looked } = await turn(guarding(results()), { 7: undefined });
		expect(until).toBeUndefined();
		expect(looked).toEqual(['7']);
	});

	it('ends with a watcher for lost callbacks that came to its end', async () => {
		const { until } = await turn(guarding(delivery()), { 2: { resultData: {} } });
		expect(until).toBeUndefined();
	});
});
