import type { IDataObject } from 'n8n-workflow';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/estimateCost';
import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackToken';
import { publishTriggers } from '../demo/examples';
import { until } from '../n8n/client';
import type { SimulatedTask } from '../service/service';
import { listed, nodeOf, openExamples, promptsOf } from './exampleScene';
import { needing } from './needs';
import { itemsOf, succeeded } from './run';

/** The examples that write to data tables. */

const MINUTE = 60_000;

const examples = openExamples();
const { scene } = examples;
const { test, describe } = needing('dataTables', 'Examples with data tables');

/** Imports an example, and publishes what its triggers start. */
async function publish(name: string, changes: Record<string, IDataObject> = {}) {
	const workflow = await examples.import(name, changes);
	await publishTriggers(scene.client, workflow.id, workflow);
	return workflow;
}

type Workflow = Awaited<ReturnType<typeof publish>>;

const order = async (workflow: Workflow) => succeeded(await (await examples.start(workflow)).end());

/** The address of a data table. */
async function tablePath(name: string): Promise<string> {
	const { client } = scene;
	const { id } = await client.get<{ id: string }>('/rest/projects/personal');
	const tables = `/rest/projects/${id}/data-tables`;
	const { data } = await client.get<{ data: Array<{ id: string; name: string }> }>(tables);
	const table = data.find((each) => each.name === name);
	if (!table) throw new Error('There is no table.');
	return `${tables}/${table.id}`;
}

async function rowsOf(table: string): Promise<IDataObject[]> {
	const path = await tablePath(table);
	return (await scene.client.get<{ data: IDataObject[] }>(`${path}/rows`)).data;
}

test('two-lanes-with-trigger: each picture is written to its own row once, however often the service calls', async () => {
	const { client, service } = scene;
	service.configure({ callbackCopies: 3 });
	const workflow = await publish('two-lanes-with-trigger');
	const [tasks] = await examples.creating(async () => {
		await order(workflow);
		await client.waitForExecutions(workflow.id, 4, MINUTE);
		service.configure({ outcome: 'FAILURE' });
		await order(workflow);
		await client.waitForExecutions(workflow.id, 8, MINUTE);
	});
	const prompts = listed('two-lanes-with-trigger');
	expect(promptsOf(tasks)).toEqual([...prompts, ...prompts].sort());
	const rows = await rowsOf('media_generation_pictures');
	expect(rows.map(({ prompt }) => prompt).sort()).toEqual(promptsOf(tasks));
	for (const { record, taskId } of tasks) {
		const own = rows.filter(({ picture, remark }) =>
			`${String(picture)} ${String(remark)}`.includes(taskId),
		);
		const isGood = record.state === 'SUCCESS';
		expect(own).toEqual([
			expect.objectContaining({
				prompt: record.input.prompt,
				picture: isGood ? expect.stringMatching(/^http.*png$/) : null,
				credits: isGood ? 8 : null,
				remark: isGood ? null : `Task ${taskId} failed: order it again`,
			}),
		]);
	}
	await client.unpublish(workflow.id);
});

describe('records-in-a-data-table', () => {
	const TABLE = 'media_generation_tasks';
	let workflow: Workflow;
	let address: string;

	beforeAll(async () => {
		// Minutes are too long for a test.
		workflow = await publish('records-in-a-data-table', { 'Wait a moment': { amount: 3 } });
		const trigger = nodeOf(workflow, 'Media Generation Trigger');
		const url = scene.stage.webhookUrl + scene.client.webhookPath(trigger, 'callback');
		address = callbackAddress(url, scene.service.apiKey);
	}, 60_000);

	const orderTasks = async () => (await examples.creating(async () => await order(workflow)))[0];

	async function statesOfRecords(tasks: SimulatedTask[]) {
		const rows = await rowsOf(TABLE);
		return tasks.map(({ taskId }) =>
			rows.filter((row) => row.taskId === taskId).map(({ state }) => state),
		);
	}

	const untilSucceeded = async (tasks: SimulatedTask[], timeoutMs = MINUTE) =>
		await until(`${tasks.length} records to be SUCCESS`, timeoutMs, async () =>
			(await statesOfRecords(tasks)).every((states) => states.join() === 'SUCCESS'),
		);

	/** What a node put out in all executions of the workflow. */
	async function everyItem(node: string): Promise<IDataObject[]> {
		const { client } = scene;
		const executions = await client.listExecutions({ workflowId: workflow.id });
		const items = await Promise.all(
			executions.map(async ({ id }) => itemsOf(await client.getExecution(id), node)),
		);
		return items.flat();
	}

	test('an order is put on record, and its callback adds the result once', async () => {
		scene.service.configure({ callbackCopies: 3 });
		const tasks = await orderTasks();
		expect(promptsOf(tasks)).toEqual(listed('records-in-a-data-table'));
		await untilSucceeded(tasks);
		for (const row of await rowsOf(TABLE)) {
			expect(row).toMatchObject({
				resultUrls: expect.stringMatching(/^http.*png$/),
				creditsConsumed: 8,
				finishedAt: expect.any(String),
			});
			expect(JSON.parse(String(row.record))).toMatchObject({ input: { prompt: row.prompt } });
		}
		await scene.client.waitForExecutions(workflow.id, 1 + tasks.length, MINUTE);
		const results = await everyItem('Results');
		expect(results.map(({ taskId }) => taskId).sort()).toEqual(
			tasks.map(({ taskId }) => taskId).sort(),
		);
	});

	test('a callback that never came is made up for by itself', async () => {
		scene.service.configure({ callbackLost: true, latencyMs: 0 });
		const tasks = await orderTasks();
		expect(await statesOfRecords(tasks)).toEqual([['PENDING'], ['PENDING'], ['PENDING']]);
		// The first look is a minute after the order, and n8n's clock ticks once a minute.
		await untilSucceeded(tasks, 3 * MINUTE);
		for (const { taskId } of tasks) {
			await until(`the result of ${taskId}`, MINUTE, async () => {
				const results = await everyItem('Results');
				return results.filter((item) => item.taskId === taskId).length === 1;
			});
		}
	}, 240_000);

	test('a task that is not on record is left alone, and one whose record comes late is not', async () => {
		const { client, service } = scene;
		const [stranger, late] = [{ prompt: 'Somebody else' }, { prompt: 'A quick task' }].map(
			(input) => {
				const task = service.createTask(IMAGE_MODEL, input);
				service.complete(task.taskId);
				return task;
			},
		) as [SimulatedTask, SimulatedTask];
		for (const { taskId } of [stranger, late]) {
			expect(await scene.deliver(address, taskId)).toBe(200);
		}
		const { taskId, record } = late;
		const row = { taskId, prompt: record.input.prompt, state: 'PENDING' };
		await client.send('POST', `${await tablePath(TABLE)}/insert`, { data: [row] });
		await untilSucceeded([late]);
		await until('the stranger to be given up', MINUTE, async () =>
			(await client.listExecutions({ workflowId: workflow.id })).every(
				({ status }) => status === 'success',
			),
		);
		expect(await statesOfRecords([stranger])).toEqual([[]]);
		expect(await everyItem('Not ours')).toHaveLength(1);
	});
});
