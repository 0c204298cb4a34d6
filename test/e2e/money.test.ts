import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject, INode } from 'n8n-workflow';

import { type Execution, outputItems } from '../n8n/client';
import { inARow, itemsNode, manualTrigger, node, Stage } from './stage';

let stage: Stage;
beforeAll(async () => {
	stage = await Stage.open();
}, 900_000);
afterAll(async () => await stage?.close());
beforeEach(() => stage.reset());
// The figures of each fault, for whoever keeps account of them.
afterEach(() =>
	console.log(
		`${expect.getState().currentTestName}: ${creates().length} requests, ${stage.service.tasks.size} tasks, ${timesPaid().length} paid for`,
	),
);

/** Runs a batch of images, one for each object of switches. */
const run = async (switches: IDataObject[], options: IDataObject, settings: Partial<INode> = {}) =>
	await stage.client.waitForExecution(
		await stage.startImages(switches, options, { node: settings }),
		110_000,
	);

const creates = () => stage.service.requests.filter(({ method }) => method === 'POST');
const refusals = () => creates().filter(({ status }) => status === 429);
const wallMs = ({ data }: Execution) => data.resultData.runData.Media?.[0]?.executionTime ?? NaN;
const timesPaid = () =>
	[...stage.service.tasks.values()].filter((task) => task.record.state === 'SUCCESS');

test('an account limit of 3 under a batch of 40: all come through, with few refusals', async () => {
	stage.service.configure({ concurrencyLimit: 3 });
	const execution = await run(Array<IDataObject>(40).fill({ latencyMs: 1000 }), {
		maxInFlight: 40,
	});
	expect(execution.status).toBe('success');
	expect(stage.service.tasks.size).toBe(40);
	console.log(`limit of 3, batch of 40: ${refusals().length} refusals, ${wallMs(execution)} ms`);
	expect(refusals().length).toBeLessThanOrEqual(10);
});

test('a single refusal of the first create does not keep the batch back', async () => {
	stage.service.configure({ createStatus: { status: 503, retryAfter: 1, times: 1 } });
	const execution = await run(Array<IDataObject>(60).fill({ latencyMs: 6000 }), {
		maxInFlight: 60,
	});
	expect(execution.status).toBe('success');
	console.log(`one 503, 60 tasks of 6 s: ${wallMs(execution)} ms`);
	expect(creates().filter(({ status }) => status !== 200)).toHaveLength(1);
	expect(stage.service.tasks.size).toBe(60);
	expect(wallMs(execution)).toBeLessThan(12_000);
});

test('an account that may create 5 tasks a second: a batch of 100 takes little longer than it must', async () => {
	stage.service.configure({ createsPerSecond: 5 });
	const execution = await run(Array<IDataObject>(100).fill({ latencyMs: 10_000 }), {
		maxInFlight: 100,
	});
	expect(execution.status).toBe('success');
	expect(stage.service.tasks.size).toBe(100);
	console.log(`5 a second, 100 of 10 s: ${refusals().length} refusals, ${wallMs(execution)} ms`);
	expect(refusals().length).toBeLessThanOrEqual(16);
	// 19 s for the creates, 10 s for the last task, and a read.
	expect(wallMs(execution)).toBeLessThan(1.25 * 30_000);
});

test('Retry On Fail takes up the tasks of the first try: a batch is paid for once', async () => {
	const { service } = stage;
	// The read of one task is refused until the first try has failed.
	const execution = await run(
		[{}, { readStatus: { status: 404, times: 3 } }, {}],
		{},
		{ retryOnFail: true, maxTries: 3, waitBetweenTries: 100 },
	);
	expect(execution.status).toBe('success');
	expect(outputItems(execution, 'Media').map(({ json }) => json.state)).toEqual(
		Array(3).fill('SUCCESS'),
	);
	expect(creates()).toHaveLength(3);
	expect(service.tasks.size).toBe(3);
});

test('Retry On Fail beside On Error: Continue pays for no task twice', async () => {
	// n8n tries again where the first item goes out with an error.
	const execution = await run(
		[{ outcome: 'FAILURE' }, {}],
		{},
		{ retryOnFail: true, maxTries: 2, waitBetweenTries: 100, onError: 'continueRegularOutput' },
	);
	expect(outputItems(execution, 'Media').map(({ json }) => json.state)).toEqual([
		'FAILURE',
		'SUCCESS',
	]);
	// The failed one cost nothing and was tried once more.
	expect(creates()).toHaveLength(3);
	expect(timesPaid()).toHaveLength(1);
});

test('a task that fails by chance is created anew, and its item is paid for once', async () => {
	const execution = await run([{}, { taskFails: { times: 2 } }, {}], { retryFailed: 2 });
	expect(execution.status).toBe('success');
	const output = outputItems(execution, 'Media').map(({ json }) => json);
	expect(output.map(({ state }) => state)).toEqual(Array(3).fill('SUCCESS'));
	const failed = [...stage.service.tasks.values()].filter(
		({ record }) => record.state === 'FAILURE',
	);
	expect(output.map(({ failedTaskIds }) => failedTaskIds)).toEqual([
		undefined,
		failed.map(({ taskId }) => taskId),
		undefined,
	]);
	expect(creates()).toHaveLength(5);
	expect(timesPaid()).toHaveLength(3);
});

test('Retry from the list of executions takes up the tasks of the first execution', async () => {
	const { client } = stage;
	const failed = await run([{}, { readStatus: { status: 404, times: 3 } }, {}], {
		ifSomeFail: 'stop',
	});
	expect(failed.status).toBe('error');
	const retried = await client.waitForExecution(await client.retryExecution(failed.id));
	expect(retried.status).toBe('success');
	expect(creates()).toHaveLength(3);
	expect(timesPaid()).toHaveLength(3);
});

test('a create whose answer is lost is not sent again, not even by Retry On Fail', async () => {
	const execution = await run(
		[{}, { createLost: { times: 1 } }],
		{ ifSomeFail: 'stop' },
		{ retryOnFail: true, maxTries: 3, waitBetweenTries: 100 },
	);
	expect(execution.status).toBe('error');
	expect(execution.data.resultData.error?.message).toContain(
		'not known whether the task was created',
	);
	expect(creates()).toHaveLength(2);
});

test('a create that the service did not take is sent again', async () => {
	const execution = await run([{ createStatus: { status: 503, times: 2, retryAfter: 1 } }], {});
	expect(execution.status).toBe('success');
	expect(creates().map(({ status }) => status)).toEqual([503, 503, 200]);
});

test('reads survive a service that stumbles', async () => {
	const execution = await run(
		[
			{
				readStatus: { status: 502, times: 1, body: '<html>Bad gateway', contentType: 'text/html' },
			},
			{ readDropped: { times: 1 } },
			{ readCutShort: { times: 1 } },
			{ readStatus: { status: 429, times: 1, retryAfter: 2 } },
		],
		{},
	);
	expect(execution.status).toBe('success');
	expect(stage.service.tasks.size).toBe(4);
});

test('a budget below the known price refuses the batch while it is still free', async () => {
	const execution = await run([{}, {}, {}], { maxCostUsd: 0.2 });
	expect(execution.data.resultData.error?.message).toContain('0.24 USD');
	expect(creates()).toEqual([]);
});

test('a bad expression in item 300 stops the batch while it is still free', async () => {
	const { client } = stage;
	const items = Array.from({ length: 300 }, (_, index) => ({ prompt: `Prompt ${index}` }));
	const workflow = await client.createWorkflow({
		name: 'Bad expression',
		...inARow(
			manualTrigger(),
			itemsNode('Prompts', items),
			stage.mediaNode('mediaGeneration', 'Media', {
				resource: 'image',
				operation: 'generate',
				prompt: "={{ $itemIndex === 299 ? $('No such node').item.json.prompt : $json.prompt }}",
			}),
		),
	});
	const execution = await client.waitForExecution(await client.run(workflow.id));
	expect(execution.status).toBe('error');
	expect(creates()).toEqual([]);
});

test('the rounds of a loop are never mixed up: the same prompt twice is two tasks', async () => {
	const { client } = stage;
	const items = itemsNode('Prompts', [{ prompt: 'the same' }, { prompt: 'the same' }]);
	const loop = node('n8n-nodes-base.splitInBatches', 'Loop', { options: {} }, 3);
	const media = stage.mediaNode('mediaGeneration', 'Media', {
		resource: 'image',
		operation: 'generate',
		prompt: '={{ $json.prompt }}',
	});
	const { nodes, connections } = inARow(manualTrigger(), items, loop);
	const workflow = await client.createWorkflow({
		name: 'Loop',
		nodes: [...nodes, media],
		connections: {
			...connections,
			Loop: { main: [[], [{ node: 'Media', type: 'main', index: 0 }]] },
			Media: { main: [[{ node: 'Loop', type: 'main', index: 0 }]] },
		},
	});
	const execution = await client.waitForExecution(await client.run(workflow.id));
	expect(execution.status).toBe('success');
	const ids = (execution.data.resultData.runData.Media ?? []).map(
		({ data }) => data?.main?.[0]?.[0]?.json.taskId,
	);
	expect(ids).toEqual([...stage.service.tasks.keys()]);
	expect(ids).toHaveLength(2);
});

test("n8n's time-out ends the reads, and n8n's log names the task that goes on", async () => {
	const { client, service, runner } = stage;
	const workflow = await client.createWorkflow({
		name: 'Timed out by n8n',
		settings: { executionTimeout: 3 },
		...inARow(
			manualTrigger(),
			stage.mediaNode('mediaGeneration', 'Media', {
				resource: 'image',
				operation: 'generate',
				prompt: 'slow',
				options: { additionalInput: '{ "simulate": { "latencyMs": 60000 } }' },
			}),
		),
	});
	const execution = await client.waitForExecution(await client.run(workflow.id));
	expect(execution.status).toBe('canceled');
	const reads = () => service.requests.filter(({ method }) => method === 'GET').length;
	await sleep(1000);
	const before = reads();
	await sleep(5000);
	expect(reads()).toBe(before);
	const [taskId = ''] = service.tasks.keys();
	expect(readFileSync(runner.logFile, 'utf8')).toContain(`billed if it succeeds: ${taskId}`);
});
