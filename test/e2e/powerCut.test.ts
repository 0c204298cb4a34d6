import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { until } from '../n8n/client';
import { missingInN8n } from '../n8n/differences';
import { shortMinute, WHOLE_MINUTE } from '../n8n/settings';
import { AT_ONCE } from './atOnce';
import { needing } from './needs';
import { itemsOf, promptOf, type Run, statesOf, succeeded } from './run';
import { openScene } from './scene';

/**
 * The power is cut once while all of these runs wait. No check and no result comes before: what dies while it goes on is
 * a story of `supervisor.test.ts`.
 */

const MINUTE = 60_000;

/** Shorter than it takes to create a few tasks, minutes. */
const SOON = 0.02;

/**
 * More power cuts, at random moments, take minutes: `CUTS=3 npm run test:e2e -- powerCut`. One of these may hit an
 * execution that is just starting another one, which n8n does not mend: `supervisor.test.ts` has that moment.
 */
const CUTS = Number(process.env.CUTS ?? 0);

const scene = openScene({ env: WHOLE_MINUTE, clears: false });

const canMend = missingInN8n('endOfSubExecutions') === undefined;
const canSuspend = missingInN8n('suspending') === undefined;

/** Tasks that end when the test says so. */
const LATER: IDataObject = { latencyMs: 3_600_000 };
const later = [LATER, LATER, LATER];
const inSilence = later.map((switches) => ({ ...switches, callbackLost: true }));

let startedAt: number;
let held: Run;
const suspended: Run[] = [];
const silent: Run[] = [];
const large: Run[] = [];

/** Starts a run whose node is followed by the collector. */
const start = async (name: string, switches: IDataObject[], options: IDataObject) =>
	await scene.startImages(switches, { name, options, after: [scene.collector.node()] });

beforeAll(async () => {
	if (!canSuspend) return;
	const { client, service, stage } = scene;
	startedAt = Date.now();
	held = await start('Held', inSilence, {});
	for (let index = 0; index < 5; index++) {
		large.push(await start(`Large${index}`, Array<IDataObject>(10).fill(LATER), AT_ONCE));
	}
	if (canMend) {
		suspended.push(
			await start('After a hold', inSilence, { suspendAfter: SOON }),
			await start('At once', later, AT_ONCE),
			await start('At once, in silence', inSilence, AT_ONCE),
		);
		for (let index = 0; index < 20; index++) {
			const switches = [1_000, 100_000 + 2_500 * index].map((latencyMs) => ({
				latencyMs,
				callbackLost: true,
			}));
			silent.push(await scene.startImages(switches, { name: `Cut${index}`, options: AT_ONCE }));
		}
	}
	for (const run of [...suspended, ...silent, ...large]) await run.suspended();
	await until('nothing but the held run to be at work', 4 * MINUTE, async () => {
		const all = await client.listExecutions({ status: ['running', 'waiting'] });
		const soon = Date.now() + 2_000;
		return all.every(({ id, waitTill }) => id === held.id || Date.parse(waitTill ?? '') > soon);
	});
	await stage.kill();
	await stage.restart(shortMinute(10_000));
	// In another order than they were created.
	const tasks = [held, ...suspended, ...large].flatMap(({ taskIds }) => taskIds);
	for (const taskId of tasks.reverse()) service.complete(taskId);
	for (let cut = 0; cut < CUTS; cut++) {
		await sleep(10_000 + Math.random() * 30_000);
		await stage.killAndRestart();
	}
}, 900_000);

/** The tasks of some runs that have come to the collector. */
const arrivedOf = (runs: Run[]) => {
	const taskIds = runs.flatMap((run) => run.taskIds);
	return scene.collector.seen.filter((taskId) => taskIds.includes(taskId));
};

const { test: testMended } = needing('endOfSubExecutions', 'A power cut');
const { test: testSuspended } = needing('suspending', 'A power cut while runs are suspended');

testSuspended(
	'50 tasks in 5 suspended executions survive a power cut',
	async () => {
		for (const run of large) {
			expect(statesOf(await run.end())).toEqual(Array(10).fill('SUCCESS'));
		}
		const taskIds = large.flatMap((run) => run.taskIds);
		await until('all tasks to arrive', MINUTE, () => arrivedOf(large).length >= taskIds.length);
		expect([...arrivedOf(large)].sort()).toEqual([...taskIds].sort());
		console.log(`5 executions, 50 tasks, power cut: ${taskIds.length} reached the workflow`);
	},
	300_000,
);

testMended(
	'a suspended run comes out complete, once, in order',
	async () => {
		for (const run of suspended) {
			const items = itemsOf(succeeded(await run.end()));
			expect(items.map(({ state, timedOut }) => [state, timedOut])).toEqual(
				Array(3).fill(['SUCCESS', undefined]),
			);
			expect(items.map(promptOf)).toEqual(run.tasks.map(({ record }) => promptOf(record)));
		}
		await until('all tasks to arrive', MINUTE, () => arrivedOf(suspended).length >= 9);
		await sleep(1_500);
		const taskIds = suspended.flatMap((run) => run.taskIds);
		expect([...arrivedOf(suspended)].sort()).toEqual([...taskIds].sort());
	},
	900_000,
);

testMended(
	'a held run names its tasks in the log; they are fetched, and not created again',
	async () => {
		expect((await held.end()).status).toBe('crashed');
		const named = scene.createdByLog(held.id);
		// Creates are under way beside each other: which answer comes first is not said.
		expect([...named].sort()).toEqual([...held.taskIds].sort());
		expect(arrivedOf([held])).toEqual([]);
		const node = scene.media({ resource: 'task', operation: 'wait', taskId: named.join() });
		const fetched = itemsOf(await scene.run('Fetched', node));
		expect(fetched.map(({ taskId, state }) => [taskId, state])).toEqual(
			named.map((taskId) => [taskId, 'SUCCESS']),
		);
	},
	300_000,
);

testMended(
	'20 runs without any callback survive a power cut while all of them wait',
	async () => {
		const late: number[] = [];
		for (const run of silent) {
			const execution = await run.end(10 * MINUTE);
			expect(statesOf(execution)).toEqual(['SUCCESS', 'SUCCESS']);
			late.push(new Date(String(execution.stoppedAt)).getTime() - startedAt);
		}
		// Three of the held run, nine of the suspended ones, 40 of these, and 50.
		expect(scene.tasks).toHaveLength(102);
		console.log(
			`20 runs, ${CUTS + 1} power cuts, no callback: all complete, the last ${Math.max(...late) / 1000} s after the first began`,
		);
	},
	1_200_000,
);
