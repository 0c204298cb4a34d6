import nock from '../nock';

import { callbackToken } from '../../nodes/MediaGeneration/shared/addresses';
import {
	type AwaitedCallback,
	WAIT_PARAMETERS,
	waitItems,
} from '../../nodes/MediaGeneration/callback/delivery';
import { claimStart } from '../../nodes/MediaGeneration/callback/ledger';
import { HOUR, MINUTE, SECOND } from '../durations';
import { EPOCH } from '../virtualTime';
import { API_KEY, executeContext, SERVICE, startWorkflow, TRIGGER, TRIGGER_PATH } from './engine';
import { WorkflowN8n } from './n8n/workflowN8n';
import { N8N_URL as N8N } from './host';
import { useProcessedData } from './processedData';
import { passTime, virtualTime } from './time';

/** The sub-execution that makes up for callbacks that do not come, on n8n's engine. */

const PATH = TRIGGER_PATH;
const ADDRESS = '/3f1c2a/callback';
const TOKEN = callbackToken(PATH, API_KEY);

useProcessedData();
virtualTime();

/** A task of a trigger of the same workflow. */
const delivery = (taskId: string, more: Partial<AwaitedCallback> = {}): AwaitedCallback => ({
	taskId,
	until: EPOCH + HOUR,
	address: ADDRESS,
	triggerId: 'trigger',
	...more,
});

const of = (count: number, more: Partial<AwaitedCallback> = {}) =>
	Array.from({ length: count }, (_, index) => delivery(`task-${index}`, more));

const check = (deliveries: AwaitedCallback[]) => ({
	node: { parameters: WAIT_PARAMETERS },
	mode: 'integrated' as const,
	items: waitItems('Media', deliveries),
});

/** The trigger of this workflow has started for a task. */
const started = async (taskId: string) => {
	const context = executeContext({ node: { ...TRIGGER, id: 'trigger' } });
	await claimStart(context, taskId);
};

/** What was asked of the service and of the trigger. */
let reads: string[];
let delivered: string[];
beforeEach(() => {
	reads = [];
	delivered = [];
});
afterEach(() => nock.cleanAll());

/** @returns the status of an answer, and a header `Retry-After` in seconds */
type Gate = () => [status: number, retryAfter?: number];
const OPEN: Gate = () => [200];

/** The service has these states of its tasks; `gate` refuses reads. */
function service(state: (taskId: string) => string, gate = OPEN): void {
	nock(SERVICE)
		.persist()
		.get(/^\/api\/generate\//)
		.reply((uri) => {
			const taskId = uri.split('/').at(-1) ?? '';
			reads.push(taskId);
			const [status, retryAfter] = gate();
			if (status !== 200) return [status, {}, retryAfter ? { 'Retry-After': `${retryAfter}` } : {}];
			return [200, { taskId, state: state(taskId), resultUrls: ['https://m.example.com/1.png'] }];
		});
}

/** The trigger of this n8n, which reads each task, too. @param accept what follows from a callback that it takes */
function trigger(accept: (taskId: string) => Promise<void> = started, gate = OPEN): void {
	nock(N8N)
		.persist()
		.post(PATH)
		.query({ token: TOKEN })
		.reply(async (_uri, body) => {
			const { taskId } = body as { taskId: string };
			const [status] = gate();
			if (status !== 200) {
				return [503, { message: 'The task could not be read' }, { 'Retry-After': '5' }];
			}
			delivered.push(taskId);
			await accept(taskId);
			return [200, { accepted: true, taskId }];
		});
}

/** Begins a check, which sleeps at once. */
async function begin(...given: Parameters<typeof check>) {
	const begun = await new WorkflowN8n(check(...given)).start();
	expect([begun.row.status, reads, begun.ran.output]).toEqual(['waiting', [], []]);
	return begun;
}

const run = async (...given: Parameters<typeof check>) => await (await begin(...given)).end();

const now = () => Date.now() - EPOCH;

it('ends without a read where the ledger has all tasks', async () => {
	service(() => 'SUCCESS');
	for (const { taskId } of of(3)) await started(taskId);
	const begun = await begin(of(3));
	const { output } = await begun.end();
	expect([begun.row.wakes, reads, delivered]).toEqual([1, [], []]);
	expect(output.map(({ json }) => json)).toEqual(
		of(3).map(({ taskId }) => ({ taskId, delivered: true, delivery: 'callback' })),
	);
});

it('delivers what is finished, waits until the trigger has started for it, and leaves what is not finished', async () => {
	const begun = await begin(of(2));
	let state = 'PENDING';
	service((taskId) => (taskId === 'task-0' ? 'SUCCESS' : state));
	trigger();
	await begun.wake();
	expect([delivered, [...reads].sort()]).toEqual([['task-0'], ['task-0', 'task-1']]);
	state = 'FAILURE';
	const end = await begun.end();
	expect([delivered, end.run.status]).toEqual([['task-0', 'task-1'], 'success']);
});

/** At most so many requests in a second; the service counts those of the trigger as well. */
function limited(perSecond: number, retryAfter?: number): Gate {
	let second = 0;
	let count = 0;
	return () => {
		const present = Math.floor(Date.now() / SECOND);
		if (present !== second) [second, count] = [present, 0];
		return ++count > perSecond ? [429, retryAfter] : [200];
	};
}

it('starts all of 60 finished tasks without callbacks at two reads a second', async () => {
	// By chance the sleeps add up to a look more.
	const random = jest.spyOn(Math, 'random').mockReturnValue(0.5);
	const gate = limited(2);
	service(() => 'SUCCESS', gate);
	trigger(started, gate);
	const { run: ran, error } = await run(of(60, { until: EPOCH + HOUR }));
	random.mockRestore();
	expect([error, ran.status]).toEqual([undefined, 'success']);
	expect(new Set(delivered).size).toBe(60);
	expect(delivered).toHaveLength(60);
	expect(now()).toBeLessThan(15 * MINUTE);
});

it('a turn reads for a minute at most, and the next turn begins with the tasks that it has not read', async () => {
	const answered: string[] = [];
	const answer = (taskId: string) => {
		answered.push(taskId);
		return 'PENDING';
	};
	service(answer, limited(1, 1));
	const begun = await begin(of(200));
	const [{ until = NaN } = {}] = begun.sleeps;
	await begun.wake();
	expect(Date.now() - until).toBeLessThan(100 * SECOND);
	const { length } = answered;
	expect(length).toBeGreaterThan(30);
	expect(length).toBeLessThan(200);
	await begun.wake();
	expect(answered.slice(0, length)).not.toContain(answered[length]);
});

it('a trigger of another n8n counts as started when it has taken the callback, and one that does not want the event as well', async () => {
	service(() => 'SUCCESS');
	const elsewhere = {
		taskId: 'task-9',
		until: EPOCH + HOUR,
		address: `https://other.test${PATH}?reference=row+7`,
	};
	const token = callbackToken(PATH, API_KEY, 'row 7');
	const other = nock('https://other.test')
		.post(PATH, { taskId: 'task-9', state: 'SUCCESS' })
		.query({ token, reference: 'row 7' })
		.reply(200, { accepted: true });
	nock(N8N).post(PATH).query(true).reply(200, { accepted: false, reason: 'event not selected' });
	const begun = await begin([elsewhere, delivery('task-0')]);
	const { run: ran } = await begun.end();
	expect([ran.status, begun.row.wakes, other.isDone()]).toEqual(['success', 1, true]);
});

describe('at the end of the time', () => {
	it('fails with the tasks that have not started alone, each with its reason', async () => {
		service((taskId) => (taskId === 'task-0' ? 'PENDING' : 'SUCCESS'));
		trigger();
		const { error, description } = await run(of(3, { until: EPOCH + 20 * MINUTE }));
		expect(error?.message).toBe("1 task of 'Media' did not reach the trigger");
		expect(description).toContain('task-0: The task is not finished after 1200 s');
		expect(description).not.toContain('task-1');
		expect(Math.abs(now() - 20 * MINUTE)).toBeLessThan(2 * MINUTE);
	});
});

it.each([
	[401, 30],
	[404, 4],
])(
	'goes on where the service answers %d for %d minutes, as with a key that is replaced: the tasks are paid for',
	async (status, minutes) => {
		service(
			() => 'SUCCESS',
			() => [now() < minutes * MINUTE ? status : 200],
		);
		trigger();
		const { run: ran } = await run(of(1, { until: EPOCH + 24 * HOUR }));
		expect([ran.status, delivered]).toEqual(['success', ['task-0']]);
	},
);

/** The trigger answers each callback like this. */
const answering = (status: number, body: object = {}) =>
	nock(N8N)
		.persist()
		.post(PATH)
		.query(true)
		.reply(function (_uri, sent) {
			delivered.push((sent as { taskId: string }).taskId);
			return [status, body];
		});

describe('a trigger', () => {
	it.each([
		[401, 'another key'],
		[404, 'not published'],
	])(
		'that refuses with %d (%s) is told after a quarter of an hour, with its answer and all tasks',
		async (status) => {
			service(() => 'SUCCESS');
			answering(status, { message: 'Not for me' });
			const { error, description } = await run(of(2, { until: EPOCH + 24 * HOUR }));
			expect(error?.message).toBe("2 tasks of 'Media' did not reach the trigger");
			for (const id of ['task-0', 'task-1']) {
				const said = `${id}: The trigger did not take the callback of task ${id} (HTTP ${status}): Not for me`;
				expect(description).toContain(said);
			}
			expect(now()).toBeGreaterThanOrEqual(15 * MINUTE);
			expect(now()).toBeLessThan(22 * MINUTE);
			expect(reads).toHaveLength(2);
			expect(delivered.length).toBeLessThan(24);
		},
	);

	it('that refuses for a quarter of an hour does not end the wait for the other tasks: another execution goes on', async () => {
		service((taskId) => (taskId === 'task-0' ? 'SUCCESS' : 'PENDING'));
		answering(401);
		const begun = await begin(of(3, { until: EPOCH + 24 * HOUR }));
		const { error, description } = await begun.end();
		expect(error?.message).toBe("1 task of 'Media' did not reach the trigger");
		expect(description).not.toContain('task-1');
		const others = begun.n8n.rows.filter((row) => row !== begun.row);
		expect(others.map(({ status }) => status)).toEqual(['waiting']);
		for (const id of ['task-1', 'task-2']) expect(others[0]?.begin).toContain(id);
		expect(others[0]?.begin).not.toContain('task-0');
		// The retry is for the refused task alone.
		nock.cleanAll();
		service((taskId) => (taskId === 'task-0' ? 'SUCCESS' : 'PENDING'));
		trigger();
		delivered = [];
		const retried = await (await begun.retry()).end();
		expect([retried.run.status, delivered]).toEqual(['success', ['task-0']]);
	});

	it('that cannot answer now is asked again until the time of the task is up', async () => {
		service(() => 'SUCCESS');
		answering(503);
		const { error, description } = await run(of(1, { until: EPOCH + 3 * HOUR }));
		expect(error?.message).toContain('did not reach');
		expect(description).toContain('HTTP 503');
		expect(Math.abs(now() - 3 * HOUR)).toBeLessThan(17 * MINUTE);
	});

	it('is not called without a key: the task is delivered when the credential can be used again', async () => {
		service(() => 'SUCCESS');
		answering(503);
		const begun = await begin(of(1, { until: EPOCH + 24 * HOUR }));
		await begun.wake();
		nock.cleanAll();
		service(() => 'SUCCESS');
		answering(401);
		Object.assign(begun.n8n.test, { credential: { baseUrl: '', apiKey: '' } });
		delivered = [];
		for (let wakes = 0; wakes < 15; wakes++) await begun.wake();
		expect([begun.row.status, delivered]).toEqual(['waiting', []]);
		nock.cleanAll();
		Object.assign(begun.n8n.test, { credential: undefined });
		service(() => 'SUCCESS');
		trigger();
		expect((await begun.end()).run.status).toBe('success');
	});

	it('in another workflow that says twice that the task was let in is believed', async () => {
		service(() => 'SUCCESS');
		answering(200, { accepted: false, reason: 'duplicate' });
		const { run: ran, output } = await run(
			of(1, { until: EPOCH + 24 * HOUR, triggerId: undefined }),
		);
		expect([ran.status, output[0]?.json]).toMatchObject([
			'success',
			{ delivered: true, delivery: 'duplicate' },
		]);
		expect(delivered).toEqual(['task-0', 'task-0']);
	});

	it('that does not want the event has not started for it', async () => {
		service(() => 'FAILURE');
		answering(200, { accepted: false, reason: 'event not selected' });
		const { run: ran, output } = await run(of(1));
		expect([ran.status, output[0]?.json]).toMatchObject([
			'success',
			{ delivered: false, delivery: 'notSelected' },
		]);
	});

	it('whose executions die before the workflow starts gets the callback again, for 50 minutes', async () => {
		service(() => 'SUCCESS');
		const isAlive = () => now() > 50 * MINUTE;
		trigger(async (taskId) => (isAlive() ? await started(taskId) : undefined));
		const begun = await begin(of(1, { until: EPOCH + 24 * HOUR }));
		await begun.wake();
		expect(begun.ran.hints.join()).toContain(
			'its last answer: The trigger took the callback of task task-0, and has not started its workflow',
		);
		const { run: ran, output } = await begun.end();
		expect([ran.status, output[0]?.json]).toMatchObject([
			'success',
			{ delivered: true, delivery: 'accepted' },
		]);
		expect(now()).toBeGreaterThan(50 * MINUTE);
		expect(delivered.length).toBeLessThan(20);
	});

	it('that has started before the user changed the base URL is not called again', async () => {
		const begun = await begin(of(1));
		await started('task-0');
		const baseUrl = 'https://new.example.com/v1';
		Object.assign(begun.n8n.test, { credential: { baseUrl, apiKey: API_KEY } });
		nock(baseUrl)
			.persist()
			.get(/task-0/)
			.reply(200, { state: 'SUCCESS', resultUrls: ['https://m/1'] });
		trigger();
		expect((await begun.end()).output[0]?.json).toMatchObject({ delivery: 'callback' });
		expect(delivered).toEqual([]);
	});
});

it('says while it sleeps how many have come, and what the trigger answered last', async () => {
	const begun = await begin(of(3, { until: EPOCH + 24 * HOUR }));
	const said = () => begun.ran.hints.join();
	expect(said()).toContain('0 of 3 results have reached the trigger (0 by callback)');
	service((taskId) => (taskId === 'task-1' ? 'SUCCESS' : 'PENDING'));
	answering(401, { message: 'The token does not match' });
	await started('task-0');
	await begun.wake();
	expect(said()).toContain(
		'1 of 3 results have reached the trigger (1 by callback); its last answer: The trigger did not take the callback of task task-1 (HTTP 401): The token does not match',
	);
});

it.each(['killed in a turn', 'stopped while it slept'])(
	'a check that was %s goes on when it is retried, as it says',
	async (how) => {
		const begun = await begin(of(1));
		expect(begun.ran.hints.join()).toContain("If you stop this run, use 'Retry execution' later");
		let state = 'PENDING';
		service(() => state);
		trigger();
		if (how.startsWith('killed')) await begun.killedTurn();
		else await begun.stop();
		state = 'SUCCESS';
		const end = await (await begun.retry()).end();
		expect([end.run.status, delivered]).toEqual(['success', ['task-0']]);
	},
);

it('a task whose callback cannot arrive is ordered without an address, and checked', async () => {
	const callbackUrl = `http://localhost:5678${TRIGGER_PATH}`;
	const parameters = { prompt: 'A', completion: 'trigger', callbackUrl };
	let body = {};
	const executeWorkflow = async () => await Promise.resolve({ executionId: '2', data: [null] });
	nock(SERVICE)
		.post('/api/generate', (sent) => (body = sent as object) !== undefined)
		.reply(200, { taskId: 'task-1' });
	const {
		hints,
		run: ran,
		handed,
	} = await passTime(startWorkflow({ node: { parameters }, host: { executeWorkflow } }).result);
	expect([ran.status, Object.keys(body)]).toEqual(['success', ['model', 'input']]);
	expect(hints.join()).toContain('so the order names no callback address');
	expect(handed).toMatchObject([[{ json: { taskId: 'task-1' } }]]);
});
