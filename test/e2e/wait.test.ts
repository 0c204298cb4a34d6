import type { IDataObject, INode } from 'n8n-workflow';

import { type Execution, outputItems, until } from '../n8n/client';
import { AT_ONCE } from './atOnce';
import { call, called, inARow, linked, manualTrigger, node, prompts, to, webhook } from './nodes';
import { itemsOf, promptOf, type Run } from './run';
import { openScene } from './scene';

/** A wait is held, and suspended where it takes long: what comes out is the same. */

const scene = openScene();

const MINUTE = 60_000;

/** Shorter than the tasks of a test take, minutes. */
const SOON = 0.02;

const MODES: Record<string, IDataObject> = {
	held: { suspendAfter: 30 },
	'suspended at once': AT_ONCE,
	'suspended after a short hold': { suspendAfter: 0.1 },
};

const WAYS: Record<string, { options?: IDataObject; node?: Partial<INode> }> = {
	'keeping what succeeded': {},
	'with On Error: Continue': { node: { onError: 'continueRegularOutput' } },
	'with an error output': { node: { onError: 'continueErrorOutput' } },
	'stopping with an error': { options: { ifSomeFail: 'stop' } },
	'creating anew what failed': { options: { retryFailed: 1 } },
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

const startBatch = async (mode: IDataObject, { options, node }: (typeof WAYS)[string]) =>
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

/** What came out, with the ids, the times and the place of the files made alike, which differ from run to run. */
async function comparable({ status, data }: Execution): Promise<unknown> {
	const { error, runData } = data.resultData;
	const outputs = (name: string) => runData[name]?.at(-1)?.data?.main ?? [];
	const { description } = (error ?? {}) as { description?: string };
	const media = outputs('Media').flatMap((items) => items ?? []);
	const files = media.flatMap(({ binary = {} }) => Object.values(binary));
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
		bytes: await Promise.all(files.map(async ({ id = '' }) => await scene.client.file(id))),
	});
	const named = scene.tasks.reduce(
		(all, { taskId, record }) => all.replaceAll(taskId, `the task of '${promptOf(record)}'`),
		text,
	);
	return JSON.parse(named.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'a time')) as unknown;
}

test(
	'held, suspended at once, and suspended after a short hold: the same comes out',
	async () => {
		const runs: Array<{ mode: string; way: string; run: Run }> = [];
		for (const [mode, options] of Object.entries(MODES)) {
			for (const [way, of] of Object.entries(WAYS)) {
				runs.push({ mode, way, run: await startBatch(options, of) });
			}
		}
		const ends = new Map<string, unknown>();
		for (const { mode, way, run } of runs) {
			const end = await comparable(await run.end(6 * MINUTE));
			if (mode === 'held') ends.set(way, end);
			expect({ mode, way, end }).toEqual({ mode, way, end: ends.get(way) });
			expect(await run.others()).toHaveLength(mode === 'held' ? 0 : 2);
		}
		const held = await runs[0]!.run.now();
		expect(itemsOf(held).map((item) => [item.state, item.timedOut, Boolean(item.error)])).toEqual([
			['SUCCESS', undefined, false],
			['FAILURE', undefined, true],
			['SUCCESS', undefined, false],
			['FAILURE', undefined, true],
			['PENDING', true, true],
			['SUCCESS', undefined, false],
		]);
		expect(Object.keys(outputItems(held, 'Media')[2]?.binary ?? {})).toEqual(['data', 'data_1']);
		// Two tasks of each batch fail, and are created once more where that was asked for.
		const anew = 2 * Object.keys(MODES).length;
		expect(scene.tasks).toHaveLength(runs.length * BATCH.length + anew);
	},
	8 * MINUTE,
);

describe('whose caller waits', () => {
	const SLOW = { suspendAfter: SOON, additionalInput: { simulate: { latencyMs: 6_000 } } };
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

	test('a webhook that answers with its last node gives the results; started by hand, it is suspended', async () => {
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

	test('a sub-workflow that is called once for each item gives back each result', async () => {
		const { client } = scene;
		const child = await client.createWorkflow({
			name: 'Called for each',
			...inARow(called(), scene.image({ options: { suspendAfter: SOON } })),
		});
		await client.publish(child.id);
		const switches = [6_000, 4_000, 5_000].map((latencyMs) => ({ latencyMs }));
		const items = prompts('Prompt', switches);
		const calling = call(child.id, { mode: 'each' });
		const came = itemsOf(await scene.run('Calls for each', items, calling), 'Call');
		expect(came.map((item) => [promptOf(item), item.state])).toEqual(
			switches.map((_, index) => [`Prompt ${index}`, 'SUCCESS']),
		);
		const calls = await client.listExecutions({ workflowId: child.id });
		expect(calls.map(({ status }) => status)).toEqual(Array(3).fill('success'));
	});
});
