import type { IDataObject } from 'n8n-workflow';

import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackToken';
import { publishTriggers } from '../n8n/examples';
import { until } from '../n8n/client';
import { listen } from '../listen';
import { listed, nodeOf, openExamples, promptsOf } from './exampleScene';
import { itemsOf, succeeded } from './run';

/** The examples that write to data tables. */

const MINUTE = 60_000;

const examples = openExamples();
const { scene } = examples;

async function publish(name: string, changes: Record<string, IDataObject> = {}) {
	const workflow = await examples.import(name, changes);
	await publishTriggers(scene.client, workflow.id, workflow);
	return workflow;
}

type Workflow = Awaited<ReturnType<typeof publish>>;

const order = async (workflow: Workflow) => succeeded(await (await examples.start(workflow)).end());

async function tablePath(name: string): Promise<string> {
	const { path, tables } = await scene.client.dataTables();
	return `${path}/${tables.find((table) => table.name === name)?.id}`;
}

async function rowsOf(table: string): Promise<IDataObject[]> {
	const path = await tablePath(table);
	return (await scene.client.get<{ data: IDataObject[] }>(`${path}/rows`)).data;
}

test('two-lanes-with-trigger: each picture is written to its own row once, however often the service calls', async () => {
	const { client, service } = scene;
	service.configure({ callbackCopies: 3 });
	const workflow = await publish('two-lanes-with-trigger');
	await order(workflow);
	await client.waitForExecutions(workflow.id, 4, MINUTE);
	service.configure({ outcome: 'FAILURE' });
	await order(workflow);
	await client.waitForExecutions(workflow.id, 8, MINUTE);
	const { tasks } = scene;
	const prompts = listed('two-lanes-with-trigger');
	expect(promptsOf(tasks)).toEqual([...prompts, ...prompts].sort());
	const rows = await rowsOf('media_generation_pictures');
	expect(rows.map(({ prompt }) => prompt).sort()).toEqual(promptsOf(tasks));
	for (const { record, taskId } of tasks) {
		const own = rows.filter((row) => JSON.stringify(row).includes(taskId));
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

test('save-to-storage: each file is in the storage, and its row has a link that lasts', async () => {
	const files = new Map<string, number>();
	const storage = await listen((request, response) => {
		let bytes = 0;
		request.on('data', (chunk: Buffer) => (bytes += chunk.length));
		request.on('end', () => {
			const isUpload = request.method === 'PUT';
			if (isUpload) files.set(new URL(request.url ?? '', 'http://s3.test').pathname, bytes);
			response.setHeader('Content-Type', 'application/xml');
			response.end(isUpload ? '' : '<LocationConstraint>us-east-1</LocationConstraint>');
		});
	});
	const access = { accessKeyId: 'key', secretAccessKey: 'secret', forcePathStyle: true };
	const address = { endpoint: storage.url, region: 'us-east-1' };
	await examples.addCredential('Storage', 's3', { ...access, ...address });
	await order(await examples.import('save-to-storage'));
	await storage.close();
	expect(promptsOf(scene.tasks)).toEqual(listed('save-to-storage'));
	const names = scene.taskIds.map((taskId) => `/pictures/${taskId}.png`).sort();
	expect([...files.keys()].sort()).toEqual(names);
	expect([...files.values()].every((bytes) => bytes > 1000)).toBe(true);
	const rows = await rowsOf('media_generation_saved_pictures');
	for (const { record, taskId } of scene.tasks) {
		expect(rows.filter(({ prompt }) => prompt === record.input.prompt)).toEqual([
			expect.objectContaining({
				picture: `https://storage.example.com/pictures/${taskId}.png`,
				remark: null,
			}),
		]);
	}
}, 120_000);

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

	async function statesOfRecords(taskIds: string[]) {
		const rows = await rowsOf(TABLE);
		const of = (taskId: string) => rows.filter((row) => row.taskId === taskId);
		return taskIds.map((taskId) => of(taskId).map(({ state }) => state));
	}

	const untilSucceeded = async (taskIds: string[]) =>
		await until('the records to be SUCCESS', MINUTE, async () =>
			(await statesOfRecords(taskIds)).every((states) => states.join() === 'SUCCESS'),
		);

	/** What a node put out in all executions of the workflow. */
	async function everyItem(node: string): Promise<IDataObject[]> {
		const { client } = scene;
		const executions = await client.listExecutions({ workflowId: workflow.id });
		const all = executions.map(async ({ id }) => itemsOf(await client.getExecution(id), node));
		return (await Promise.all(all)).flat();
	}

	test('an order is put on record, and its callback adds the result once', async () => {
		scene.service.configure({ callbackCopies: 3 });
		await order(workflow);
		const { tasks } = scene;
		expect(promptsOf(tasks)).toEqual(listed('records-in-a-data-table'));
		await untilSucceeded(scene.taskIds);
		for (const row of await rowsOf(TABLE)) {
			expect(row).toMatchObject({
				resultUrls: expect.stringMatching(/^http.*png$/),
				creditsConsumed: 8,
				finishedAt: expect.any(String),
			});
			expect(JSON.parse(String(row.record))).toMatchObject({ input: { prompt: row.prompt } });
		}
		await scene.client.waitForExecutions(workflow.id, 1 + tasks.length, MINUTE);
		const results = (await everyItem('Results')).map(({ taskId }) => taskId);
		expect(results.sort()).toEqual(scene.taskIds.sort());
	});

	test('a task that is not on record is left alone, and one whose record comes late is not', async () => {
		const { client, stage } = scene;
		const [stranger = '', taskId = ''] = stage.finishedTasks(2);
		for (const id of [stranger, taskId]) expect(await scene.deliver(address, id)).toBe(200);
		const row = { taskId, prompt: 'A quick task', state: 'PENDING' };
		await client.send('POST', `${await tablePath(TABLE)}/insert`, { data: [row] });
		await untilSucceeded([taskId]);
		await until('the stranger to be given up', MINUTE, async () => {
			const all = await client.listExecutions({ workflowId: workflow.id });
			return all.every(({ status }) => status === 'success');
		});
		expect(await statesOfRecords([stranger])).toEqual([[]]);
		expect(await everyItem('Not ours')).toHaveLength(1);
	});
});
