import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { outputItems, until } from '../n8n/client';
import { shortMinute } from '../n8n/settings';
import { AT_ONCE } from './atOnce';
import { inARow, itemNodes, manualTrigger } from './nodes';
import { atTheSameTime, errorOf, itemsOf, promptOf, type Run, statesOf, succeeded } from './run';
import { openScene, type Order } from './scene';

/** What can happen to a run that sleeps, all of it at the same time, on an n8n whose minutes are short. */

const MINUTE = 60_000;
const MINUTE_HERE = 10_000;

const scene = openScene({ env: shortMinute(MINUTE_HERE), clears: false });
const story = atTheSameTime(test, 300);

/** The first turn creates some of the tasks, and later ones the others. A random seed makes no other order of an item. */
const TURNS: IDataObject = {
	suspendAfter: 0.05,
	maxInFlight: 2,
	additionalInput: '={{ { simulate: $json.simulate, seed: Math.random() } }}',
};

const COUNT = 40;

/** Starts a run that sleeps from the start, unless the order says otherwise; its name begins its prompts. */
const start = async (name: string, switches: IDataObject[], order: Order = {}) =>
	await scene.startImages(switches, { name, ...order, options: { ...AT_ONCE, ...order.options } });

const turns = async (name: string, count: number, options: IDataObject = {}) =>
	await start(name, Array<IDataObject>(count).fill({ latencyMs: 2_500 }), {
		options: { ...TURNS, ...options },
	});

/** A task that ends when the test says so. */
const LATER: IDataObject = { latencyMs: 3_600_000 };

const complete = (run: Run) => run.taskIds.forEach((taskId) => scene.service.complete(taskId));

const prompts = (name: string, count: number) =>
	Array.from({ length: count }, (_, index) => `${name} ${index}`);

story('a batch is created turn by turn, in the order of the items, in one execution', async () => {
	const run = await (await turns('Turns', 12)).asleep();
	expect(run.tasks.length).toBeLessThan(12);
	const execution = succeeded(await run.end());
	expect(itemsOf(execution).map(promptOf)).toEqual(prompts('Turns', 12));
	expect(statesOf(execution)).toEqual(Array(12).fill('SUCCESS'));
	expect(run.tasks.map(({ record }) => promptOf(record))).toEqual(prompts('Turns', 12));
	expect(await run.others()).toEqual([]);
});

story('a run that is stopped in a turn leaves a record, and goes on with its retry', async () => {
	const run = await (await turns('Stopped', COUNT)).asleep();
	const before = run.tasks.length;
	await until('a later turn', MINUTE, () => run.tasks.length > before + 1);
	await run.stop();
	await until('the record', MINUTE, async () => (await run.others()).length > 0);
	const [record] = await run.others();
	const left = await scene.client.waitForExecution(record?.id ?? '');
	const ids = itemsOf(left, 'Tasks of the stopped run').map(({ taskId }) => taskId);
	expect(ids).toEqual(run.taskIds);
	const items = itemsOf(succeeded(await run.retry()));
	expect(items.map(promptOf)).toEqual(prompts('Stopped', COUNT));
	const paid = run.tasks.map(({ record: { input } }) => promptOf({ input }));
	expect(new Set(paid).size).toBe(paid.length);
	const doubtful = items.filter(({ error }) => String(error).startsWith('It is not known'));
	expect(doubtful.length).toBeLessThanOrEqual(25);
	const rest = items.filter((item) => !doubtful.includes(item));
	expect(new Set(rest.map(({ state }) => state))).toEqual(new Set(['SUCCESS']));
});

story('a run that is stopped asleep has its tasks read no more', async () => {
	const run = await (await start('Unread', [LATER])).asleep(2);
	await run.suspended();
	await run.stop();
	const before = run.reads;
	await sleep(3 * MINUTE_HERE);
	expect(run.reads).toBe(before);
	expect((await run.now()).status).toBe('canceled');
});

story('a run that is stopped asleep goes on with its retry, and nothing is in doubt', async () => {
	const run = await (await turns('Asleep', 12, { checkInterval: 10 })).asleep();
	await run.suspended();
	await run.stop();
	const items = itemsOf(succeeded(await run.retry()));
	expect(items.map(({ state }) => state)).toEqual(Array(12).fill('SUCCESS'));
	expect(run.tasks).toHaveLength(12);
});

story(
	'the retry of a run that has failed orders nothing twice, whatever its expressions give',
	async () => {
		const options = { ...TURNS, suspendAfter: 5, maxInFlight: 10, ifSomeFail: 'stop' };
		const failing = { latencyMs: 500, outcome: 'FAILURE', failureMessage: 'no such colour' };
		const switches = [{ latencyMs: 500 }, failing, { latencyMs: 500 }, { latencyMs: 500 }];
		const run = await start('Random', switches, { options });
		expect(errorOf(await run.end())?.message).toContain('no such colour');
		expect(run.tasks).toHaveLength(4);
		expect(errorOf(await run.retry())?.message).toContain('no such colour');
		expect(run.tasks).toHaveLength(5);
		const overdue = await start('Overdue', Array<IDataObject>(3).fill(LATER), {
			options: { ...options, timeout: 3 },
		});
		expect((await overdue.end()).status).toBe('error');
		complete(overdue);
		expect(statesOf(succeeded(await overdue.retry()))).toEqual(Array(3).fill('SUCCESS'));
		expect(overdue.tasks).toHaveLength(3);
	},
);

story('where no task succeeds the node fails', async () => {
	const failing = { latencyMs: 3_000, outcome: 'FAILURE', failureMessage: 'no such colour' };
	const run = await start('Failing', [failing, failing]);
	expect(errorOf(await run.end())?.message).toContain(`${run.taskIds[0]} failed at the service`);
});

story(
	'a run that has slept is tried again by Retry On Fail, and pays for what has failed alone',
	async () => {
		const node = { retryOnFail: true, maxTries: 2, waitBetweenTries: 100 };
		const failing = { latencyMs: 3_000, taskFails: { times: 1 } };
		const options = { ifSomeFail: 'stop' };
		const run = await start('Tried', [failing, { latencyMs: 3_000 }], { options, node });
		const execution = await run.end();
		const prompt = (place: number) =>
			run.tasks.filter(({ record }) => promptOf(record).endsWith(`${place}`));
		expect(prompt(1)).toHaveLength(1);
		expect(execution.status).toBe(prompt(0).length === 2 ? 'success' : 'error');
	},
);

story('a workflow that is renamed, edited and switched off meanwhile', async () => {
	const run = await (await start('Edited', [LATER])).asleep(2);
	await run.suspended();
	const other = inARow(manualTrigger(), itemNodes('Other', [{}]));
	await scene.client.updateWorkflow(run.workflowId, { name: 'Renamed', ...other });
	complete(run);
	expect(statesOf(await run.end())).toEqual(['SUCCESS']);
});

const SETTINGS: Record<string, IDataObject> = {
	Private: { callerPolicy: 'none' },
	Unsaved: { saveDataSuccessExecution: 'none', saveDataErrorExecution: 'none' },
	Progress: { saveDataSuccessExecution: 'none', saveExecutionProgress: true },
};
for (const [name, settings] of Object.entries(SETTINGS)) {
	story(`a workflow with the settings ${JSON.stringify(settings)}`, async () => {
		const after = [scene.collector.node()];
		const run = await start(name, [{ latencyMs: 12_000 }], { after, settings });
		await run.asleep(2);
		await scene.arrived(run.taskIds[0]);
	});
}

/** A node with a credential of its own. */
async function ownCredential() {
	const { client, service } = scene;
	const data = { baseUrl: service.url, apiKey: service.apiKey };
	const own = await client.createCredential('Own', 'mediaGenerationApi', data);
	const node = { credentials: { mediaGenerationApi: { id: own.id, name: own.name } } };
	return { own, data, node };
}

story(
	'a credential that cannot be used at the timeout, and can be used a minute later',
	async () => {
		const { own, data, node } = await ownCredential();
		const run = await start('Unusable', [LATER], { options: { timeout: 20 }, node });
		await run.asleep();
		await until('the task', MINUTE, () => run.tasks.length === 1);
		await scene.client.updateCredential(own, { ...data, baseUrl: 'not an address' });
		await sleep(45_000);
		complete(run);
		await scene.client.updateCredential(own, data);
		expect(statesOf(succeeded(await run.end()))).toEqual(['SUCCESS']);
	},
);

story(
	'a credential that is deleted: at the end of the time that is left, the items leave with their ids',
	async () => {
		const { own, node } = await ownCredential();
		// Without a limit of the workflow the run tries for ten minutes more.
		const settings = { executionTimeout: 170 };
		const run = await start('Deleted', [LATER, LATER], {
			settings,
			node: { ...node, onError: 'continueRegularOutput' },
		});
		await run.asleep();
		await until('the tasks', MINUTE, () => run.tasks.length === 2);
		await scene.client.deleteCredential(own.id);
		complete(run);
		const items = itemsOf(succeeded(await run.end()));
		expect(items.map(({ taskId }) => taskId)).toEqual(run.taskIds);
		expect(items.every(({ error }) => typeof error === 'string')).toBe(true);
		expect(run.tasks).toHaveLength(2);
	},
);

story("the workflow's own time limit ends the wait before n8n cancels the run", async () => {
	const settings = { executionTimeout: 170 };
	const node = { onError: 'continueRegularOutput' as const };
	const run = await start('Limited', [LATER, LATER], { settings, node });
	const items = itemsOf(succeeded(await run.end()));
	expect(run.sleeps).toBeGreaterThan(2);
	expect(items.map(({ taskId, state, timedOut }) => [taskId, state, timedOut])).toEqual(
		run.taskIds.map((taskId) => [taskId, 'PENDING', true]),
	);
});

story('while the media host is down the run sleeps; each file comes later, once', async () => {
	const down = { mediaStatus: { status: 503, times: 8 } };
	const run = await start('Media', [{ latencyMs: 1_000, ...down }, { latencyMs: 1_000 }], {
		options: { downloadResults: true },
	});
	await run.asleep();
	await until('the media host to be asked', MINUTE, () => mediaOf(run).length > 2);
	const execution = succeeded(await run.end());
	const files = outputItems(execution, 'Media').map(({ binary }) => binary?.data?.mimeType);
	expect(files).toEqual(['image/png', 'image/png']);
	expect(run.sleeps).toBeGreaterThan(1);
	const fetched = mediaOf(run).filter(({ status }) => status === 200);
	expect(fetched).toHaveLength(2);
});

const mediaOf = (run: Run) =>
	scene.requests('media', 'GET').filter(({ path }) => run.taskIds.some((id) => path.includes(id)));

story('200 tasks in one run that sleeps: few reads of the service', async () => {
	const run = await start('Many', Array<IDataObject>(200).fill({ latencyMs: [5_000, 30_000] }));
	await run.asleep();
	expect(statesOf(succeeded(await run.end()))).toEqual(Array(200).fill('SUCCESS'));
	expect(run.tasks).toHaveLength(200);
	console.log(`200 tasks: ${run.reads} reads, ${run.sleeps} sleeps`);
	// A turn that has news reads each task once, and a look one of them.
	expect(run.reads).toBeLessThan(1_000);
});
