import { setTimeout as sleep } from 'node:timers/promises';

import type { IDataObject, INode } from 'n8n-workflow';

import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackUrl';
import { startAgainHeader } from '../../nodes/MediaGeneration/callback/startAgain';
import { type Execution, outputItems } from '../n8n/client';
import { Collector } from './collector';
import { deliver, inARow, itemsNode, manualTrigger, Stage } from './stage';

let stage: Stage;
let collector: Collector;

beforeAll(async () => {
	stage = await Stage.open();
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

/** Publishes a workflow that a trigger starts and that reports to the collector. */
async function lane(parameters: IDataObject = {}, more: Partial<INode> = {}) {
	const { client, service, webhookUrl } = stage;
	const trigger = stage.mediaNode('mediaGenerationTrigger', 'Finished', parameters, more);
	const { id } = await client.createWorkflow({
		name: 'Lane',
		...inARow(trigger, collector.node()),
	});
	const path = client.webhookPath(trigger, 'callback');
	await client.publish(id, [path]);
	const url = webhookUrl + path;
	return { id, trigger, path, url, address: callbackAddress(url, service.apiKey) };
}

type Lane = Awaited<ReturnType<typeof lane>>;

/** Delivers a callback, and returns the execution that it starts, as it ended. */
async function execute({ id, address }: Lane, taskId: string): Promise<Execution> {
	const before = await stage.client.listExecutions({ workflowId: id });
	expect((await deliver(address, { taskId })).status).toBe(200);
	const all = await stage.client.waitForExecutions(id, before.length + 1);
	return await stage.client.getExecution(all[0]?.id ?? '');
}

/** Redelivers tasks, and returns the items that leave the node. */
async function redeliver({ url }: Lane, taskIds: string[], options: IDataObject) {
	const { client } = stage;
	const workflow = await client.createWorkflow({
		name: 'Redeliver',
		...inARow(
			manualTrigger(),
			itemsNode(
				'Tasks',
				taskIds.map((taskId) => ({ taskId })),
			),
			stage.mediaNode('mediaGeneration', 'Redeliver', {
				resource: 'task',
				operation: 'redeliver',
				taskId: '={{ $json.taskId }}',
				callbackUrl: url,
				options,
			}),
		),
	});
	const execution = await client.waitForExecution(await client.run(workflow.id));
	expect(execution.status).toBe('success');
	return outputItems(execution, 'Redeliver').map(({ json }) => json);
}

/** After a restart no process remembers a callback: what starts nothing then, the ledger knows. */
async function restart({ path }: Lane) {
	await stage.killAndRestart();
	await stage.client.waitForWebhook(path);
}

describe('the execution that a task has started', () => {
	const downloads = { options: { downloadResults: true } };
	const oneRefusal = () => stage.service.configure({ mediaStatus: { status: 404, times: 1 } });

	test('goes on with it by Retry On Fail', async () => {
		oneRefusal();
		const there = await lane(downloads, { retryOnFail: true, maxTries: 2 });
		const [taskId = ''] = stage.finishedTasks(1);
		const execution = await execute(there, taskId);
		const items = outputItems(execution, 'Finished');
		console.log(`Retry On Fail after a download that went wrong: ${items.length} item`);
		expect([execution.status, items.length]).toEqual(['success', 1]);
		expect(Object.keys(items[0]?.binary ?? {})).toEqual(['data']);

		await restart(there);
		expect(outputItems(await execute(there, taskId), 'Finished')).toEqual([]);
		expect(collector.seen).toEqual([taskId]);
	});

	test('goes on with it in a retry from the list, after a download that went wrong', async () => {
		oneRefusal();
		const there = await lane(downloads);
		const [taskId = ''] = stage.finishedTasks(1);
		const failed = await execute(there, taskId);
		expect(failed.status).toBe('error');
		const retried = await stage.client.retryExecution(failed.id);
		expect((await stage.client.waitForExecution(retried)).status).toBe('success');
		await collector.settle(1);
		expect(collector.seen).toEqual([taskId]);
	});

	test('leaves a row in a retry from the list, where the database could not be written before', async () => {
		const there = await lane();
		const [taskId = ''] = stage.finishedTasks(1);
		const { database } = stage;
		await database.refuse(
			'no_rows',
			'before insert on processed_data',
			'1 = 1',
			'The disk is full',
		);
		const failed = await execute(there, taskId);
		expect(failed.status).toBe('error');
		expect(JSON.stringify(failed.data.resultData.error)).toContain('The disk is full');
		await database.forget('no_rows');
		const retried = await stage.client.retryExecution(failed.id);
		expect((await stage.client.waitForExecution(retried)).status).toBe('success');
		await collector.settle(1);
		expect(collector.seen).toEqual([taskId]);

		await restart(there);
		const later = outputItems(await execute(there, taskId), 'Finished');
		console.log(`A callback after the retry of a failed ledger write: ${later.length} items`);
		expect(later).toEqual([]);
		expect(collector.seen).toEqual([taskId]);
	});
});

describe('to start again', () => {
	test('is done once for each run of the node that asks for it, and is no first start for the ledger', async () => {
		const there = await lane();
		const [started = '', fresh = ''] = stage.finishedTasks(2);
		await execute(there, started);
		await collector.settle(1);
		await restart(there);

		const plain = await redeliver(there, [started], {});
		expect(plain[0]).toMatchObject({ delivered: true, delivery: 'accepted' });
		await collector.settle(2, 3000);
		expect(collector.seen).toEqual([started]);

		// One of them twice in one run.
		const again = await redeliver(there, [started, fresh, started], { startAgain: true });
		expect(again.map(({ delivery }) => delivery).sort()).toEqual([
			'accepted',
			'accepted',
			'duplicate',
		]);
		await collector.settle(3);
		expect([...collector.seen].sort()).toEqual([started, started, fresh].sort());

		await restart(there);
		for (const taskId of [started, fresh]) await execute(there, taskId);
		expect(collector.seen).toHaveLength(3);
	}, 300_000);

	test('cannot be done with a callback address alone, nor by what was sent before', async () => {
		const there = await lane();
		const [taskId = ''] = stage.finishedTasks(1);
		await execute(there, taskId);
		await collector.settle(1);
		const token = new URL(there.address).searchParams.get('token') ?? '';
		const run = 'a'.repeat(32);
		const name = 'x-media-generation-start-again';
		const send = async (headers: Record<string, string>, query = '', body: object = {}) => {
			const init = { headers: { 'content-type': 'application/json', ...headers } };
			const { status } = await deliver(there.address + query, { taskId, ...body }, init);
			return status;
		};
		const subject = { path: there.path, taskId, apiKey: stage.service.apiKey };
		expect(await send({ [name]: token })).toBe(401);
		expect(await send({ [name]: `${Date.now()}.${run}.${token}` })).toBe(401);
		expect(await send({ [name]: 'true' })).toBe(401);
		expect(await send(startAgainHeader({ ...subject, apiKey: token }, run))).toBe(401);
		expect(await send(startAgainHeader(subject, run, Date.now() - 6 * 60_000))).toBe(401);
		expect(await send({}, '&startAgain=true', { startAgain: true })).toBe(200);
		expect(await send({}, `&${name}=${run}`)).toBe(200);
		await collector.settle(2, 3000);
		expect(collector.seen).toEqual([taskId]);

		const good = startAgainHeader(subject, run);
		expect(await send(good)).toBe(200);
		await collector.settle(2);
		expect(await send(good)).toBe(200);
		await restart(there);
		expect(await send(good)).toBe(200);
		await collector.settle(3, 5000);
		expect(collector.seen).toEqual([taskId, taskId]);
	});
});

test('a trigger whose Events cannot be read answers 503, and starts for the task when they can', async () => {
	const { client } = stage;
	const there = await lane({ events: "={{ $('No such node').first().json.events }}" });
	const [taskId = ''] = stage.finishedTasks(1);
	for (let round = 0; round < 2; round++) {
		const response = await deliver(there.address, { taskId });
		console.log(`Events that cannot be read: ${response.status} ${await response.text()}`);
		expect(response.status).toBe(503);
	}
	const trigger = { ...there.trigger, parameters: { events: ['SUCCESS'] } };
	await client.updateWorkflow(there.id, inARow(trigger, collector.node()));
	await client.publish(there.id, [there.path]);
	const giveUp = Date.now() + 60_000;
	while ((await deliver(there.address, { taskId })).status !== 200) {
		if (Date.now() > giveUp) throw new Error('The callback is still not taken');
		await sleep(250);
	}
	await collector.settle(1);
	expect(collector.seen).toEqual([taskId]);
});

test('an event envelope is taken by the id of its task', async () => {
	const there = await lane();
	const [taskId = ''] = stage.finishedTasks(1);
	const body = { id: 'evt_1', type: 'task.completed', data: { taskId } };
	const response = await deliver(there.address, body);
	console.log(`An event envelope: ${response.status} ${await response.text()}`);
	expect(response.status).toBe(200);
	await collector.settle(1);
	expect(collector.seen).toEqual([taskId]);
});

test('a reference comes from the row to the trigger, and an altered one is refused', async () => {
	const { client, service } = stage;
	service.configure({ latencyMs: 1000 });
	const there = await lane();
	const rows = ['row 7', 'ü & "quoted"'];
	const order = await client.createWorkflow({
		name: 'Order',
		...inARow(
			manualTrigger(),
			itemsNode(
				'Rows',
				rows.map((row) => ({ row })),
			),
			stage.mediaNode('mediaGeneration', 'Order', {
				resource: 'image',
				operation: 'generate',
				prompt: 'A lighthouse',
				completion: 'trigger',
				callbackUrl: there.url,
				options: { reference: '={{ $json.row }}' },
			}),
		),
	});
	const ordered = await client.waitForExecution(await client.run(order.id));
	const items = outputItems(ordered, 'Order');
	expect(items.map(({ json }) => json.reference)).toEqual(rows);
	await collector.settle(2);
	const executions = await client.waitForExecutions(there.id, 2);
	const finished = await Promise.all(
		executions.map(async ({ id }) => outputItems(await client.getExecution(id), 'Finished')[0]),
	);
	const byTask = new Map(finished.map((item) => [item?.json.taskId, item?.json.reference]));
	expect(items.map(({ json }) => byTask.get(json.taskId))).toEqual(rows);

	const [task] = service.tasks.values();
	const address = task?.webhookUrl ?? '';
	const altered = address.replace('row+7', 'row+8');
	expect(altered).not.toBe(address);
	const { taskId } = task ?? {};
	expect((await deliver(altered, { taskId })).status).toBe(401);
	expect((await deliver(address, { taskId })).status).toBe(200);
});
