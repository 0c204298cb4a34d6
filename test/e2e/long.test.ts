import { type IDataObject } from 'n8n-workflow';
import { setTimeout as sleep } from 'node:timers/promises';

import { until } from '../n8n/client';
import { installN8n } from '../n8n/install';
import { installPackage, packPackage } from '../n8n/package';
import { WHOLE_MINUTE } from '../n8n/settings';
import { ifAsked } from './needs';
import { deliver, node, prompts } from './nodes';
import { itemsOf, type Run, statesOf, succeeded } from './run';
import { openScene } from './scene';
import { Stage } from './stage';

/** What takes minutes, and so runs where LONG_TESTS is set. */

describe('a storm', () => {
	/**
	 * A storm of callbacks in which n8n is killed twice: of tasks that a node of the same workflow has created, and of
	 * tasks that were created elsewhere.
	 */
	const { test } = ifAsked('The storm');

	const OWN = 600;
	const FOREIGN = 600;
	const SENDERS = 40;
	const MINUTE = 60_000;
	const SECOND = 1_000;

	/** How long a sender waits for an answer, and then before it comes again. */
	const ATTEMPT_LIMIT_MS = 15 * SECOND;
	const PAUSE_MS = 2 * SECOND;

	/** How long a sender goes on. */
	const GIVE_UP_AFTER_MS = 20 * MINUTE;

	// An n8n of its own: no other test is to find what the storm leaves behind.
	const scene = openScene({ env: { ...WHOLE_MINUTE, N8N_LOG_LEVEL: 'info' } });

	/**
	 * Delivers the callback of each task twice in a row, as senders do: again until it is answered 200.
	 *
	 * @returns how often which answer came, 0 where none came; and the longest that one callback took, ms
	 */
	async function storm(address: string, tasks: readonly string[]) {
		const deliveries = tasks.flatMap((taskId) => [taskId, taskId]);
		const answers: Record<number, number> = {};
		let longestMs = 0;
		const send = async (taskId: string) => {
			const from = Date.now();
			for (; Date.now() < from + GIVE_UP_AFTER_MS; await sleep(PAUSE_MS)) {
				const signal = AbortSignal.timeout(ATTEMPT_LIMIT_MS);
				const status = await deliver(address, { taskId }, { signal }).then(
					async (response) => (await response.text(), response.status),
					() => 0,
				);
				answers[status] = (answers[status] ?? 0) + 1;
				longestMs = Math.max(longestMs, Date.now() - from);
				if (status === 200) return;
			}
			throw new Error(`The callback of task ${taskId} was not taken`);
		};
		const sender = async () => {
			for (let next = deliveries.shift(); next; next = deliveries.shift()) await send(next);
		};
		await Promise.all(Array.from({ length: SENDERS }, sender));
		return { answers, longestMs };
	}

	/** n8n may not come up in the midst of a storm: it ends then, and is started again, as a container is. */
	async function powerCut(): Promise<void> {
		await scene.stage.kill();
		for (let left = 4; ; left--) {
			try {
				return await scene.stage.restart();
			} catch (error) {
				if (left === 0) throw error;
			}
		}
	}

	/** Takes a second, so that n8n is killed in the midst of it. */
	const work = () =>
		node(
			'n8n-nodes-base.wait',
			'Work',
			{ resume: 'timeInterval', amount: 1, unit: 'seconds' },
			1.1,
		);

	const seconds = (ms: number) => Math.round(ms / SECOND);

	/** The ids of the tasks of which n8n's log says so. */
	const logged = (what: RegExp) =>
		new Set([...scene.log.matchAll(what)].map(([, taskId = '']) => taskId));

	test('no task starts twice; what had not begun comes back by itself or by its name in the log, and so does what died', async () => {
		const { client, collector, service, stage } = scene;
		service.configure({ latencyMs: 3_600_000, callbackLost: true });
		// The checks begin when the storm is over.
		const order = scene.image({ completion: 'trigger', options: { checkInterval: 5 } });
		const lane = await scene.publish(scene.trigger(), {
			before: [work()],
			orders: [prompts('Prompt', Array<IDataObject>(OWN).fill({})), order],
		});
		const run = await client.run(lane.id, { trigger: 'Start', destination: 'Media' });
		await client.waitForExecution(run, 4 * MINUTE);
		const { search } = new URL(scene.tasks[0]?.webhookUrl ?? '');
		const own = scene.taskIds;
		expect(own).toHaveLength(OWN);
		for (const taskId of own) service.complete(taskId);
		const foreign = stage.finishedTasks(FOREIGN);

		const from = Date.now();
		// Those of both kinds come at the same time.
		const mixed = own.flatMap((taskId, index) => [taskId, foreign[index] ?? '']);
		const ended = storm(lane.url + search, mixed);
		ended.catch(() => undefined);
		for (const share of [0.25, 0.6]) {
			const enough = share * (OWN + FOREIGN);
			await until('the storm', 10 * MINUTE, () => collector.seen.length >= enough);
			await powerCut();
		}
		const { answers, longestMs } = await ended;
		console.log(
			`The storm took ${seconds(Date.now() - from)} s; answers ${JSON.stringify(answers)}; a callback took ${seconds(longestMs)} s at most`,
		);

		const missing = (tasks: readonly string[]) =>
			tasks.filter((taskId) => !collector.seen.includes(taskId));
		const begun = () => logged(/task (\S+) starts the workflow/g);
		const admitted = () => logged(/task (\S+) is to start the workflow/g);
		const untilIdle = async () =>
			await until('all executions to end', 10 * MINUTE, async () => {
				const active = "select id from execution_entity where status in ('new', 'running')";
				return (await stage.database.rows(active)).length === 0;
			});
		await untilIdle();
		const all = [...own, ...foreign];
		console.log(
			`After the storm ${missing(own).length} of our own and ${missing(all).length} are missing`,
		);
		expect(collector.seen).toHaveLength(new Set(collector.seen).size);
		// Every task that is missing was answered 200, and is named.
		const names = admitted();
		expect(missing(all).filter((taskId) => !names.has(taskId))).toEqual([]);

		// The checks bring back the tasks of our own node that had not begun.
		await until('the checks', 10 * MINUTE, () =>
			missing(own).every((taskId) => begun().has(taskId)),
		);
		await untilIdle();
		const hasBegun = (taskId: string) => begun().has(taskId);
		const died = missing(all).filter(hasBegun);
		const left = missing(foreign).filter((taskId) => !hasBegun(taskId));
		console.log(`${died.length} had begun and died; ${left.length} of others had not begun`);

		const redeliver = async (taskIds: string[]) => {
			if (taskIds.length === 0) return;
			const task = { resource: 'task', operation: 'redeliver', taskId: taskIds.join('\n') };
			const node = scene.media({ ...task, callbackUrl: lane.url });
			const sent = await (await scene.start('After a crash', node)).end(10 * MINUTE);
			const output = itemsOf(succeeded(sent)).map(({ delivered }) => delivered);
			expect(output).toEqual(taskIds.map(() => true));
		};
		// The three steps of the page: whatever the log names is redelivered, and starts nothing where it has begun.
		const before = collector.seen.length;
		await redeliver([...admitted()]);
		await collector.settle(before + left.length, MINUTE);
		await untilIdle();
		// A task that the log names may have been killed before the ledger had it: that task has started now.
		const stillMissing = missing(all);
		expect(stillMissing.filter((taskId) => !died.includes(taskId))).toEqual([]);
	}, 3_600_000);
});

describe('updates', () => {
	/**
	 * The package is installed anew while executions wait, on one user folder.
	 */
	const { describe } = ifAsked('Updates');

	const COUNT = 20;
	const MINUTE = 60_000;

	describe('the package is installed anew while executions wait', () => {
		const scene = openScene({ open: async () => await Stage.openOn(await installN8n()) });

		test(
			'nothing is lost, nothing comes twice',
			async () => {
				const { client, collector, service, stage } = scene;
				service.configure({ latencyMs: 3_600_000 });
				const lane = await scene.publish();
				const asleep: Run[] = [];
				for (let count = 0; count < COUNT; count++) {
					const order = { name: `Run${count}`, options: { suspendAfter: 0 } };
					asleep.push(await scene.startImages([{}], { ...order, after: [collector.node()] }));
				}
				// The first sleep comes before the first create.
				for (const run of asleep) await run.asleep(2);
				const many = prompts('Triggered', Array<IDataObject>(COUNT).fill({}));
				const options = { maxInFlight: COUNT };
				const left = { completion: 'trigger', callbackUrl: lane.url, options };
				succeeded(await scene.run('Leaves its tasks to a trigger', many, scene.image(left)));
				const { taskIds } = scene;
				expect(taskIds).toHaveLength(2 * COUNT);
				const triggered = scene.tasks.filter(({ webhookUrl }) => webhookUrl !== undefined);
				expect(triggered).toHaveLength(COUNT);

				await stage.stop();
				await installPackage(stage.userFolder, (await packPackage()).tarball);
				await stage.restart();
				await client.login();
				await client.waitForWebhook(lane.path);
				for (const taskId of taskIds) service.complete(taskId);
				// Senders deliver a callback more than once.
				for (const { taskId } of triggered) await service.deliverCallback(taskId, { copies: 2 });

				await scene.expectArrived(taskIds, 4 * MINUTE);
				for (const run of asleep) {
					expect(statesOf(succeeded(await run.end(3 * MINUTE)))).toEqual(['SUCCESS']);
				}
				await until('the trigger to be done', MINUTE, async () => {
					const list = await client.listExecutions({ workflowId: lane.id });
					return list.every(({ status }) => status === 'success');
				});
				expect(scene.creates).toHaveLength(2 * COUNT);
				console.log(`${COUNT} runs that slept and ${COUNT} triggered tasks came out once`);
			},
			20 * MINUTE,
		);
	});
});
