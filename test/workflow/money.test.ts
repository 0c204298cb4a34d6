import { Container } from '@n8n/di';
import { BinaryDataConfig } from 'n8n-core';
import { type IDataObject, type INodeExecutionData } from 'n8n-workflow';

import {
	additionalData,
	executeContext,
	startWorkflow,
	type TestNode,
	type TestWorkflow,
} from './engine';
import {
	fails,
	field,
	imageNode,
	item,
	keepsGoing,
	MINUTE,
	prompts,
	SECOND,
	stage,
	threeTries,
} from './support';
import { WorkflowN8n } from './n8n/workflowN8n';
import { EPOCH } from '../virtualTime';
import { useProcessedData } from './processedData';
import { fromStored, toStored } from './stored';
import { passTime, time } from './time';

useProcessedData();
const on = stage();

const stops = { ifSomeFail: 'stop' };

/** The first try gives a late task up. */
const givesUp = { timeout: 10 };
const late = (seconds = 15) => ({ latencyMs: seconds * SECOND });

const refusals = () => on.creates.filter(({ status }) => status !== 200).length;

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

it('says above the output why a whole batch was refused, also where n8n goes on', async () => {
	const { output, hints } = await on.images(['a', 'b'], { maxCostUsd: 0.1 }, keepsGoing);
	expect(output).toHaveLength(2);
	expect(hints).toEqual([
		expect.stringMatching(/^2 items failed: 2 tasks would cost 0.16 USD.* No task was created\.$/),
	]);
	expect(on.creates).toEqual([]);
});

describe('a create that the service may have taken', () => {
	it('is sent once in all tries, and may be billed once', async () => {
		const ran = await on.images([item('a', { createWay: 'lost' })], {}, threeTries);
		expect(ran.error?.message).toContain('It is not known whether the task was created');
		expect(ran.description).toContain('The task may exist and may be billed once.');
		expect(ran.description).toContain('was not sent again');
		expect(on.creates).toHaveLength(1);
	});

	it("is in n8n's log with what the service answered: the id may stand there", async () => {
		const info = jest.spyOn(executeContext(on.workflow({})).logger, 'info');
		await on.images([item('a', { createShape: ['$taskId'] })], {}, keepsGoing);
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
	it.each([[10, 'very different times', [SECOND, 20 * SECOND, 3 * SECOND, 7 * SECOND, 500]]])(
		'of %d lets 40 tasks through that take %s',
		async (limit, _what, times) => {
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
		},
	);

	it('does not count the wait for a place against the timeout', async () => {
		on.service.configure({ concurrencyLimit: 1 });
		const items = batch(20 * SECOND).slice(0, 8);
		const { output } = await on.images(items, { timeout: 30 });
		expectAll(output, items);
		expect(on.elapsed).toBeGreaterThan(120 * SECOND);
	});
});

describe('where items leave at once', () => {
	const returns = { parameters: { completion: 'return' } };
	const reads = () => on.requests('GET', '/api/generate/');

	it.each([4])('the end of a task lets the next one in, of %d at once', async (limit) => {
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

	it("the user's bound of a wait holds back nothing, and no task is read where the service refuses nothing", async () => {
		await on.images(batch(MINUTE), { maxInFlight: 1 }, returns);
		expect(on.elapsed).toBeLessThan(3 * SECOND);
		expect(on.taskIds).toHaveLength(40);
		await time.pass(MINUTE);
		expect(reads()).toEqual([]);
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

describe('Retry On Fail', () => {
	const goesOn = { ...threeTries, ...keepsGoing };

	const three = ['a', item('b', late()), item('c', late(18))];
	const first = [item('a', late()), 'b', 'c'];

	it.each<[string, Parameters<typeof prompts>, TestNode]>([
		['takes up finished and running tasks, and pays for none again', three, threeTries],
		['pays for nothing again where the node goes on and its first item had failed', first, goesOn],
	])('%s', async (_what, items, node) => {
		const { output, error } = await on.images(items, givesUp, node);
		expect(error).toBeUndefined();
		expect(on.elapsed).toBeGreaterThan(15 * SECOND);
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
		const getDecrypted = jest
			.fn(async () => ({ ...on.credential }))
			.mockRejectedValueOnce(new Error('The database is away'));
		const { credentialsHelper } = additionalData(on.credential);
		Object.assign(credentialsHelper, { getDecrypted });
		const { output, error } = await on.images(
			['a', fails('b')],
			{},
			{ ...threeTries, maxTries: 2 },
			{ host: { credentialsHelper } },
		);
		expect(error).toBeUndefined();
		expect(field(output, 'state')).toEqual(['SUCCESS', 'FAILURE']);
	});

	describe('where the expressions give something else each time', () => {
		const additionalInput =
			'={{ JSON.stringify({ seed: Math.random(), simulate: $json.simulate }) }}';

		it('puts out what was sent for the tasks of the first try', async () => {
			jest.restoreAllMocks();
			const items = ['a', item('b', late())];
			const { output } = await on.images(
				items,
				{ ...stops, ...givesUp, additionalInput },
				threeTries,
			);
			expect(field(output, 'taskId')).toEqual(on.taskIds);
			const seeds = output.map(({ json }) => (json.input as IDataObject).seed);
			expect(seeds).toEqual(on.tasks.map(({ record }) => record.input.seed));
		});
	});

	it('names every created task on the last try too', async () => {
		const items = ['a', item('b', late(90)), 'c'];
		const ran = await on.images(items, { ...stops, ...givesUp, maxInFlight: 1 }, threeTries);
		for (const taskId of on.taskIds) expect(ran.description).toContain(taskId);
		expect(on.creates).toHaveLength(2);
	});

	it('takes up tasks whose items left at once', async () => {
		const items = ['a', item('b', { createStatus: { status: 400, times: 1 } })];
		const node = { ...threeTries, parameters: { completion: 'return' } };
		const { output } = await on.images(items, {}, node);
		expect(field(output, 'taskId')).toEqual(on.taskIds);
		expect(on.creates.map(({ status }) => status)).toEqual([200, 400, 200]);
	});
});

describe('Retry of a stored execution', () => {
	/** Runs until it fails, and then once more from what n8n stored. */
	async function runTwice(items: INodeExecutionData[], more: IDataObject = {}, apiKey?: string) {
		const failed = await on.start(imageNode({ ...stops, ...givesUp, ...more }), items);
		expect(failed.row.status).toBe('error');
		const creates = on.creates.length;
		// Of the first task, which has ended.
		const reads = () => on.requests('GET', on.taskIds[0]).length;
		const readBefore = reads();
		if (apiKey !== undefined) failed.n8n.test.credential = { ...on.credential, apiKey };
		const retried = await (await failed.retry()).end();
		return { retried, creates: on.creates.length - creates, reads: reads() - readBefore };
	}
	const failing = (...more: Parameters<typeof prompts>) => prompts('a', item('b', late()), ...more);

	it('takes up the tasks of the first execution, reads the one that has ended for links that are fresh, and creates the items that were never sent', async () => {
		const { retried, creates, reads } = await runTwice(failing('c', 'd'), { maxInFlight: 1 });
		expect(retried.error).toBeUndefined();
		expect(field(retried.output, 'taskId')).toEqual(on.taskIds);
		expect([creates, reads]).toEqual([2, 1]);
	});

	it('counts what the first execution has paid for the budget, which may be another one now', async () => {
		const maxCostUsd = `={{ Date.now() > ${EPOCH + 5 * SECOND} ? 0.2 : 1 }}`;
		const { retried, creates } = await runTwice(failing('c'), { maxInFlight: 1, maxCostUsd });
		expect(retried.error?.message).toContain(
			'1 task would cost 0.24 USD with 0.16 USD for the tasks before',
		);
		expect(creates).toBe(0);
	});

	it('names the tasks of the first execution where nothing can be started', async () => {
		const { retried } = await runTwice(failing(), {}, '');
		expect(retried.error?.message).toContain("The 'API Key'");
		for (const taskId of on.taskIds) expect(retried.description).toContain(taskId);
	});
});

describe('a loop', () => {
	const loop = (rounds: INodeExecutionData[][]): TestWorkflow => ({
		...on.workflow(imageNode({ ...stops, ...givesUp })),
		rounds,
	});

	it('creates the same prompts anew in each round, and keeps the last round alone in the context of the node', async () => {
		const rounds = Array.from({ length: 12 }, () => prompts('a', 'b'));
		const { run } = await passTime(startWorkflow(loop(rounds)).result);
		expect(run.status).toBe('success');
		expect(run.data.resultData.runData.Media).toHaveLength(12);
		expect(on.taskIds).toHaveLength(24);
		const stored = fromStored(toStored(run.data)).executionData?.contextData['node:Media'];
		const kept = stored?.journal as IDataObject;
		expect(Object.keys(kept.runs as IDataObject)).toEqual(['11']);
	});

	it('takes up the round that failed, when the execution is retried', async () => {
		const rounds = [prompts('a', 'b'), prompts(item('a', late()), 'b'), prompts('a', 'b')];
		const failed = await new WorkflowN8n(loop(rounds)).start();
		expect(failed.row.status).toBe('error');
		expect(on.taskIds).toHaveLength(4);
		expect((await failed.retry()).row.status).toBe('success');
		expect(on.taskIds).toHaveLength(6);
	});
});

it('an item whose create may have been taken says so, also where no key can be looked up in the next try', async () => {
	const getDecrypted = jest.fn(async () => ({ ...on.credential }));
	getDecrypted.mockImplementationOnce(async () => ({ ...on.credential }));
	getDecrypted.mockRejectedValue(new Error('The database is away'));
	const { credentialsHelper } = additionalData(on.credential);
	Object.assign(credentialsHelper, { getDecrypted });
	const { output } = await on.images(
		[item('a', { createWay: 'lost' })],
		{},
		{ ...threeTries, maxTries: 2, ...keepsGoing },
		{ host: { credentialsHelper } },
	);
	const said = String(output[0]?.json.error);
	expect(said).toMatch(/^It is not known whether the task was created\. .*The database is away/);
	expect(on.creates).toHaveLength(1);
});

describe('where n8n itself refuses the output', () => {
	const config = Container.get(BinaryDataConfig);
	const { mode } = config;
	beforeEach(() => (config.mode = 'filesystem'));
	afterEach(() => (config.mode = mode));

	it('a retry from the list of executions pays for nothing again', async () => {
		// n8n adds files to this field, and can add none to a text.
		const items = [{ json: { prompt: 'a', _files: 'a.png' } }];
		const node = imageNode({ includeInput: true, downloadResults: true });
		const failed = await on.start(node, items, { settings: { binaryMode: 'combined' } });
		expect(failed.ran.error?.message).toContain('Binary data could not be converted');
		failed.n8n.settings = {};
		const { error, output } = (await failed.retry()).ran;
		expect(error).toBeUndefined();
		expect(field(output, 'taskId')).toEqual(on.taskIds);
		expect(on.creates).toHaveLength(1);
	});
});
