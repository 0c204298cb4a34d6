import { readFileSync } from 'node:fs';
import type { IDataObject } from 'n8n-workflow';

import { hasEnded, outputItems, until } from '../n8n/client';
import type { N8nProcess } from '../n8n/process';
import { LEAN } from '../n8n/settings';
import { missingForQueueMode } from './cluster';
import { Lane } from './lane';
import { unless } from './needs';
import { bySenders, call, called, inARow, lanes, prompts, webhook } from './nodes';
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

	describe('the action node', () => {
		/** Ten executions of two tasks at once, whose items come out with this state. */
		async function tenAtOnce(latencyMs: number[], order: Order, state: string): Promise<void> {
			const switches = times(2, { latencyMs, callbackCopies: 2 });
			const start = async () => await scene.startImages(switches, order);
			const runs = await Promise.all(Array.from({ length: 10 }, start));
			const ends = await Promise.all(runs.map(async (run) => succeeded(await run.end())));
			expect(ends.flatMap((end) => statesOf(end))).toEqual(Array(20).fill(state));
			await scene.expectArrived(scene.taskIds);
			expect(scene.creates).toHaveLength(20);
		}

		test.each([
			['held', {}],
			['asleep', AT_ONCE],
		] as const)(
			'%s: ten executions of two tasks come back from the workers, each once',
			async (_, options) =>
				await tenAtOnce([4000, 7000], { options, after: [scene.collector.node()] }, 'SUCCESS'),
		);

		test('trigger: of ten executions of two tasks each task starts the lane of the trigger once', async () => {
			const lane = await Lane.publish(scene);
			const callbackUrl = scene.stage.webhookUrl + lane.path;
			expect(callbackUrl).not.toContain(scene.stage.n8n.url);
			const parameters = { completion: 'trigger', callbackUrl };
			await tenAtOnce([200, 1000], { parameters }, 'PENDING');
		});

		test('trigger: an execution that a webhook has started finds the trigger of its own workflow', async () => {
			const { collector, stage } = scene;
			const order = scene.image({ prompt: 'A lighthouse', completion: 'trigger' });
			const rows = lanes([scene.trigger(), collector.node()], [webhook('Start'), order]);
			const { response } = await stage.callWebhook({ name: 'Orders and results', ...rows });
			expect(response.status).toBe(200);
			await collector.settle(1);
			expect(collector.seen).toEqual(scene.taskIds);
			expect(collector.seen).toHaveLength(1);
		});
	});

	test('a run that sleeps keeps its files, and is woken on a worker', async () => {
		const switches = [{ latencyMs: 8_000 }, { latencyMs: 2_000, resultCount: 2 }];
		const options = { ...AT_ONCE, downloadResults: true };
		const run = await scene.startImages(switches, { options });
		const items = outputItems(succeeded(await run.end()), 'Media');
		expect(await run.others()).toEqual([]);
		const files = items.flatMap(({ binary = {} }) => Object.values(binary));
		expect(files.map(({ mimeType }) => mimeType)).toEqual(Array(3).fill('image/png'));
		for (const { id = '' } of files) {
			expect(id.split(':')[0]).toBe('filesystem-v2');
			expect((await scene.client.file(id)).length).toBeGreaterThan(1_000);
		}
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
			await lane.deliverToEach(lane.finishedTasks(40));
			const tasks = lane.finishedTasks(20);
			for (const address of lane.addresses) await lane.deliverAll(tasks, [address]);
			await lane.expectRuns(60);
		});

		test('of 20 that never come each starts the trigger of the same workflow once, and starts nothing when it comes at last', async () => {
			const { collector, service, stage } = scene;
			const switches = times(20, { callbackLost: true, latencyMs: 1_000 });
			const order = scene.image({ completion: 'trigger' });
			const orders = [webhook('Start'), ...prompts('Lost', switches), order];
			const rows = lanes([scene.trigger(), collector.node()], orders);
			const { id } = await stage.callWebhook({ name: 'Orders and results', ...rows });
			await until('all orders', 60_000, () => scene.creates.length >= 20);
			await collector.settle(20, 120_000);
			await until('the execution that waits for callbacks to end', 120_000, async () => {
				const all = await scene.client.listExecutions({ workflowId: id });
				return all.every(({ status }) => hasEnded(status));
			});
			for (const { taskId, webhookUrl = '' } of scene.tasks) {
				for (const { url } of stage.cluster.webhooks) {
					const { pathname, search } = new URL(webhookUrl);
					expect(await scene.deliver(url + pathname + search, taskId)).toBe(200);
				}
			}
			await scene.expectArrived(scene.taskIds);
			expect(service.callbacks).toEqual([]);
		}, 400_000);

		test('a webhook processor is killed while it answers: the sender delivers to the other', async () => {
			const lane = await Lane.publish(scene);
			const { cluster, receiver } = scene.stage;
			let answered = 0;
			let killing: Promise<void> | undefined;
			await bySenders(lane.finishedTasks(40), async (taskId) => {
				await lane.deliver(taskId, lane.addresses);
				if (++answered === 5) killing = cluster.kill(receiver);
			});
			await killing;
			await cluster.restartWebhook(0);
			await lane.settle();
			expect(lane.deliveries).toBeGreaterThan(40);
			await lane.expectRuns(40);
		});
	});

	test('a worker is killed: nothing is created twice, and its log names every task that has to be fetched', async () => {
		const { collector, service, stage } = scene;
		const { cluster } = stage;
		const lane = await Lane.publish(scene, { held: true });
		const held = await scene.startImages(times(5, { latencyMs: 600_000 }));
		const victim = await cluster.workerOf(held.id);
		await until('all creates', 60_000, () => scene.creates.length >= 5);
		const paidFor = held.taskIds;
		const [address = ''] = lane.addresses;
		await lane.deliverAll(lane.finishedTasks(24), [address]);
		// Ten at once on each worker, the held one among them.
		await collector.untilHeld(19);
		await cluster.kill(victim);
		collector.openBarrier();
		for (const taskId of paidFor) service.complete(taskId);

		// n8n runs none of the killed executions again, and of their data it keeps nothing.
		const account = await lane.settle();
		const expected = { executions: { error: 9 }, runs: 15, duplicates: 0, losses: 9 };
		expect(account).toMatchObject(expected);
		expect((await held.end()).status).toBe('error');
		expect(scene.creates).toHaveLength(5);

		const log = readFileSync(victim.logFile, 'utf8');
		const named = (pattern: RegExp, executions: string[]) =>
			[...log.matchAll(pattern)].flatMap(([, taskId = '', execution = '']) =>
				executions.includes(execution) ? [taskId] : [],
			);
		const created = named(/created task (\S+) \(execution (\d+)/g, [held.id]);
		expect(created.sort()).toEqual(paidFor.sort());
		const ended = cluster.executionIds(lane.workflowId, 'error');
		const cutOff = named(/task (\S+) starts the workflow \(execution (\d+)/g, ended);
		expect(cutOff.sort()).toEqual(lane.missing().sort());
		const fetched = await scene.onTasks('wait', [...created, ...cutOff]);
		expect(fetched.map(({ state }) => state)).toEqual(Array(14).fill('SUCCESS'));
	}, 300_000);

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

	test('the API key is rotated while tasks are under way: nothing is lost, nothing is created twice', async () => {
		const { client, service } = scene;
		const { credential } = scene.stage;
		const { apiKey: credentialKey } = service;
		const stored = { ...credential, type: 'mediaGenerationApi' };
		const enterKey = async (apiKey: string) =>
			await client.updateCredential(stored, { baseUrl: service.url, apiKey });
		const lane = await Lane.publish(scene);
		const [address = ''] = lane.addresses;
		const called = lane.finishedTasks(6);
		const run = await scene.startImages(times(2, { latencyMs: 600_000 }), { options: AT_ONCE });
		await until('both creates', 60_000, () => run.tasks.length >= 2);
		await run.asleep(2);
		const before = run.reads;

		try {
			service.rotateApiKey('sk-live-second-key');
			for (const taskId of run.taskIds) service.complete(taskId);
			// Until the new key is in the credential, the run reads in vain, and callbacks are to come again.
			await until('a read in vain', 60_000, () => run.reads > before + 1);
			expect(hasEnded((await run.now()).status)).toBe(false);
			expect(await lane.attempt(called[0] ?? '', address)).toBe('503');

			// From then on its next turn has the new key.
			await enterKey('sk-live-second-key');
			expect(statesOf(succeeded(await run.end()))).toEqual(['SUCCESS', 'SUCCESS']);
			expect(scene.creates).toHaveLength(2);

			// An address that was made with the former key is refused, at the latest a minute later; Redeliver makes a
			// new one, and may do so for tasks whose callback was taken after all.
			const early = called.slice(0, 3);
			await Promise.all(early.map(async (taskId) => await lane.attempt(taskId, address)));
			const [callbackUrl] = address.split('?', 1);
			const sent = await scene.onTasks('redeliver', called, { callbackUrl });
			expect(sent.map(({ delivered }) => delivered)).toEqual(Array(6).fill(true));
			await lane.expectRuns(6);
		} finally {
			service.rotateApiKey(credentialKey);
			await enterKey(credentialKey);
		}
	});
});
