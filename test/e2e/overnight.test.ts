import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { hasEnded, until } from '../n8n/client';
import { WHOLE_MINUTE } from '../n8n/settings';
import { AT_ONCE } from './atOnce';
import { ifAsked } from './needs';
import { itemsOf, promptOf, Run, succeeded } from './run';
import { openScene } from './scene';

/**
 * What takes a night, with n8n killed at random moments. It runs where LONG_TESTS is set:
 * `LONG_TESTS=1 ROWS=200 KILLS=3 npm run test:e2e -- overnight`. Minutes are those on the clock.
 */
const { describe } = ifAsked('The night');

const ROWS = Number(process.env.ROWS ?? 1_000);
const KILLS = Number(process.env.KILLS ?? 5);
const RUNS = Number(process.env.RUNS ?? 200);
const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** So long n8n waits at a restart for a turn to end. */
const GRACE_MS = 2 * MINUTE;

/** The tasks of an account at the same time. */
const PLACES = 10;

/** As many items of one turn are in doubt at most. */
const MOST_IN_DOUBT = 50;

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
		const { client } = scene;
		const known = (await run.executions()).map(({ id }) => id);
		let isRefused = false;
		// n8n answers at the end, or not at all where it is killed before.
		void client.retryExecution(run.id).catch((error: unknown) => {
			console.log(String(error));
			isRefused = true;
		});
		let id: string | undefined;
		await until('the retry', MINUTE, async () => {
			id = (await run.executions()).find((each) => !known.includes(each.id))?.id;
			return id !== undefined || isRefused;
		});
		return id === undefined ? run : new Run(scene, id, run.workflowId, 'Row');
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
		// n8n wakes some killed runs by itself, from what was stored before the killed turn.
		expect(doubtful.length).toBeLessThanOrEqual(KILLS * MOST_IN_DOUBT);
		const others = items.filter((item) => !isDoubtful(item));
		const failed = others.filter(({ state }) => state !== 'SUCCESS');
		expect(failed.map(({ taskId, state, error }) => [taskId, state, error])).toEqual([]);
		await collector.settle(ROWS);
		const came = collector.seen.filter((taskId) => taskId !== '');
		expect(came.sort()).toEqual(others.map(({ taskId }) => String(taskId)).sort());
	}, 10_800_000);

	test('with normal restarts each row comes out once, and nobody does anything', async () => {
		const { client, stage } = scene;
		const from = Date.now();
		const run = await startRows('Calm');
		for (let restart = 0; restart < KILLS; restart++) {
			await sleep(between(20, 140) * SECOND);
			await stage.n8n.stop(GRACE_MS + MINUTE);
			await stage.restart();
			await client.login();
			console.log(`restart ${restart + 1}: ${run.tasks.length} tasks; ${(await run.now()).status}`);
		}
		const items = itemsOf(succeeded(await run.end(2 * 60 * MINUTE)));
		const minutes = Math.round((Date.now() - from) / MINUTE);
		console.log(`${ROWS} rows, ${KILLS} restarts, ${minutes} minutes: ${run.tasks.length} tasks`);
		expect(items.map(promptOf)).toEqual(rowsOf('Calm'));
		expect(items.filter(({ state }) => state !== 'SUCCESS')).toEqual([]);
		expect(run.tasks).toHaveLength(ROWS);
	}, 10_800_000);

	test('of many runs with two kills most come out by themselves, and the others by Retry', async () => {
		const { client, collector, stage } = scene;
		const runs: Run[] = [];
		const start = async (count: number) => {
			for (let index = 0; index < count; index++) {
				const order = { name: `Run${runs.length}`, options: AT_ONCE, after: [collector.node()] };
				const latencyMs = [30 * SECOND, 4 * MINUTE];
				runs.push(await scene.startImages([{ latencyMs }], order));
			}
		};
		const killAt = async (seconds: number) => {
			await sleep(seconds * SECOND);
			await stage.killAndRestart();
			await client.login();
		};
		await start(RUNS / 2);
		await killAt(between(20, 90));
		await start(RUNS / 2);
		await killAt(between(20, 90));
		const ends: Record<string, number> = {};
		let byRetry = 0;
		let inDoubt = 0;
		for (const run of runs) {
			await until('the end', 20 * MINUTE, async () => hasEnded((await run.now()).status));
			const { status } = await run.now();
			ends[status] = (ends[status] ?? 0) + 1;
			if (status === 'success') continue;
			const [item = {}] = itemsOf(await run.retry());
			if (item.state === 'SUCCESS') byRetry++;
			else if (isDoubtful(item)) inDoubt++;
			expect(run.tasks.length).toBeLessThanOrEqual(1);
		}
		console.log(
			`${RUNS} runs, two kills: ${JSON.stringify(ends)}; with Retry ${byRetry} came out, and ${inDoubt} are in doubt`,
		);
		expect(Object.values(ends).reduce((sum, count) => sum + count, 0)).toBe(RUNS);
		for (const run of runs) expect(run.tasks.length).toBeLessThanOrEqual(1);
		expect((ends.success ?? 0) + byRetry + inDoubt).toBe(RUNS);
	}, 3_600_000);
});
