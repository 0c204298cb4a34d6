import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { until } from '../../n8n/client';
import { WHOLE_MINUTE } from '../../n8n/settings';
import { deliver, node, prompts } from '../nodes';
import type { Run } from '../run';
import { itemsOf, promptOf, succeeded } from '../run';
import { openScene } from '../scene';

/**
 * What takes minutes or a night, with n8n killed at random moments. A short night:
 * `ROWS=200 KILLS=3 npm run test:weekly -- long`. Minutes are those on the clock.
 */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

const ROWS = Number(process.env.ROWS ?? 1_000);
const KILLS = Number(process.env.KILLS ?? 5);

/** So long n8n waits at a restart for a turn to end. */
const GRACE_MS = 2 * MINUTE;

/** The tasks of an account at the same time. */
const PLACES = 10;

/** A kill leaves so many orders in doubt at most: twice what a turn orders in a minute. */
const MOST_IN_DOUBT = 2 * 6 * PLACES;

const isDoubtful = ({ error }: IDataObject) => String(error).startsWith('It is not known');

/** So many seconds, by chance. */
const between = (least: number, most: number) => least + Math.random() * (most - least);

describe('overnight', () => {
	const scene = openScene({
		env: { ...WHOLE_MINUTE, N8N_GRACEFUL_SHUTDOWN_TIMEOUT: String(GRACE_MS / SECOND) },
	});

	/** Starts a run of so many rows, whose tasks take ten seconds on average. */
	async function startRows(name: string): Promise<Run> {
		const { collector, service } = scene;
		service.configure({ concurrencyLimit: PLACES });
		const switches = Array<IDataObject>(ROWS).fill({ latencyMs: [4 * SECOND, 16 * SECOND] });
		const options = { suspendAfter: 1, maxInFlight: PLACES };
		return await scene.startImages(switches, { name, options, after: [collector.node()] });
	}

	const rowsOf = (name: string) => Array.from({ length: ROWS }, (_, row) => `${name} ${row}`);

	/** Retries an execution, which may take long. @returns the retry; the run itself where n8n has woken it meanwhile */
	async function retry(run: Run): Promise<Run> {
		try {
			return await run.beginRetry();
		} catch (error) {
			console.log(String(error));
			return run;
		}
	}

	/** Until n8n has seen, after a kill, what became of an execution. */
	async function settled(run: Run): Promise<string> {
		let status = '';
		await until('n8n to see the execution', 3 * MINUTE, async () => {
			({ status } = await run.now());
			return status === 'waiting' || status === 'success' || status === 'crashed';
		});
		return status;
	}

	test('each row comes out once, and nothing is paid twice', async () => {
		const { collector, stage } = scene;
		const from = Date.now();
		let run = await startRows('Row');
		let retries = 0;
		for (let kill = 0; kill < KILLS; kill++) {
			// In the first turn nothing is stored: that is a story of its own.
			if (kill === 0) await run.asleep();
			await sleep(between(20, 140) * SECOND);
			await stage.killAndRestart();
			const status = await settled(run);
			console.log(`kill ${kill + 1}: ${run.tasks.length} tasks; the execution: ${status}`);
			if (status !== 'crashed') continue;
			retries++;
			run = await retry(run);
		}
		const items = itemsOf(succeeded(await run.end(2 * 60 * MINUTE)));
		const minutes = Math.round((Date.now() - from) / MINUTE);
		const paid = run.tasks.map(({ record }) => promptOf(record));
		const doubtful = items.filter(isDoubtful).map(promptOf);
		const found = doubtful.filter((prompt) => paid.includes(prompt));
		console.log(
			`${ROWS} rows, ${KILLS} kills, ${retries} retries, ${minutes} minutes: ${doubtful.length} in doubt, of which ${found.length} have a task; ${paid.length} tasks`,
		);
		expect(items.map(promptOf)).toEqual(rowsOf('Row'));
		expect(new Set(paid).size).toBe(paid.length);
		expect(doubtful.length).toBeLessThanOrEqual(KILLS * MOST_IN_DOUBT);
		const others = items.filter((item) => !isDoubtful(item));
		const failed = others.filter(({ state }) => state !== 'SUCCESS');
		expect(failed.map(({ taskId, state, error }) => [taskId, state, error])).toEqual([]);
		await collector.settle(ROWS);
		const came = collector.seen.filter((taskId) => taskId !== '');
		expect(came.sort()).toEqual(others.map(({ taskId }) => String(taskId)).sort());
	}, 10_800_000);
});

/**
 * A storm of callbacks in which n8n is killed twice: of tasks that a node of the same workflow has created, and of tasks
 * that were created elsewhere.
 */
describe('a storm', () => {
	const OWN = 600;
	const FOREIGN = 600;
	const SENDERS = 40;

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
		const order = scene.image({ completion: 'trigger' });
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
