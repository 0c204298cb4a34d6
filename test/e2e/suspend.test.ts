import { randomUUID } from 'node:crypto';
import type { IDataObject } from 'n8n-workflow';

import { outputItems, until } from '../n8n/client';
import { shortMinute } from '../n8n/settings';
import { AT_ONCE } from './atOnce';
import { node } from './nodes';
import { errorOf, itemsOf, promptOf, statesOf, succeeded } from './run';
import { openScene } from './scene';

// Callbacks come before n8n looks by itself.
const scene = openScene({ env: shortMinute(20_000) });

/** A task that ends when the test says so. */
const LATER: IDataObject = { latencyMs: 3_600_000 };
const FAILING: IDataObject = { ...LATER, outcome: 'FAILURE', failureMessage: 'no such colour' };

/** Starts a run that suspends itself for some tasks, one for each object of switches. */
const start = async (switches: IDataObject[]) =>
	await scene.startImages(switches, { options: AT_ONCE, after: [scene.collector.node()] });

test('an execution is suspended, and resumed once when all its tasks are finished, in input order', async () => {
	const run = await start([LATER, FAILING, LATER, { latencyMs: 0 }]);
	await run.suspended();
	const [first = '', second = '', third = ''] = scene.taskIds;
	for (const taskId of [second, third, first]) scene.service.complete(taskId);
	const execution = succeeded(await run.end());
	const items = itemsOf(execution);
	expect(items.map(promptOf)).toEqual([0, 1, 2, 3].map((item) => `Prompt ${item}`));
	expect(items.map(({ state }) => state)).toEqual(['SUCCESS', 'FAILURE', 'SUCCESS', 'SUCCESS']);
	expect(items[1]?.error).toContain('no such colour');
	expect(items.some((item) => 'timedOut' in item)).toBe(false);
	expect(outputItems(execution, 'Media').map(({ pairedItem }) => pairedItem)).toEqual(
		[0, 1, 2, 3].map((item) => ({ item })),
	);
	await scene.collector.settle(4);
	expect(scene.collector.seen).toEqual(scene.taskIds);
});

test('where no task succeeds the node fails', async () => {
	const run = await (await start([FAILING, FAILING])).suspended();
	for (const taskId of scene.taskIds) scene.service.complete(taskId);
	const execution = await run.end();
	const [taskId] = scene.taskIds;
	expect(errorOf(execution)?.message).toContain(`Task ${taskId} failed at the service`);
});

test('a last callback that comes during a check is to come again, and then resumes the execution', async () => {
	// The check is answered after the callback, and finds the task unfinished all the same.
	const slow = { readDelayMs: 5_000, endLagMs: 8_000, callbackBackoffMs: 4_000 };
	const run = await (await start([{ ...LATER, ...slow }])).suspended();
	const reads = scene.reads.length;
	await until('the check', 60_000, () => scene.reads.length > reads);
	scene.service.complete(scene.taskIds[0] ?? '');
	expect(statesOf(await run.end())).toEqual(['SUCCESS']);
	// It is sent again until nobody checks: once or twice, as long as the check takes.
	const statuses = scene.service.callbacks.map(({ status }) => status);
	expect([...new Set(statuses)]).toEqual([503, 200]);
	expect(statuses.filter((status) => status === 200)).toHaveLength(1);
});

test("a callback that comes once more resumes no Wait node behind, even if its suffix is 'callback'", async () => {
	const parameters = {
		resume: 'webhook',
		httpMethod: 'POST',
		options: { webhookSuffix: 'callback' },
	};
	const wait = { ...node('n8n-nodes-base.wait', 'Wait', parameters, 1.1), webhookId: randomUUID() };
	const run = await scene.startImages([LATER], { options: AT_ONCE, after: [wait] });
	await run.suspended();
	const [{ taskId = '', webhookUrl = '' } = {}] = scene.tasks;
	scene.service.complete(taskId);
	await until('the wait of the other node', 60_000, async () => {
		const { status, data } = await run.now();
		return status === 'waiting' && 'Wait' in data.resultData.runData;
	});
	expect(await scene.deliver(webhookUrl, taskId)).toBe(404);
	expect((await run.now()).status).toBe('waiting');
	await run.stop();
});

test('Retry On Fail does not run a suspended node again', async () => {
	const node = { retryOnFail: true, maxTries: 3, waitBetweenTries: 100 };
	const run = await scene.startImages([FAILING, LATER], { options: AT_ONCE, node });
	// While the run is held, a task that fails has the node tried again.
	await run.suspended();
	for (const taskId of scene.taskIds) scene.service.complete(taskId);
	expect(statesOf(await run.end())).toEqual(['FAILURE', 'SUCCESS']);
	expect(scene.tasks).toHaveLength(2);
});

test('200 tasks in one suspended execution: few reads of the service', async () => {
	const run = await start(Array<IDataObject>(200).fill({ latencyMs: [5_000, 30_000] }));
	await run.suspended();
	// While the run creates, how often it reads depends on the time that this takes.
	const before = scene.reads.length;
	expect(statesOf(await run.end())).toEqual(Array(200).fill('SUCCESS'));
	expect(scene.tasks).toHaveLength(200);
	const reads = scene.reads.length - before;
	console.log(`200 suspended tasks: ${reads} reads since the suspension`);
	// Each task is read by the last check, and once before at most: where its callback is late, and another task's callback
	// has n8n look for unfinished tasks. A task that is found unfinished ends such a look, and the next comes two seconds later.
	expect(reads).toBeLessThan(500);
}, 300_000);
