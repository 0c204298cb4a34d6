import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject, INode } from 'n8n-workflow';

import type { Execution } from '../n8n/client';
import { inALoop, prompts } from './nodes';
import { errorOf, itemsOf, promptOf, statesOf, succeeded } from './run';
import { openScene } from './scene';

/** What batches cost, in money and in time. */

const scene = openScene();
// The figures of each fault, for whoever keeps account of them.
afterEach(() =>
	console.log(
		`${expect.getState().currentTestName}: ${scene.creates.length} requests, ${scene.tasks.length} tasks, ${paidFor().length} paid for`,
	),
);

const times = (count: number, switches: IDataObject) => Array<IDataObject>(count).fill(switches);

/** Runs a batch of images, one for each object of switches. */
const run = async (switches: IDataObject[], options?: IDataObject, node?: Partial<INode>) =>
	await scene.runImages(switches, { options, node });

const refusals = () => scene.creates.filter(({ status }) => status === 429).length;
const wallMs = ({ data }: Execution) => data.resultData.runData.Media?.[0]?.executionTime ?? NaN;
const paidFor = () => scene.tasks.filter(({ record }) => record.state === 'SUCCESS');
const TRIES = { retryOnFail: true, maxTries: 3, waitBetweenTries: 100 };

test.each([
	[8, {}, [500, 1000, 2000, 3000, 4000, 5000, 5500, 6000]],
	[
		200,
		{ maxInFlight: 200 },
		Array.from({ length: 200 }, (_, index) => 1000 + ((index * 7919) % 7001)),
	],
])('a batch of %d leaves in input order, with few reads', async (count, options, latencies) => {
	const switches = latencies.map((latencyMs) => ({ latencyMs }));
	const execution = succeeded(await run(switches, options));
	const reads = scene.tasks.reduce((sum, task) => sum + task.reads, 0);
	console.log(`batch of ${count}: ${wallMs(execution)} ms, ${reads} reads`);
	expect(scene.tasks).toHaveLength(count);
	expect(itemsOf(execution).map((item) => [promptOf(item), item.state])).toEqual(
		latencies.map((_latency, index) => [`Prompt ${index}`, 'SUCCESS']),
	);
	expect(reads).toBeLessThanOrEqual(count * 4);
});

test('an account limit of 3 under a batch of 40: all come through, with few refusals', async () => {
	scene.service.configure({ concurrencyLimit: 3 });
	const execution = succeeded(await run(times(40, { latencyMs: 1000 }), { maxInFlight: 40 }));
	expect(scene.tasks).toHaveLength(40);
	console.log(`limit of 3, batch of 40: ${refusals()} refusals, ${wallMs(execution)} ms`);
	expect(refusals()).toBeLessThanOrEqual(20);
});

test('an account that may create 5 tasks a second: a batch of 100 comes through', async () => {
	scene.service.configure({ createsPerSecond: 5 });
	const execution = succeeded(await run(times(100, { latencyMs: 10_000 }), { maxInFlight: 100 }));
	expect(scene.tasks).toHaveLength(100);
	console.log(`5 a second, 100 of 10 s: ${refusals()} refusals, ${wallMs(execution)} ms`);
	expect(refusals()).toBeLessThanOrEqual(30);
});

test('Retry On Fail takes up the tasks of the first try: a batch is paid for once', async () => {
	// The read of one task is refused until the first try has failed.
	const execution = await run([{}, { readStatus: { status: 404, times: 3 } }, {}], {}, TRIES);
	expect(statesOf(succeeded(execution))).toEqual(Array(3).fill('SUCCESS'));
	expect(scene.creates).toHaveLength(3);
	expect(scene.tasks).toHaveLength(3);
});

test('Retry On Fail beside On Error: Continue pays for no task twice', async () => {
	// n8n tries again where the first item goes out with an error.
	const node: Partial<INode> = { ...TRIES, maxTries: 2, onError: 'continueRegularOutput' };
	const execution = await run([{ outcome: 'FAILURE' }, {}], {}, node);
	expect(statesOf(execution)).toEqual(['FAILURE', 'SUCCESS']);
	// The failed one cost nothing and was tried once more.
	expect(scene.creates).toHaveLength(3);
	expect(paidFor()).toHaveLength(1);
});

test('a task that fails by chance is created anew, and its item is paid for once', async () => {
	const execution = await run([{}, { taskFails: { times: 2 } }, {}], { retryFailed: 2 });
	const failed = scene.tasks.filter(({ record }) => record.state === 'FAILURE');
	expect(itemsOf(execution).map(({ state, failedTaskIds }) => [state, failedTaskIds])).toEqual([
		['SUCCESS', undefined],
		['SUCCESS', failed.map(({ taskId }) => taskId)],
		['SUCCESS', undefined],
	]);
	expect(scene.creates).toHaveLength(5);
	expect(paidFor()).toHaveLength(3);
});

test('Retry from the list of executions takes up the tasks of the first execution', async () => {
	const switches = [{}, { readStatus: { status: 404, times: 3 } }, {}];
	const started = await scene.startImages(switches, { options: { ifSomeFail: 'stop' } });
	expect((await started.end()).status).toBe('error');
	succeeded(await started.retry());
	expect(scene.creates).toHaveLength(3);
	expect(paidFor()).toHaveLength(3);
});

test('a create whose answer is lost is not sent again, not even by Retry On Fail', async () => {
	const switches = [{}, { createLost: { times: 1 } }];
	const execution = await run(switches, { ifSomeFail: 'stop' }, TRIES);
	expect(execution.status).toBe('error');
	expect(errorOf(execution)?.message).toContain('not known whether the task was created');
	expect(scene.creates).toHaveLength(2);
});

test('a create that the service did not take is sent again', async () => {
	succeeded(await run([{ createStatus: { status: 503, times: 2, retryAfter: 1 } }]));
	expect(scene.creates.map(({ status }) => status)).toEqual([503, 503, 200]);
});

test('reads survive a service that stumbles', async () => {
	const page = { body: '<html>Bad gateway', contentType: 'text/html' };
	const execution = await run([
		{ readStatus: { status: 502, times: 1, ...page } },
		{ readDropped: { times: 1 } },
		{ readCutShort: { times: 1 } },
		{ readStatus: { status: 429, times: 1, retryAfter: 2 } },
	]);
	succeeded(execution);
	expect(scene.tasks).toHaveLength(4);
});

test('a budget below the known price refuses the batch while it is still free', async () => {
	const execution = await run([{}, {}, {}], { maxCostUsd: 0.2 });
	expect(errorOf(execution)?.message).toContain('0.24 USD');
	expect(scene.creates).toEqual([]);
});

test('a bad expression in item 300 stops the batch while it is still free', async () => {
	const prompt = "={{ $itemIndex === 299 ? $('No such node').item.json.prompt : $json.prompt }}";
	const execution = await scene.runImages(times(300, {}), { parameters: { prompt } });
	expect(execution.status).toBe('error');
	expect(scene.creates).toEqual([]);
});

test('the rounds of a loop are never mixed up: the same prompt twice is two tasks', async () => {
	const image = scene.image({ prompt: 'the same' });
	const loop = inALoop(prompts('Prompt', [{}, {}]), image);
	const started = await scene.startWorkflow({ name: 'Loop', ...loop });
	const { data } = succeeded(await started.end());
	const ids = (data.resultData.runData.Media ?? []).map(
		(round) => round.data?.main?.[0]?.[0]?.json.taskId,
	);
	expect(ids).toEqual(scene.taskIds);
	expect(ids).toHaveLength(2);
});

test("n8n's time-out ends the reads, and n8n's log names the task that goes on", async () => {
	const settings = { executionTimeout: 8 };
	const execution = await scene.runImages([{ latencyMs: 3_600_000 }], { settings });
	expect(execution.status).toBe('canceled');
	await scene.logged(`without paying again: ${scene.taskIds[0]}`);
	const before = scene.reads.length;
	await sleep(5000);
	expect(scene.reads).toHaveLength(before);
});
