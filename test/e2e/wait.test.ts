import type { IConnections, IDataObject, INode, INodeExecutionData, ITaskData } from 'n8n-workflow';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/prices';
import { type Execution, until } from '../n8n/client';
import { AT_ONCE } from './atOnce';
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
	webhook,
	type Wired,
	withField,
} from './nodes';
import { atTheSameTime, promptOf, type Run } from './run';
import { openScene } from './scene';

/**
 * A run that waits long sleeps, and n8n runs it again. Whatever comes out is what comes out of a run that is held, in
 * every shape of a workflow, and in one execution.
 */

const MINUTE = 60_000;

describe('held, asleep from the start, and asleep after a short hold: the same comes out', () => {
	const scene = openScene({ clears: false });
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

	/** Waits for tasks that exist, several of them named by one item. */
	async function several(mode: IDataObject) {
		const [one, two, three] = [9_000, 0, 4_000].map(
			(latencyMs, place) =>
				scene.service.createTask(IMAGE_MODEL, {
					prompt: `Prompt ${place}`,
					simulate: { latencyMs },
				}).taskId,
		);
		const wait = scene.media({
			resource: 'task',
			operation: 'wait',
			taskId: '={{ $json.ids }}',
			downloadResults: true,
			options: mode,
		});
		return await scene.start(
			'Several',
			itemNodes('Ids', [{ ids: [one, two] }, { ids: three }]),
			wait,
		);
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
		'creating anew what failed': async (mode) => await batch(mode, { retryFailed: 1 }),
		'an item for each result': async (mode) => await batch(mode, { splitResults: true }),
		'with Always Output Data': async (mode) => await batch(mode, {}, { alwaysOutputData: true }),
		'the input and its files beside each result': async (mode) => await inputs(mode, {}),
		'with Execute Once': async (mode) => await inputs(mode, { executeOnce: true }),
		'several ids in one item': several,
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
		return JSON.parse(named.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'a time')) as unknown;
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

describe('whose caller waits', () => {
	const scene = openScene();
	/** Shorter than the tasks of a test take, minutes. */
	const SLOW = { suspendAfter: 0.02, additionalInput: { simulate: { latencyMs: 6_000 } } };
	const lighthouse = () => scene.image({ prompt: 'A lighthouse', options: SLOW });

	/** Publishes a workflow that this webhook starts, which can be started by hand, too, and calls it. */
	async function answerOf(asked: INode) {
		const { client, stage } = scene;
		const { nodes, connections } = inARow(asked, lighthouse());
		const byHand = manualTrigger();
		const { id, response } = await stage.callWebhook({
			name: 'Answers',
			nodes: [...nodes, byHand],
			connections: { ...connections, [byHand.name]: { main: to('Media') } },
		});
		const text = await response.text();
		expect(scene.tasks.map(({ record }) => record.state)).toEqual(['SUCCESS']);
		const executions = await client.listExecutions({ workflowId: id });
		expect(executions.map(({ status }) => status)).toEqual(['success']);
		return { text, id };
	}

	test('a webhook that answers with its last node gives the results; started by hand, the run sleeps', async () => {
		const { client } = scene;
		const last = { responseMode: 'lastNode', responseData: 'allEntries' };
		const { text, id } = await answerOf(webhook('Asked', last));
		const [taskId] = scene.taskIds;
		expect(JSON.parse(text)).toMatchObject([{ taskId, state: 'SUCCESS' }]);
		await client.unpublish(id);
		// Nobody waits for an answer.
		const byHand = await client.run(id);
		await client.waitForSuspension(byHand);
		await client.stopExecution(byHand);
	});

	test('the stream of a webhook that streams its answer ends when the results are there', async () => {
		await answerOf({ ...webhook('Asked', { responseMode: 'streaming' }), typeVersion: 2.1 });
	});

	test('an evaluation measures the results', async () => {
		const { client } = scene;
		const { path } = await client.dataTables();
		const columns = [{ name: 'prompt', type: 'string' }];
		const table = await client.send<{ id: string }>('POST', path, { name: 'Cases', columns });
		const cases = { data: [{ prompt: 'A lighthouse' }], returnType: 'id' };
		await client.send('POST', `${path}/${table.id}/insert`, cases);
		const dataTableId = { __rl: true, mode: 'id', value: table.id };
		const read = { source: 'dataTable', dataTableId };
		const value = "={{ +($json.state === 'SUCCESS') }}";
		const assignments = [{ id: '1', name: 'done', type: 'number', value }];
		const metric = { metric: 'customMetrics', metrics: { assignments } };
		const metrics = { operation: 'setMetrics', ...metric };
		const workflow = await client.createWorkflow({
			name: 'Is evaluated',
			...inARow(
				node('n8n-nodes-base.evaluationTrigger', 'Cases', read, 4.7),
				scene.image({ options: SLOW }),
				node('n8n-nodes-base.evaluation', 'Metrics', metrics, 4.7),
			),
		});
		const runs = `/rest/workflows/${workflow.id}/test-runs`;
		await client.send('POST', `${runs}/new`, {});
		let ended: IDataObject = {};
		await until('the evaluation to end', MINUTE, async () => {
			[ended = {}] = await client.get<IDataObject[]>(runs);
			return ended.status === 'completed';
		});
		expect(ended).toMatchObject({ finalResult: 'success', metrics: { done: 1 } });
	});
});
