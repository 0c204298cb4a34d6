import { readFileSync } from 'node:fs';
import type { IDataObject } from 'n8n-workflow';

import { outputItems, until } from '../n8n/client';
import type { N8nProcess } from '../n8n/process';
import { LEAN } from '../n8n/settings';
import { missingForQueueMode } from './cluster';
import { Lane } from './lane';
import { unless } from './needs';
import { bySenders, call, called, inARow, webhook } from './nodes';
import { errorOf, statesOf, succeeded } from './run';
import { AT_ONCE, openScene, type Order } from './scene';
import { Stage } from './stage';

const { describe } = unless(missingForQueueMode(), 'Queue mode');

const times = (count: number, switches: IDataObject) => Array<IDataObject>(count).fill(switches);

describe('queue mode: one main, two webhook processors, two workers', () => {
	const scene = openScene({
		open: async () => {
			const env = { ...LEAN, N8N_DEFAULT_BINARY_DATA_MODE: 'filesystem' };
			return await Stage.openInQueueMode({ workers: 2, webhooks: 2, env });
		},
	});

	beforeEach(async () => {
		const { cluster } = scene.stage;
		while (cluster.workers.length < 2) await cluster.addWorker();
	}, 120_000);

	test('held, asleep or with a trigger: four executions of two tasks each come back from the workers, each task once', async () => {
		const lane = await Lane.publish(scene);
		const callbackUrl = scene.stage.webhookUrl + lane.path;
		expect(callbackUrl).not.toContain(scene.stage.n8n.url);
		const after = [scene.collector.node()];
		const orders: Record<string, Order> = {
			Held: { after },
			Asleep: { after, options: { ...AT_ONCE, downloadResults: true } },
			Trigger: { parameters: { completion: 'trigger', callbackUrl } },
		};
		const switches = [200, 7_000].map((latencyMs) => ({ latencyMs, callbackCopies: 2 }));
		const four = Object.entries(orders).flatMap(([name, order]) =>
			[0, 1, 2, 3].map(async () => await scene.startImages(switches, { name, ...order })),
		);
		for (const run of await Promise.all(four)) {
			const items = outputItems(succeeded(await run.end()), 'Media');
			const state = run.name === 'Trigger' ? 'PENDING' : 'SUCCESS';
			expect(items.map(({ json }) => json.state)).toEqual([state, state]);
			if (run.name !== 'Asleep') continue;
			expect(run.sleeps).toBeGreaterThan(0);
			for (const { binary } of items) {
				const { id = '' } = binary?.data ?? {};
				expect(id.split(':')[0]).toBe('filesystem-v2');
				expect((await scene.client.file(id)).length).toBeGreaterThan(1_000);
			}
		}
		await scene.expectArrived(scene.taskIds);
		expect(scene.creates).toHaveLength(24);
	});

	test('a worker is killed in turns that create: a retry at once pays for nothing twice, and when n8n has erased an execution the log names its tasks', async () => {
		const { cluster } = scene.stage;
		const order = { options: { maxInFlight: 4 } };
		const lost = await (await scene.startTurns('Lost', 400, order)).asleep(2);
		const known = lost.taskIds.length;
		expect(known).toBeGreaterThan(0);
		const run = await (await scene.startTurns('Turns', 40)).inALaterTurn();
		await (await lost.asleep(lost.sleeps + 1)).inALaterTurn();
		const { log } = scene;
		// Whichever of them runs it.
		const killed = cluster.workers;
		await Promise.all(killed.map(async (worker) => await cluster.kill(worker)));
		await Promise.all(killed.map(async ({ port }) => await cluster.addWorker(port)));
		// Which of the two depends on who notices first: the queue, or n8n when a worker comes back.
		expect(['error', 'crashed']).toContain((await run.end()).status);
		// The turn may have begun a moment before, and ordered nothing.
		await run.expectRetryGoesOn(40, 0);

		// n8n's main erases what it has stored of a job that stalls: no stack and no contexts are left.
		await until('n8n to erase the other run', 180_000, async () => {
			const { executionData } = (await lost.now()).data;
			return Object.keys(executionData?.contextData ?? {}).length === 0;
		});
		expect(await lost.others()).toEqual([]);
		for (const taskId of lost.taskIds.slice(0, known))
			expect(log).toContain(`created task ${taskId}`);
	}, 600_000);

	test('a run in its first turn is run again on a worker, since Redis comes back a moment older: it orders nothing more', async () => {
		const { service, stage } = scene;
		const run = await scene.startImages(times(5, { latencyMs: 600_000 }));
		await until('all creates', 60_000, () => scene.creates.length >= 5);
		expect(stage.cluster.putBack([run.id])).toBe(1);
		expect(errorOf(await run.end())?.message).toContain('n8n has not kept what it created');
		// The other run of it goes on.
		for (const taskId of run.taskIds) service.complete(taskId);
		const isOut = async () => statesOf(await run.now()).length === 5;
		await until('the items', 60_000, isOut);
		expect(scene.creates).toHaveLength(5);
	});

	test('a run that a webhook processor has started is stopped, and n8n tells the worker nothing', async () => {
		const row = inARow(webhook('Start'), ...scene.allAtOnce());
		const { id } = await scene.stage.callWebhook({ name: 'Stopped', ...row });
		await scene.expectStopHeard(id);
		const [left] = await scene.client.listExecutions({ workflowId: id, status: ['success'] });
		expect(left).toBeDefined();
	});

	test('a caller is stopped on a worker, which stores it without an error and with nothing left to run: the sub-workflow creates nothing more', async () => {
		const { client } = scene;
		const row = inARow(called(), ...scene.allAtOnce());
		const { id } = await client.createWorkflow({ name: 'Called', ...row });
		await client.publish(id, []);
		const { workflowId } = await scene.start('Caller', call(id));
		await scene.expectStopHeard(workflowId);
	});

	describe('callbacks', () => {
		test('delivered to both processors at the same moment, and to one after the other', async () => {
			const lane = await Lane.publish(scene);
			await lane.deliverToEach(lane.finishedTasks(16));
			const tasks = lane.finishedTasks(8);
			for (const address of lane.addresses) await lane.deliverAll(tasks, [address]);
			await lane.expectRuns(24);
		});

		test('a webhook processor is killed while it answers: the sender delivers to the other', async () => {
			const lane = await Lane.publish(scene);
			const { cluster, receiver } = scene.stage;
			let answered = 0;
			let killing: Promise<void> | undefined;
			await bySenders(lane.finishedTasks(20), async (taskId) => {
				await lane.deliver(taskId, lane.addresses);
				if (++answered === 5) killing = cluster.kill(receiver);
			});
			await killing;
			await cluster.restartWebhook(0);
			await lane.settle();
			expect(lane.deliveries).toBeGreaterThan(20);
			await lane.expectRuns(20);
		});
	});

	test('a worker is killed between the row of a task and its item, and Redis comes back a moment older: the other worker runs the execution again, which starts the workflow once', async () => {
		const { collector, stage } = scene;
		const { cluster } = stage;
		const lane = await Lane.publish(scene, { held: true });
		const [first = '', second = ''] = lane.addresses;
		await lane.deliverAll(lane.finishedTasks(8), [first]);
		await collector.untilHeld(8);
		const running = cluster.executionIds(lane.workflowId, 'running');
		const [victim] = cluster.workers;
		const begunBy = (worker: N8nProcess | undefined) => {
			const log = readFileSync(worker?.logFile ?? '', 'utf8');
			return running.filter((id) => log.includes(`Worker started execution ${id} `));
		};
		const cutOff = begunBy(victim);
		expect(cutOff.length).toBeGreaterThan(0);
		await cluster.kill(victim!);
		cluster.putBack(cutOff);
		await collector.untilHeld(8 + cutOff.length);
		expect(begunBy(cluster.workers[0]).sort()).toEqual(running.sort());
		collector.openBarrier();
		await lane.expectRuns(8);
		expect(cluster.executions(lane.workflowId)).toEqual({ success: 8 });

		// Copies are executions of their own, which start nothing.
		await lane.deliverAll(lane.tasks, [second]);
		await lane.expectRuns(8);
		expect(cluster.executions(lane.workflowId)).toEqual({ success: 16 });
	}, 300_000);
});
