import { setTimeout as sleep } from 'node:timers/promises';
import type { IConnections, IDataObject, INode, INodeExecutionData, ITaskData } from 'n8n-workflow';

import { type Execution, outputItems, until } from '../n8n/client';
import { shortMinute } from '../n8n/settings';
import {
	call,
	called,
	inALoop,
	inARow,
	itemNodes,
	linked,
	manualTrigger,
	node,
	prompts,
	to,
	type Wired,
	withField,
} from './nodes';
import { atTheSameTime, errorOf, itemsOf, promptOf, type Run, statesOf, succeeded } from './run';
import { AT_ONCE, openScene, type Order, RANDOM } from './scene';

/**
 * A run that waits long sleeps, and n8n runs it again. Whatever comes out is what comes out of a run that is held, in
 * every shape of a workflow, and in one execution. What depends on the node's own options is in `test/workflow`.
 */

const MINUTE = 60_000;
const MINUTE_HERE = 10_000;

const scene = openScene({ env: shortMinute(MINUTE_HERE), clears: false });

describe('held, asleep from the start, and asleep after a short hold: the same comes out', () => {
	const story = atTheSameTime(test, 300);

	const MODES: Record<string, IDataObject> = {
		held: { suspendAfter: 30 },
		'asleep from the start': AT_ONCE,
		'asleep after a short hold': { suspendAfter: 0.1 },
	};

	const image = (mode: IDataObject, options: IDataObject = {}, more: Partial<INode> = {}) =>
		scene.image({ options: { downloadResults: true, ...mode, ...options } }, more);

	/** What ends while the run is held, what ends later, and what is not finished when its time is up. */
	const BATCH: Array<{ simulate: IDataObject; timeout?: number }> = [
		{ simulate: { latencyMs: 0 } },
		{ simulate: { latencyMs: 3_000, outcome: 'FAILURE', failureMessage: 'no such colour' } },
		{ simulate: { latencyMs: 12_000, resultCount: 2 } },
		{ simulate: { latencyMs: 15_000, outcome: 'FAILURE', failureMessage: 'no such form' } },
		{ simulate: { latencyMs: 3_600_000 }, timeout: 20 },
		{ simulate: { latencyMs: 2_500 } },
	];

	const batch = async (mode: IDataObject, options: IDataObject = {}, node?: Partial<INode>) =>
		await scene.startImages(
			BATCH.map(({ simulate }) => simulate),
			{
				fields: BATCH.map(({ timeout = 0 }) => ({ timeout })),
				options: {
					timeout: '={{ $json.timeout }}',
					downloadResults: true,
					reference: '=row {{ $itemIndex }}',
					...mode,
					...options,
				},
				node,
				after: [linked()],
			},
		);

	const BOTH = [{ latencyMs: 9_000 }, { latencyMs: 2_000, resultCount: 2 }];
	const both = () => prompts('Prompt', BOTH);

	/** Publishes a sub-workflow that generates an image for each item. @returns the node that calls it */
	async function callOf(mode: IDataObject) {
		const child = { name: 'Child', ...inARow(called(), image(mode)) };
		const { id } = await scene.client.createWorkflow(child);
		await scene.client.publish(id);
		return call(id);
	}

	/** Two nodes of ours side by side, whose items a Merge node joins. */
	function merged(mode: IDataObject) {
		const merge = node('n8n-nodes-base.merge', 'Merge', {}, 3);
		const other = image(mode, { reference: 'other' }, { name: 'Other' });
		const row = inARow(manualTrigger(), both(), image(mode), merge, linked());
		const connections: IConnections = {
			...row.connections,
			Prompts: { main: to('Media', 'Other') },
			Other: { main: [[{ node: 'Merge', type: 'main', index: 1 }]] },
		};
		return { nodes: [...row.nodes, other], connections };
	}

	/** Two branches lead into the node, which runs once for each. */
	function branches(mode: IDataObject) {
		const row = inARow(manualTrigger(), both(), image(mode), linked());
		const other = withField('Other branch', 'branch', 'other');
		const connections = {
			...row.connections,
			Prompts: { main: to('Media', other.name) },
			[other.name]: { main: to('Media') },
		};
		return { nodes: [...row.nodes, other], connections };
	}

	/** @param executionOrder that of new workflows, if it is not said */
	const workflow = async (wired: Wired, executionOrder: 'v0' | 'v1' = 'v1') =>
		await scene.startWorkflow({ name: 'Prompt', ...wired, settings: { executionOrder } });

	const inputs = async (mode: IDataObject, node: Partial<INode>) => {
		const options = { includeInput: true, splitResults: true };
		const picture = image({}, {}, { name: 'Picture' });
		return await scene.start('Prompt', both(), picture, withPrompt(), image(mode, options, node));
	};
	/** The result of a node before has no field `prompt` at its top. */
	const withPrompt = () => withField('Again', 'prompt', '={{ $json.input.prompt }}');

	const SHAPES: Record<string, (mode: IDataObject) => Promise<Run>> = {
		'keeping what succeeded': async (mode) => await batch(mode),
		'with On Error: Continue': async (mode) =>
			await batch(mode, {}, { onError: 'continueRegularOutput' }),
		'with an error output': async (mode) =>
			await batch(mode, {}, { onError: 'continueErrorOutput' }),
		'stopping with an error': async (mode) => await batch(mode, { ifSomeFail: 'stop' }),
		'with Always Output Data': async (mode) => await batch(mode, {}, { alwaysOutputData: true }),
		'the input and its files beside each result': async (mode) => await inputs(mode, {}),
		'with Execute Once': async (mode) => await inputs(mode, { executeOnce: true }),
		'in a loop': async (mode) => await workflow(inALoop(both(), image(mode))),
		'two branches lead into the node': async (mode) => await workflow(branches(mode)),
		'a Merge node behind two nodes': async (mode) => await workflow(merged(mode)),
		'a Merge node, in the former order of execution': async (mode) =>
			await workflow(merged(mode), 'v0'),
		'two branches, in the former order of execution': async (mode) =>
			await workflow(branches(mode), 'v0'),
		'twice, one after the other': async (mode) =>
			await scene.start(
				'Prompt',
				both(),
				image(mode),
				withPrompt(),
				image(mode, { additionalInput: '{}' }, { name: 'Next' }),
			),
		'in a sub-workflow': async (mode) =>
			await scene.start('Prompt', both(), await callOf(mode), linked()),
	};

	const lengthOf = async (id: string | undefined) => id && (await scene.client.file(id)).length;

	/** An item, without the id of its files. */
	const itemOf = async ({ json, binary = {}, pairedItem }: INodeExecutionData) => ({
		json,
		pairedItem,
		files: await Promise.all(
			Object.entries(binary).map(async ([field, { id, ...file }]) => ({
				...file,
				field,
				kept: id?.split(':')[0],
				length: await lengthOf(id),
			})),
		),
	});

	async function outputsOf({ data }: ITaskData) {
		const all = data?.main ?? [];
		const outputs = await Promise.all(
			all.map(async (items) => await Promise.all((items ?? []).map(itemOf))),
		);
		while (outputs.at(-1)?.length === 0) outputs.pop();
		return outputs;
	}

	/** What came out of each run of each node, with the ids, the times and the places of files made alike. */
	async function comparable({ status, data }: Execution): Promise<unknown> {
		const { error, runData } = data.resultData;
		const { description } = (error ?? {}) as { description?: string };
		const nodes: Record<string, unknown> = {};
		for (const [name, runs] of Object.entries(runData)) {
			nodes[name] = await Promise.all(runs.map(outputsOf));
		}
		const text = JSON.stringify({
			status,
			error: error && { message: error.message, description },
			nodes,
		});
		const named = scene.tasks.reduce(
			(all, { taskId, record }) => all.replaceAll(taskId, `the task of '${promptOf(record)}'`),
			text,
		);
		const files = named.replaceAll(/-[0-9a-f]{4}((?:-\d+)?\.\w+")/g, '-task$1');
		return JSON.parse(files.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'a time')) as unknown;
	}

	for (const [shape, start] of Object.entries(SHAPES)) {
		story(shape, async () => {
			const runs = await Promise.all(
				Object.entries(MODES).map(async ([mode, options]) => ({ mode, run: await start(options) })),
			);
			let held: unknown;
			for (const { mode, run } of runs) {
				const end = await comparable(await run.end(6 * MINUTE));
				if (mode === 'held') held = end;
				expect({ mode, end }).toEqual({ mode, end: held });
				expect(await run.others()).toEqual([]);
			}
		});
	}
});

/** What can happen to a run that sleeps, all of it at the same time. */
describe('while it sleeps', () => {
	const story = atTheSameTime(test, 300);

	const COUNT = 40;

	/** Starts a run that sleeps from the start, unless the order says otherwise; its name begins its prompts. */
	const start = async (name: string, switches: IDataObject[], order: Order = {}) =>
		await scene.startImages(switches, {
			name,
			...order,
			options: { ...AT_ONCE, ...order.options },
		});

	/** A task that ends when the test says so. */
	const LATER: IDataObject = { latencyMs: 3_600_000 };

	const complete = (run: Run) => run.taskIds.forEach((taskId) => scene.service.complete(taskId));

	const promptsOf = (name: string, count: number) =>
		Array.from({ length: count }, (_, index) => `${name} ${index}`);

	story(
		'a batch is created turn by turn, in the order of the items, in one execution',
		async () => {
			const run = await (await scene.startTurns('Turns', 12)).asleep();
			const execution = succeeded(await run.end());
			expect(itemsOf(execution).map(promptOf)).toEqual(promptsOf('Turns', 12));
			expect(statesOf(execution)).toEqual(Array(12).fill('SUCCESS'));
			expect(run.tasks.map(({ record }) => promptOf(record))).toEqual(promptsOf('Turns', 12));
			expect(await run.others()).toEqual([]);
		},
	);

	story(
		'a run that is stopped in a turn leaves a list of its tasks, is found by its number, and goes on with its retry',
		async () => {
			const run = await (await scene.startTurns('Stopped', COUNT)).inALaterTurn();
			await run.stop();
			const left = (await run.left()).map(({ taskId }) => taskId);
			expect(left).toEqual(expect.arrayContaining(run.taskIds.slice(0, 2)));
			await run.expectRetryGoesOn(COUNT, 0);
			// Later, since it changes the workflow.
			const ids = (await run.fetched()).items.map(({ taskId }) => taskId);
			expect(ids).toEqual(expect.arrayContaining(run.taskIds.slice(0, 2)));
		},
	);

	story('a run that is stopped asleep has its tasks read no more', async () => {
		const run = await (await start('Unread', [LATER])).asleep(2);
		await run.suspended();
		await run.stop();
		const before = run.reads;
		await sleep(3 * MINUTE_HERE);
		expect(run.reads).toBe(before);
		expect((await run.now()).status).toBe('canceled');
	});

	story(
		'a run that is stopped asleep goes on with its retry, and nothing is in doubt',
		async () => {
			const run = await scene.startTurns('Asleep', 12);
			await run.suspended();
			await run.stop();
			const items = itemsOf(succeeded(await run.retry()));
			expect(items.map(({ state }) => state)).toEqual(Array(12).fill('SUCCESS'));
			expect(run.tasks).toHaveLength(12);
		},
	);

	story(
		'the retry of a run that has failed orders nothing twice, whatever its expressions give',
		async () => {
			const options = { ...RANDOM, suspendAfter: 5, maxInFlight: 10, ifSomeFail: 'stop' };
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
			// The run tries for as long again.
			const run = await start('Unusable', [LATER], { options: { timeout: 60 }, node });
			await run.asleep();
			await until('the task', MINUTE, () => run.tasks.length === 1);
			await scene.client.updateCredential(own, { ...data, baseUrl: 'not an address' });
			await sleep(80_000);
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
			const settings = { executionTimeout: 190 };
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
		const settings = { executionTimeout: 190 };
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
		await until(
			'the media host to be asked',
			MINUTE,
			() => scene.downloads(run.taskIds).length > 2,
		);
		const execution = succeeded(await run.end());
		const files = outputItems(execution, 'Media').map(({ binary }) => binary?.data?.mimeType);
		expect(files).toEqual(['image/png', 'image/png']);
		expect(run.sleeps).toBeGreaterThan(1);
		const fetched = scene.downloads(run.taskIds).filter(({ status }) => status === 200);
		expect(fetched).toHaveLength(2);
	});

	story('200 tasks in one run that sleeps: few reads of the service', async () => {
		const run = await start('Many', Array<IDataObject>(200).fill({ latencyMs: [5_000, 30_000] }));
		await run.asleep();
		expect(statesOf(succeeded(await run.end()))).toEqual(Array(200).fill('SUCCESS'));
		expect(run.tasks).toHaveLength(200);
		console.log(`200 tasks: ${run.reads} reads, ${run.sleeps} sleeps`);
		// A turn that has news reads each task once, and a look one of them.
		expect(run.reads).toBeLessThan(1_000);
	});
});
