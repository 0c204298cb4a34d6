import { readFileSync } from 'node:fs';
import type { IDataObject, INode } from 'n8n-workflow';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/prices';
import { type Execution, outputItems, TEST_OWNER, until } from '../n8n/client';
import { shortMinute, WHOLE_MINUTE } from '../n8n/settings';
import { AT_ONCE } from './atOnce';
import { Collector } from './collector';
import { needing } from './needs';
import { inARow, itemsNode, manualTrigger, node, Stage } from './stage';

/** A wait is held, and suspended where it takes long: what comes out is the same. */

let stage: Stage;
let collector: Collector;

const MINUTE = 60_000;

beforeAll(async () => {
	stage = await Stage.open({ N8N_DEFAULT_BINARY_DATA_MODE: 'filesystem' });
	collector = await Collector.open();
}, 900_000);
afterAll(async () => {
	collector?.close();
	await stage?.close();
});
beforeEach(() => {
	stage.reset();
	collector.reset();
});

/** Shorter than the tasks of a test take, minutes. */
const SOON = 0.02;

const MODES: Record<string, IDataObject> = {
	held: { suspendAfter: 30 },
	'suspended at once': AT_ONCE,
	'suspended after a short hold': { suspendAfter: 0.1 },
};

/** What ends while the run is held, what ends later, and what is not finished when its time is up. */
const BATCH: Array<{ simulate: IDataObject; timeout?: number }> = [
	{ simulate: { latencyMs: 0 } },
	{ simulate: { latencyMs: 3_000, outcome: 'FAILURE', failureMessage: 'no such colour' } },
	{ simulate: { latencyMs: 12_000, resultCount: 2 } },
	{ simulate: { latencyMs: 15_000, outcome: 'FAILURE', failureMessage: 'no such form' } },
	{ simulate: { latencyMs: 3_600_000 }, timeout: 20 },
	{ simulate: { latencyMs: 2_500 } },
];

const media = (options: IDataObject, more: Partial<INode> = {}) =>
	stage.mediaNode(
		'mediaGeneration',
		'Media',
		{
			resource: 'image',
			operation: 'generate',
			prompt: '={{ $json.prompt }}',
			options: { additionalInput: '={{ { simulate: $json.simulate } }}', ...options },
		},
		more,
	);

/** Notes the prompt of the item that each item is linked to. */
const linked = () =>
	node(
		'n8n-nodes-base.set',
		'Linked',
		{
			assignments: {
				assignments: [
					{
						id: '1',
						name: 'linked',
						type: 'string',
						value: "={{ $('Prompts').item.json.prompt }}",
					},
				],
			},
			options: {},
		},
		3.4,
	);

/** Reads each item's files. */
const bytes = () =>
	node(
		'n8n-nodes-base.code',
		'Bytes',
		{
			jsCode: `const out = [];
for (const [index, { binary = {} }] of $('Media').all().entries()) {
	const files = {};
	for (const name of Object.keys(binary)) {
		files[name] = (await this.helpers.getBinaryDataBuffer(index, name)).toString('base64');
	}
	out.push({ json: { files } });
}
return out;`,
		},
		2,
	);

const prompts = () =>
	itemsNode(
		'Prompts',
		BATCH.map(({ simulate, timeout = 0 }, index) => ({
			prompt: `Prompt ${index}`,
			simulate,
			timeout,
		})),
	);

/** What came out, with the ids, the times and the place of the files made alike, which differ from run to run. */
function comparable({ status, data }: Execution): unknown {
	const { error, runData } = data.resultData;
	const outputs = (name: string) => runData[name]?.at(-1)?.data?.main ?? [];
	const { description } = (error ?? {}) as { description?: string };
	const text = JSON.stringify({
		status,
		error: error && { message: error.message, description },
		media: outputs('Media').map((items) =>
			items?.map(({ json, binary, pairedItem }) => ({
				json,
				pairedItem,
				files: Object.entries(binary ?? {}).map(([name, { id, ...file }]) => ({
					name,
					...file,
					kept: id?.split(':')[0],
				})),
			})),
		),
		linked: outputs('Linked').map((items) => items?.map(({ json }) => json.linked)),
		bytes: outputs('Bytes').map((items) => items?.map(({ json }) => json)),
	});
	const named = [...stage.service.tasks.values()].reduce(
		(all, { taskId, record }) => all.replaceAll(taskId, `the task of '${record.input.prompt}'`),
		text,
	);
	return JSON.parse(named.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'a time')) as unknown;
}

const WAYS: Record<string, { options?: IDataObject; node?: Partial<INode> }> = {
	'keeping what succeeded': {},
	'with On Error: Continue': { node: { onError: 'continueRegularOutput' } },
	'with an error output': { node: { onError: 'continueErrorOutput' } },
	'stopping with an error': { options: { ifSomeFail: 'stop' } },
	'creating anew what failed': { options: { retryFailed: 1 } },
};

/** Starts nodes in a row by hand. @returns the ids of the execution and of its workflow */
async function start(name: string, ...nodes: INode[]): Promise<{ id: string; workflowId: string }> {
	const { client } = stage;
	const workflow = await client.createWorkflow({ name, ...inARow(manualTrigger(), ...nodes) });
	return { id: await client.run(workflow.id), workflowId: workflow.id };
}

/** All executions of a workflow, the first one last. */
const executionsOf = async (workflowId: string) =>
	await stage.client.listExecutions({ workflowId });

needing('endOfSubExecutions', 'The same batch').test(
	'held, suspended at once, and suspended after a short hold: the same comes out',
	async () => {
		const { client } = stage;
		const runs: Array<{ mode: string; way: string; id: string; workflowId: string }> = [];
		for (const [mode, options] of Object.entries(MODES)) {
			for (const [way, of] of Object.entries(WAYS)) {
				const all = {
					timeout: '={{ $json.timeout }}',
					downloadResults: true,
					reference: '=row {{ $itemIndex }}',
					...options,
					...of.options,
				};
				const nodes = [prompts(), media(all, of.node), bytes(), linked()];
				runs.push({ mode, way, ...(await start(`${mode}, ${way}`, ...nodes)) });
			}
		}
		const ends = new Map<string, unknown>();
		for (const { mode, way, id, workflowId } of runs) {
			const execution = await client.waitForExecution(id, 6 * MINUTE);
			ends.set(`${mode}, ${way}`, comparable(execution));
			const isHeld = mode === 'held';
			expect(await executionsOf(workflowId)).toHaveLength(isHeld ? 1 : 3);
		}
		const [first] = runs;
		const held = await client.getExecution(first?.id ?? '');
		const items = outputItems(held, 'Media');
		expect(items.map(({ json }) => [json.state, json.timedOut, Boolean(json.error)])).toEqual([
			['SUCCESS', undefined, false],
			['FAILURE', undefined, true],
			['SUCCESS', undefined, false],
			['FAILURE', undefined, true],
			['PENDING', true, true],
			['SUCCESS', undefined, false],
		]);
		expect(Object.keys(items[2]?.binary ?? {})).toEqual(['data', 'data_1']);
		for (const mode of Object.keys(MODES).slice(1)) {
			for (const way of Object.keys(WAYS)) {
				expect({ mode, way, end: ends.get(`${mode}, ${way}`) }).toEqual({
					mode,
					way,
					end: ends.get(`held, ${way}`),
				});
			}
		}
		// Two tasks of each batch fail, and are created once more where that was asked for.
		const anew = 2 * Object.keys(MODES).length;
		expect(stage.service.tasks.size).toBe(runs.length * BATCH.length + anew);
	},
	8 * MINUTE,
);

needing('suspending', 'Task: Wait').test(
	'Task: Wait is the same wait',
	async () => {
		const { client, service } = stage;
		const tasks = [9_000, 0, 6_000].map((latencyMs, index) =>
			service.createTask(IMAGE_MODEL, { prompt: `Prompt ${index}`, simulate: { latencyMs } }),
		);
		const ids = tasks.map(({ taskId }) => taskId);
		const { id } = await start(
			'Task: Wait',
			itemsNode(
				'Ids',
				ids.map((taskId) => ({ taskId })),
			),
			stage.mediaNode('mediaGeneration', 'Media', {
				resource: 'task',
				operation: 'wait',
				taskId: '={{ $json.taskId }}',
				options: { suspendAfter: SOON },
			}),
		);
		await client.waitForSuspension(id);
		const execution = await client.waitForExecution(id, 3 * MINUTE);
		const items = outputItems(execution, 'Media');
		expect(items.map(({ json }) => [json.taskId, json.state])).toEqual(
			ids.map((taskId) => [taskId, 'SUCCESS']),
		);
		expect(items.map(({ pairedItem }) => pairedItem)).toEqual([0, 1, 2].map((item) => ({ item })));
	},
	4 * MINUTE,
);

describe('whose caller waits', () => {
	const slow = {
		options: { suspendAfter: SOON, additionalInput: { simulate: { latencyMs: 6_000 } } },
	};

	test('a webhook that answers with its last node gives the results; started by hand, it is suspended', async () => {
		const { client } = stage;
		const path = crypto.randomUUID();
		const webhook = {
			...node(
				'n8n-nodes-base.webhook',
				'Asked',
				{
					httpMethod: 'POST',
					path,
					responseMode: 'lastNode',
					responseData: 'allEntries',
					options: {},
				},
				2,
			),
			webhookId: path,
		};
		const image = stage.mediaNode('mediaGeneration', 'Media', {
			resource: 'image',
			operation: 'generate',
			prompt: 'A lighthouse',
			...slow,
		});
		const { nodes, connections } = inARow(webhook, image);
		const byHand = manualTrigger();
		connections[byHand.name] = { main: [[{ node: 'Media', type: 'main', index: 0 }]] };
		const workflow = await client.createWorkflow({
			name: 'Answers with its last node',
			nodes: [...nodes, byHand],
			connections,
		});
		await client.publish(workflow.id, [`/webhook/${path}`]);
		const response = await fetch(`${stage.webhookUrl}/webhook/${path}`, { method: 'POST' });
		const [taskId] = stage.service.tasks.keys();
		expect(await response.json()).toMatchObject([{ taskId, state: 'SUCCESS' }]);
		expect((await executionsOf(workflow.id)).map(({ status }) => status)).toEqual(['success']);
		await client.unpublish(workflow.id);
		// Nobody waits for an answer.
		const id = await client.run(workflow.id, { trigger: byHand.name });
		await client.waitForSuspension(id);
		await client.stopExecution(id);
	});

	test('a sub-workflow that is called once for each item gives back each result', async () => {
		const { client } = stage;
		const child = await client.createWorkflow({
			name: 'Called for each',
			...inARow(
				node(
					'n8n-nodes-base.executeWorkflowTrigger',
					'Called',
					{ inputSource: 'passthrough' },
					1.1,
				),
				media({ suspendAfter: SOON }),
			),
		});
		await client.publish(child.id);
		const items = [6_000, 4_000, 5_000].map((latencyMs, index) => ({
			prompt: `Prompt ${index}`,
			simulate: { latencyMs },
		}));
		const { id } = await start(
			'Calls for each',
			itemsNode('Prompts', items),
			node(
				'n8n-nodes-base.executeWorkflow',
				'Call',
				{ workflowId: { __rl: true, mode: 'id', value: child.id }, mode: 'each', options: {} },
				1.2,
			),
		);
		const execution = await client.waitForExecution(id, MINUTE);
		const came = outputItems(execution, 'Call').map(({ json }) => json);
		expect(came.map(({ input, state }) => [(input as IDataObject).prompt, state])).toEqual(
			items.map(({ prompt }) => [prompt, 'SUCCESS']),
		);
		const calls = await executionsOf(child.id);
		expect(calls.map(({ status }) => status)).toEqual(Array(3).fill('success'));
	});
});

needing('endOfSubExecutions', 'A kill').test(
	'n8n is killed: a held run names its tasks in the log, a suspended one comes out complete, once, in order',
	async () => {
		const { client, service } = stage;
		const begin = async (name: string, options: IDataObject, simulate: IDataObject[]) => {
			const items = simulate.map((switches, index) => ({
				prompt: `${name} ${index}`,
				simulate: switches,
			}));
			return await start(name, itemsNode('Prompts', items), media(options), collector.node());
		};
		const tasksOf = (name: string) =>
			[...service.tasks.values()]
				.filter(({ record }) => String(record.input.prompt).startsWith(name))
				.map(({ taskId }) => taskId);
		// No check and no result comes before the kill: what dies while it goes on is a story of supervisor.test.
		await stage.stop();
		await stage.restart(WHOLE_MINUTE);
		await client.login(TEST_OWNER);
		const later = Array<IDataObject>(3).fill({ latencyMs: 3_600_000 });
		const silent = later.map((switches) => ({ ...switches, callbackLost: true }));
		const held = await begin('Held', {}, silent);
		const suspended = [
			await begin('After a hold', { suspendAfter: SOON }, silent),
			await begin('At once', AT_ONCE, later),
			await begin('At once, in silence', AT_ONCE, silent),
		];
		for (const { id } of suspended) await client.waitForSuspension(id);
		await until('nothing but the held run to be at work', MINUTE, async () => {
			const running = await client.listExecutions({ status: ['running'] });
			return running.map(({ id }) => id).join() === held.id;
		});
		const created = service.tasks.size;
		expect(created).toBe(12);
		await stage.kill();
		await stage.restart(shortMinute());
		// In another order than they were created.
		for (const taskId of [...service.tasks.keys()].reverse()) service.complete(taskId);

		const crashed = await client.waitForExecution(held.id);
		expect(crashed.status).toBe('crashed');
		const log = readFileSync(stage.runner.logFile, 'utf8');
		const line = new RegExp(`created task (\\S+) \\(execution ${held.id}\\b`, 'g');
		const named = [...log.matchAll(line)].map(([, taskId = '']) => taskId);
		// Creates are under way beside each other: which answer comes first is not said.
		expect([...named].sort()).toEqual([...tasksOf('Held')].sort());

		for (const { id } of suspended) {
			const execution = await client.waitForExecution(id, 4 * MINUTE);
			expect(execution.status).toBe('success');
			const items = outputItems(execution, 'Media').map(({ json }) => json);
			expect(items.map(({ state, timedOut }) => [state, timedOut])).toEqual(
				Array(3).fill(['SUCCESS', undefined]),
			);
			const { name } = execution.workflowData;
			expect(items.map(({ input }) => (input as IDataObject).prompt)).toEqual(
				[0, 1, 2].map((index) => `${name} ${index}`),
			);
		}
		await collector.settle(9);
		expect([...collector.seen].sort()).toEqual(
			[...service.tasks.keys()].filter((taskId) => !named.includes(taskId)).sort(),
		);

		// What the log names is fetched, and nothing is created again.
		const fetched = await start(
			'Fetched',
			stage.mediaNode('mediaGeneration', 'Media', {
				resource: 'task',
				operation: 'wait',
				taskId: named.join(),
			}),
		);
		const items = outputItems(await client.waitForExecution(fetched.id), 'Media');
		expect(items.map(({ json }) => [json.taskId, json.state])).toEqual(
			named.map((taskId) => [taskId, 'SUCCESS']),
		);
		expect(service.tasks.size).toBe(created);
	},
	8 * MINUTE,
);
