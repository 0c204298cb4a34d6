import type { IDataObject, INode } from 'n8n-workflow';

import { startAgainHeader } from '../../nodes/MediaGeneration/callback/callbackToken';
import { type Execution, outputItems, until } from '../n8n/client';
import { deliver, itemNodes } from './nodes';
import { errorOf, itemsOf } from './run';
import { openScene, type Published } from './scene';

const scene = openScene();

/** Publishes a workflow that a trigger starts and that reports to the collector. */
const publish = async (parameters: IDataObject = {}, more: Partial<INode> = {}) =>
	await scene.publish(scene.trigger(parameters, more));

/** Delivers a callback, and returns the execution that it starts, as it ended. */
async function execute({ id, address }: Published, taskId: string): Promise<Execution> {
	const { client } = scene;
	const before = await client.listExecutions({ workflowId: id });
	expect(await scene.deliver(address, taskId)).toBe(200);
	const all = await client.waitForExecutions(id, before.length + 1);
	return await client.getExecution(all[0]?.id ?? '');
}

const finishedOf = (execution: Execution) => itemsOf(execution, 'Finished');

async function expectRetried({ id }: Execution): Promise<void> {
	const { client } = scene;
	const retried = await client.waitForExecution(await client.retryExecution(id));
	expect(retried.status).toBe('success');
}

describe('the execution that a task has started', () => {
	const downloads = { options: { downloadResults: true } };
	const oneRefusal = () => scene.service.configure({ mediaStatus: { status: 404, times: 1 } });

	test('goes on with it by Retry On Fail', async () => {
		oneRefusal();
		const there = await publish(downloads, { retryOnFail: true, maxTries: 2 });
		const [taskId = ''] = scene.stage.finishedTasks(1);
		const execution = await execute(there, taskId);
		const items = outputItems(execution, 'Finished');
		expect([execution.status, items.length]).toEqual(['success', 1]);
		expect(Object.keys(items[0]?.binary ?? {})).toEqual(['data']);

		await scene.powerCut(there);
		expect(finishedOf(await execute(there, taskId))).toEqual([]);
		expect(scene.collector.seen).toEqual([taskId]);
	});

	test('goes on with it in a retry from the list, after a download that went wrong', async () => {
		oneRefusal();
		const there = await publish(downloads);
		const [taskId = ''] = scene.stage.finishedTasks(1);
		const failed = await execute(there, taskId);
		expect(failed.status).toBe('error');
		await expectRetried(failed);
		await scene.expectArrived([taskId]);
	});

	test('leaves a row in a retry from the list, where the database could not be written before', async () => {
		const there = await publish();
		const { database } = scene.stage;
		const [taskId = ''] = scene.stage.finishedTasks(1);
		const insert = 'before insert on processed_data';
		await database.refuse('no_rows', insert, '1 = 1', 'The disk is full');
		const failed = await execute(there, taskId);
		expect(failed.status).toBe('error');
		expect(JSON.stringify(errorOf(failed))).toContain('The disk is full');
		await database.forget('no_rows');
		await expectRetried(failed);
		await scene.expectArrived([taskId]);

		await scene.powerCut(there);
		expect(finishedOf(await execute(there, taskId))).toEqual([]);
		expect(scene.collector.seen).toEqual([taskId]);
	});
});

describe('to start again', () => {
	test('is done once for each run of the node that asks for it, and is no first start for the ledger', async () => {
		const { collector } = scene;
		const there = await publish();
		const [started = '', fresh = ''] = scene.stage.finishedTasks(2);
		await execute(there, started);
		await collector.settle(1);
		await scene.powerCut(there);

		const callbackUrl = there.url;
		const plain = await scene.onTasks('redeliver', [started], { callbackUrl });
		expect(plain[0]).toMatchObject({ delivered: true, delivery: 'accepted' });
		await collector.settle(2, 3000);
		expect(collector.seen).toEqual([started]);

		// One of them twice in one run.
		const again = await scene.onTasks('redeliver', [started, fresh, started], {
			callbackUrl,
			options: { startAgain: true },
		});
		expect(again.map(({ delivery }) => delivery).sort()).toEqual([
			'accepted',
			'accepted',
			'duplicate',
		]);
		await scene.expectArrived([started, started, fresh]);

		await scene.powerCut(there);
		for (const taskId of [started, fresh]) await execute(there, taskId);
		expect(collector.seen).toHaveLength(3);
	}, 300_000);

	test('cannot be done with a callback address alone, nor by what was sent before', async () => {
		const { collector, service } = scene;
		const there = await publish();
		const [taskId = ''] = scene.stage.finishedTasks(1);
		await execute(there, taskId);
		await collector.settle(1);
		const token = new URL(there.address).searchParams.get('token') ?? '';
		const run = 'a'.repeat(32);
		const name = 'x-media-generation-start-again';
		const send = async (headers: Record<string, string>, query = '', body: object = {}) => {
			const init = { headers: { 'content-type': 'application/json', ...headers } };
			return (await deliver(there.address + query, { taskId, ...body }, init)).status;
		};
		const subject = { path: there.path, taskId, apiKey: service.apiKey };
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
		await scene.powerCut(there);
		expect(await send(good)).toBe(200);
		await collector.settle(3, 5000);
		expect(collector.seen).toEqual([taskId, taskId]);
	});
});

test('a trigger whose Events cannot be read answers 503, and starts for the task when they can', async () => {
	const there = await publish({ events: "={{ $('No such node').first().json.events }}" });
	const [taskId = ''] = scene.stage.finishedTasks(1);
	for (let round = 0; round < 2; round++) {
		expect(await scene.deliver(there.address, taskId)).toBe(503);
	}
	const trigger = { ...there.trigger, parameters: { events: ['SUCCESS'] } };
	await scene.publish(trigger, { id: there.id });
	await until('the callback to be taken', 60_000, async () => {
		return (await scene.deliver(there.address, taskId)) === 200;
	});
	await scene.expectArrived([taskId]);
});

test('an event envelope is taken by the id of its task', async () => {
	const there = await publish();
	const [taskId = ''] = scene.stage.finishedTasks(1);
	const body = { id: 'evt_1', type: 'task.completed', data: { taskId } };
	expect((await deliver(there.address, body)).status).toBe(200);
	await scene.expectArrived([taskId]);
});

test('a reference comes from the row to the trigger, and an altered one is refused', async () => {
	const { client } = scene;
	scene.service.configure({ latencyMs: 1000 });
	const there = await publish();
	const rows = ['row 7', 'ü & "quoted"'];
	const order = scene.image({
		prompt: 'A lighthouse',
		completion: 'trigger',
		callbackUrl: there.url,
		options: { reference: '={{ $json.row }}' },
	});
	const orders = itemNodes(
		'Rows',
		rows.map((row) => ({ row })),
	);
	const ordered = itemsOf(await scene.run('Order', orders, order));
	expect(ordered.map(({ reference }) => reference)).toEqual(rows);
	await scene.collector.settle(2);
	const executions = await client.waitForExecutions(there.id, 2);
	const finished = await Promise.all(
		executions.map(async ({ id }) => finishedOf(await client.getExecution(id))[0]),
	);
	const byTask = new Map(finished.map((item) => [item?.taskId, item?.reference]));
	expect(ordered.map(({ taskId }) => byTask.get(taskId))).toEqual(rows);

	const [{ taskId = '', webhookUrl = '' } = {}] = scene.tasks;
	const altered = webhookUrl.replace('row+7', 'row+8');
	expect(altered).not.toBe(webhookUrl);
	expect(await scene.deliver(altered, taskId)).toBe(401);
	expect(await scene.deliver(webhookUrl, taskId)).toBe(200);
});
