import { createRunExecutionData, type IDataObject, type INodeExecutionData } from 'n8n-workflow';

import {
	additionalData,
	executeContext,
	type Ran,
	retryExecution,
	startWorkflow,
	type TestNode,
	type TestWorkflow,
} from './engine';
import {
	descriptionOf,
	field,
	hintsOf,
	IMAGE_MODEL,
	imageNode,
	item,
	keepsGoing,
	MINUTE,
	prompts,
	SECOND,
	stage,
	threeTries,
} from './support';
import { hostData } from './host';
import { passTime, time } from './time';
import { turn } from '../virtualTime';

const on = stage();

const stops = { ifSomeFail: 'stop' };

const fails = (prompt: string) => item(prompt, { outcome: 'FAILURE' });

/** So often that the first try gives the task up. */
const readFails = (times = 3) => ({ readStatus: { status: 404, times } });

const refusals = () => on.creates.filter(({ status }) => status !== 200).length;
const statuses = () => on.creates.map(({ status }) => status);

/** 40 items whose tasks take the given times in turn. */
const batch = (...latencies: number[]) =>
	Array.from({ length: 40 }, (_, index) =>
		item(`Prompt ${index}`, { latencyMs: latencies[index % latencies.length] ?? 0 }),
	);

/** Every item came out with its own task, in order, and no task was created twice. */
function expectAll(output: INodeExecutionData[], items: Array<{ prompt: string }>) {
	const prompt = ({ json }: INodeExecutionData) => (json.input as IDataObject | undefined)?.prompt;
	expect(output.map(prompt)).toEqual(items.map(({ prompt }) => prompt));
	expect(new Set(field(output, 'state'))).toEqual(new Set(['SUCCESS']));
	expect(new Set(field(output, 'taskId')).size).toBe(items.length);
	const created = on.creates.filter(({ status }) => status === 200);
	expect(created).toHaveLength(items.length);
}

it('a create that the service did not take is sent again when it says, and holds back the other items too', async () => {
	const simulate = { createStatus: { status: 429, retryAfter: 30, times: 1 } };
	await on.images([item('a', simulate), 'b', 'c']);
	const [first = 0, ...others] = on.creates.map(({ at }) => at);
	expect(on.creates).toHaveLength(1 + 3);
	expect(others[0]).toBe(first + 30 * SECOND);
});

describe('a create that the service may have taken', () => {
	const expectDoubt = (ran: Ran) => {
		expect(ran.error?.message).toContain('It is not known whether the task was created');
		expect(descriptionOf(ran)).toContain('The task may exist and may be billed once.');
		expect(descriptionOf(ran)).toContain('was not sent again');
		expect(on.creates).toHaveLength(1);
	};

	it.each([
		['lost on the way', { createLost: true }],
		['HTTP 500', { createStatus: 500 }],
		['a Retry-After that means nothing', { createStatus: { status: 503, retryAfter: 'soon' } }],
		['a web page', { createShape: 'html' }],
		['an answer without an id', { createShape: 'missing' }],
	])('(%s) is sent once in all tries, and may be billed once', async (_what, simulate) => {
		expectDoubt(await on.images([item('a', simulate)], {}, threeTries));
	});

	it('because no answer came in two minutes, is the same', async () => {
		on.service.configure({ createDelayMs: 600_000 });
		const { result } = startWorkflow(on.workflow(imageNode({}, threeTries), prompts('a')));
		while (on.creates.length === 0) await turn();
		await time.pass(2 * MINUTE);
		expectDoubt(await passTime(result));
	});

	it("is in n8n's log with what the service answered: the id may stand there", async () => {
		const info = jest.spyOn(executeContext(on.workflow({})).logger, 'info');
		await on.images([item('a', { createShape: 'array' })], {}, keepsGoing);
		expect(info.mock.calls.flat().join()).toContain(on.taskIds[0]);
	});
});

// The law spreads its probes by chance.
beforeEach(() => {
	jest.spyOn(Math, 'random').mockReturnValue(0.5);
});
afterEach(() => {
	jest.restoreAllMocks();
});

describe('an account with a limit', () => {
	const latencies: Array<[string, number[]]> = [
		['no time', [0]],
		['a second each', [SECOND]],
		['ten seconds each', [10 * SECOND]],
		['very different times', [SECOND, 20 * SECOND, 3 * SECOND, 7 * SECOND, 500]],
	];
	const cases = [1, 3, 10].flatMap((limit) =>
		latencies.map(([what, times]) => ({ limit, what, times })),
	);

	it.each(cases)('of $limit lets 40 tasks through that take $what', async ({ limit, times }) => {
		on.service.configure({ concurrencyLimit: limit });
		const items = batch(...times);
		const { output } = await on.images(items, { maxInFlight: 40 });
		expectAll(output, items);
		// Six to find out, one for ten tasks and one a minute. Of very different tasks, short ones end unseen between two
		// reads, and their places look like more places: then it is fifteen more at most.
		const minutes = on.elapsed / MINUTE;
		const unseen = times.length > 1 ? 15 : 0;
		expect(refusals()).toBeLessThanOrEqual(10 + minutes + unseen);
		// Tasks are found finished at a read, up to two seconds later than they are.
		const longest = times.reduce((sum, time) => sum + Math.ceil(time / 2000) * 2000 + 200, 0);
		const serial = (longest * 40) / times.length / limit;
		expect(on.elapsed).toBeLessThan(serial * 1.3 + 40 * SECOND);
	});

	const isHeldByOthers = (limit: number) => {
		on.service.configure({ concurrencyLimit: limit });
		for (let count = 0; count < limit; count++) {
			const simulate = { latencyMs: 5 * MINUTE };
			on.service.createTask(IMAGE_MODEL, { prompt: 'Of another user', simulate });
		}
	};
	const changes = (before: number, after: number) => {
		on.service.configure({ concurrencyLimit: before });
		setTimeout(() => on.service.configure({ concurrencyLimit: after }), 15 * SECOND);
	};

	it.each<[string, setUp: () => void, refusals: number]>([
		// Fourteen in the five minutes, and what it takes to find out how many places there are.
		...[1, 3, 10].map((limit): [string, () => void, number] => [
			`of ${limit}, all of it held by others for five minutes`,
			() => isHeldByOthers(limit),
			45,
		]),
		// Six to find out each limit, one for ten tasks, and eight at most for a minute or two and for places that go.
		['that changes from 10 to 3 during the run', () => changes(10, 3), 26],
		['that changes from 10 to 1 during the run', () => changes(10, 1), 26],
		['that changes from 3 to 10 during the run', () => changes(3, 10), 26],
		['that changes from 1 to 10 during the run', () => changes(1, 10), 26],
	])('%s', async (_what, setUp, mostRefusals) => {
		setUp();
		const items = batch(5 * SECOND);
		const { output } = await on.images(items, { maxInFlight: 40 });
		expectAll(output, items);
		expect(refusals()).toBeLessThanOrEqual(mostRefusals);
	});

	it('does not count the wait for a place against the timeout', async () => {
		on.service.configure({ concurrencyLimit: 1 });
		const items = batch(20 * SECOND).slice(0, 8);
		const { output } = await on.images(items, { timeout: 30 });
		expectAll(output, items);
		expect(on.elapsed).toBeGreaterThan(120 * SECOND);
	});
});

describe('a batch takes little longer than it must', () => {
	const spread = Array.from({ length: 200 }, (_, index) => 1000 + ((index * 7919) % 7001));

	it.each([
		['of 200 whose slowest task takes 8 s', {}, spread, 11],
		[
			'of 60 whose first create is refused once',
			{ createStatus: { status: 503, retryAfter: 1, times: 1 } },
			Array<number>(60).fill(6000),
			10,
		],
		// 19 s for the creates, 10 s for the last task, and a read.
		[
			'of 100 in an account that may create 5 a second',
			{ createsPerSecond: 5 },
			Array<number>(100).fill(10_000),
			33,
		],
	])('%s', async (_what, settings, latencies, seconds) => {
		on.service.configure(settings);
		const items = latencies.map((latencyMs, index) => item(`Prompt ${index}`, { latencyMs }));
		const { output } = await on.images(items, { maxInFlight: 200 });
		expectAll(output, items);
		expect(on.elapsed).toBeLessThan(seconds * SECOND);
		expect(refusals()).toBeLessThanOrEqual(16);
	});
});

describe('where items leave at once', () => {
	const returns = { parameters: { completion: 'return' } };
	const reads = () => on.requests('GET', '/api/generate/');

	it.each([1, 4])('the end of a task lets the next one in, of %d at once', async (limit) => {
		on.service.configure({ concurrencyLimit: limit });
		const items = batch(10 * SECOND).slice(0, 20);
		const { output } = await on.images(items, {}, returns);
		expect(field(output, 'state')).toEqual(Array(20).fill('PENDING'));
		expect(new Set(field(output, 'taskId')).size).toBe(20);
		// The last tasks are only created. An end is known up to two seconds later.
		const minutes = on.elapsed / MINUTE;
		expect(minutes * MINUTE).toBeLessThan((20 / limit) * 12.5 * SECOND);
		expect(refusals()).toBeLessThanOrEqual(6 + 2 + minutes + 6);
	});

	it('no task is read where the service refuses nothing', async () => {
		await on.images(batch(10 * SECOND), {}, returns);
		await time.pass(MINUTE);
		expect(reads()).toEqual([]);
	});

	it('no task is read once the last one is created, nor more often than the interval says', async () => {
		on.service.configure({ concurrencyLimit: 3 });
		await on.images(batch(30 * SECOND).slice(0, 9), {}, returns);
		const made = reads();
		expect(made.length).toBeGreaterThan(0);
		await time.pass(5 * MINUTE);
		expect(reads()).toHaveLength(made.length);
		for (const id of on.taskIds) {
			const moments = made.filter(({ path }) => path.endsWith(id)).map(({ at }) => at);
			const gaps = moments.slice(1).map((at, index) => at - (moments[index] ?? 0));
			expect(Math.min(2 * SECOND, ...gaps)).toBe(2 * SECOND);
		}
	});

	it("the user's bound of a wait holds back nothing", async () => {
		await on.images(batch(MINUTE), { maxInFlight: 1 }, returns);
		expect(on.elapsed).toBeLessThan(3 * SECOND);
		expect(on.taskIds).toHaveLength(40);
	});
});

it('has never more tasks unfinished than the user lets a wait have', async () => {
	const { output } = await on.images(batch(10 * SECOND).slice(0, 12), { maxInFlight: 4 });
	expect(output).toHaveLength(12);
	expect(refusals()).toBe(0);
	const firstEndsAt = (on.creates[0]?.at ?? 0) + 10 * SECOND;
	expect(on.creates.filter(({ at }) => at < firstEndsAt)).toHaveLength(4);
	expect(on.elapsed).toBeGreaterThan(30 * SECOND);
});

describe('a failure, where the node stops', () => {
	it('gives the place of the failed task to no other', async () => {
		on.service.configure({ concurrencyLimit: 1 });
		const fails = item('a', { outcome: 'FAILURE', latencyMs: 5 * SECOND });
		const { error } = await on.images([fails, 'b', 'c', 'd'], { ...stops, maxInFlight: 5 });
		expect(error?.message).toContain('failed at the service');
		expect(on.taskIds).toHaveLength(1);
	});

	it('lets no create follow one that was not accepted', async () => {
		on.service.configure({ concurrencyLimit: 1 });
		const bad = item('b', { createStatus: 400 });
		const first = item('a', { latencyMs: 10 * SECOND });
		await on.images([first, bad, 'c', 'd'], { ...stops, maxInFlight: 5 });
		expect(on.taskIds).toHaveLength(1);
	});
});

describe('Retry On Fail', () => {
	it.each<[string, Parameters<typeof prompts>, IDataObject, TestNode]>([
		[
			'takes up finished and running tasks, and pays for none again',
			['a', item('b', readFails()), item('c', { latencyMs: 30 * SECOND })],
			{},
			threeTries,
		],
		[
			'waits for a task that had timed out',
			[item('a', { latencyMs: 50 * SECOND })],
			{ timeout: 30 },
			threeTries,
		],
		[
			'pays for nothing again where the node goes on and its first item had failed',
			[item('a', readFails()), 'b', 'c'],
			{},
			{ ...threeTries, ...keepsGoing },
		],
	])('%s', async (_what, items, options, node) => {
		const { output, error } = await on.images(items, options, node);
		expect(error).toBeUndefined();
		expect(field(output, 'state')).toEqual(items.map(() => 'SUCCESS'));
		expect(field(output, 'taskId')).toEqual(on.taskIds);
		expect(on.creates).toHaveLength(items.length);
	});

	it('tries again with what failed, whichever item it is, and then keeps what succeeded', async () => {
		for (const items of [
			['a', fails('b')],
			[fails('a'), 'b'],
		]) {
			on.service.clear();
			const { output, error } = await on.images(items, {}, threeTries);
			expect(error).toBeUndefined();
			expect(field(output, 'state').sort()).toEqual(['FAILURE', 'SUCCESS']);
			expect(on.taskIds).toHaveLength(1 + 3);
		}
	});

	it('keeps what succeeded in its last try, also where an earlier try was refused before it began', async () => {
		const workflow = on.workflow(
			imageNode({}, { ...threeTries, maxTries: 2 }),
			prompts('a', fails('b')),
		);
		const getDecrypted = jest
			.fn(async () => ({ ...on.credential }))
			.mockRejectedValueOnce(new Error('The database is away'));
		const { credentialsHelper } = additionalData(on.credential);
		Object.assign(credentialsHelper, { getDecrypted });
		const { result } = startWorkflow(workflow, 'trigger', { credentialsHelper });
		const { output, error } = await passTime(result);
		expect(error).toBeUndefined();
		expect(field(output, 'state')).toEqual(['SUCCESS', 'FAILURE']);
	});

	it('says above the output what its last try says', async () => {
		const ran = await on.images([item('a', readFails())], {}, threeTries);
		const [said] = hintsOf(ran).filter((text) => !text.startsWith('Pin this output'));
		expect(said).toBe('1 task created. Estimated price: 0.08 USD. The service charged 8 credits.');
	});

	describe('where the expressions give something else each time', () => {
		const changing = (more: Parameters<typeof imageNode>[1] = {}) =>
			imageNode(
				{
					...stops,
					additionalInput:
						'={{ JSON.stringify({ seed: Math.random(), simulate: $json.simulate }) }}',
				},
				{ ...threeTries, ...more },
			);
		const lost = item('a', { createLost: { times: 1 } });

		it('sends nothing again whose answer was lost, and nothing that is under way or done', async () => {
			const ran = await on.run(changing(), prompts(lost, 'b', 'c'));
			expect(ran.error?.message).toContain('It is not known whether the task was created');
			expect(descriptionOf(ran)).toContain('Sent, but the answer was lost: item 1.');
			expect(on.creates.length).toBeLessThanOrEqual(3);
		});

		it('puts out what was sent for the tasks of the first try', async () => {
			const { output } = await on.run(changing(), prompts('a', item('b', readFails())));
			expect(field(output, 'taskId')).toEqual(on.taskIds);
			const seeds = output.map(({ json }) => (json.input as IDataObject).seed);
			expect(seeds).toEqual(on.tasks.map(({ record }) => record.input.seed));
		});

		it('puts out the reference that the trigger has, too', async () => {
			jest.restoreAllMocks();
			const callbackUrl = 'https://n8n.test/webhook/x/callback';
			const { output } = await on.images(
				['a', item('b', { createStatus: 400 })],
				{ reference: '={{ Math.random() }}' },
				{ ...threeTries, parameters: { completion: 'trigger', callbackUrl } },
			);
			const { searchParams } = new URL(on.tasks[0]?.webhookUrl ?? '');
			expect(output[0]?.json.reference).toBe(searchParams.get('reference'));
		});

		it('pays for no finished task again where the node goes on', async () => {
			const { output } = await on.run(changing(keepsGoing), prompts(lost, 'b'));
			expect(field(output, 'state')).toEqual([undefined, 'SUCCESS']);
			expect(on.creates).toHaveLength(2);
		});

		it('and cannot be read any more names the task all the same', async () => {
			jest.spyOn(Math, 'random').mockImplementation(() => (on.creates.length > 0 ? 0.9 : 0.1));
			const node = imageNode(
				{ additionalInput: '={{ Math.random() < 0.5 ? $json.input : "oops" }}', timeout: 4 },
				{ ...threeTries, ...keepsGoing },
			);
			const input = JSON.stringify({ simulate: { latencyMs: MINUTE } });
			const { output } = await on.run(node, [{ json: { prompt: 'a', input } }]);
			jest.restoreAllMocks();
			expect(output[0]?.json).toMatchObject({
				taskId: on.taskIds[0],
				error: expect.stringContaining('is not valid JSON') as string,
			});
			expect(on.creates).toHaveLength(1);
		});
	});

	it('names every created task on the last try too', async () => {
		const ran = await on.images(
			['a', item('b', readFails(99)), 'c'],
			{ ...stops, maxInFlight: 1 },
			threeTries,
		);
		for (const taskId of on.taskIds) expect(descriptionOf(ran)).toContain(taskId);
		expect(on.creates).toHaveLength(2);
	});

	it.each(['return', 'trigger'])(
		'takes up tasks whose items left at once (%s)',
		async (completion) => {
			const { output } = await on.images(
				['a', item('b', { createStatus: { status: 400, times: 1 } })],
				{},
				{
					...threeTries,
					parameters: { completion, callbackUrl: 'https://n8n.test/webhook/x/callback' },
				},
			);
			expect(field(output, 'taskId')).toEqual(on.taskIds);
			expect(statuses()).toEqual([200, 400, 200]);
		},
	);
});

describe('Retry of a stored execution', () => {
	/** Runs until it fails, and then once more from what n8n stored. */
	async function runTwice(first: TestWorkflow, second: TestWorkflow = first) {
		const failed = await passTime(startWorkflow(first).result);
		expect(failed.run.status).toBe('error');
		const creates = on.creates.length;
		const retried = await passTime(retryExecution(second, failed));
		return { failed, retried, creates: on.creates.length - creates };
	}
	const failing = (...more: Parameters<typeof prompts>) =>
		prompts('a', item('b', readFails()), ...more);

	it.each<[string, number, INodeExecutionData[], IDataObject]>([
		['takes up the tasks of the first execution', 0, failing('c'), {}],
		['creates the items that were never sent', 2, failing('c', 'd'), { maxInFlight: 1 }],
	])('%s', async (_what, expected, items, options) => {
		const { retried, creates } = await runTwice(
			on.workflow(imageNode({ ...stops, ...options }), items),
		);
		expect(retried.error).toBeUndefined();
		expect(field(retried.output, 'taskId')).toEqual(on.taskIds);
		expect(creates).toBe(expected);
	});

	it('creates a failed task again, and no other', async () => {
		const items = prompts('a', fails('b'));
		expect((await runTwice(on.workflow(imageNode(stops), items))).creates).toBe(1);
	});

	it.each<[string, IDataObject]>([
		['wait', { suspendAfter: 0 }],
		['trigger', {}],
		['return', {}],
	])(
		'takes up tasks that took too long where it was changed to %s %j for the retry',
		async (completion, options) => {
			const late = item('a', { latencyMs: 3 * MINUTE });
			const callbackUrl = 'https://n8n.test/webhook/x/callback';
			const { retried, creates } = await runTwice(
				on.workflow(imageNode({ timeout: 60 }), prompts(late)),
				on.workflow(imageNode(options, { parameters: { completion, callbackUrl } }), prompts(late)),
			);
			expect(retried.run.status).not.toBe('error');
			expect(creates).toBe(0);
		},
	);

	it('names the tasks of the first execution where nothing can be started', async () => {
		const first = on.workflow(imageNode(stops), failing());
		const { retried } = await runTwice(first, {
			...first,
			credential: { ...on.credential, apiKey: '' },
		});
		expect(retried.error?.message).toContain("The 'API Key'");
		for (const taskId of on.taskIds) expect(descriptionOf(retried)).toContain(taskId);
	});
});

describe('a loop', () => {
	const loop = (rounds: INodeExecutionData[][]): TestWorkflow => ({
		...on.workflow(imageNode(stops)),
		rounds,
	});

	it('creates the same prompts anew in each round, and leaves nothing of them in the context of the node', async () => {
		const rounds = Array.from({ length: 12 }, () => prompts('a', 'b'));
		const { run } = await passTime(startWorkflow(loop(rounds)).result);
		expect(run.status).toBe('success');
		expect(run.data.resultData.runData.Media).toHaveLength(12);
		expect(on.taskIds).toHaveLength(24);
		const nothing = { createdTasks: { version: 1, runs: {} } };
		expect(run.data.executionData?.contextData['node:Media']).toEqual(nothing);
	});

	it('takes up the round that failed, when the execution is retried', async () => {
		const fails = item('a', { readStatus: { status: 404, times: 3 } });
		const workflow = loop([prompts('a', 'b'), prompts(fails, 'b'), prompts('a', 'b')]);
		const failed = await passTime(startWorkflow(workflow).result);
		expect(failed.run.status).toBe('error');
		expect(on.taskIds).toHaveLength(4);
		const retried = await passTime(retryExecution(workflow, failed));
		expect(retried.run.status).toBe('success');
		expect(on.taskIds).toHaveLength(6);
	});
});

it.each([
	['this node', 'Media', 0],
	['this node, which was renamed then', 'Former name', 0],
	['another node', 'Items', 1],
])('an execution was killed in %s (%s): its retry creates %d tasks', async (_, name, creates) => {
	const crashed = { startTime: 0, executionTime: 0, executionIndex: 0, source: [] };
	const killed = createRunExecutionData({
		resultData: { runData: { [name]: [{ ...crashed, executionStatus: 'crashed' }] } },
	});
	const more = {
		hooks: hostData('2', 'retry', true, '1').hooks,
		getRunExecutionData: async () => await Promise.resolve(killed),
	};
	const test = on.workflow(imageNode(), prompts('a'));
	await passTime(startWorkflow(test, 'retry', more).result);
	expect(on.creates).toHaveLength(creates);
});
