import type { IDataObject } from 'n8n-workflow';

import { until } from '../n8n/client';
import { missingInN8n } from '../n8n/differences';
import { shortMinute, WHOLE_MINUTE } from '../n8n/settings';
import { AT_ONCE } from './atOnce';
import { needing } from './needs';
import { itemsOf, promptOf, type Run, succeeded } from './run';
import { openScene } from './scene';

/**
 * The power is cut once while all of these runs wait. No check and no result comes before: what dies while it goes on is
 * a story of `supervisor.test.ts`.
 */

const MINUTE = 60_000;

const scene = openScene({ env: WHOLE_MINUTE, clears: false });

const canMend = missingInN8n('endOfSubExecutions') === undefined;
const canSuspend = missingInN8n('suspending') === undefined;

/** Tasks that end when the test says so. */
const LATER: IDataObject = { latencyMs: 3_600_000 };
const later = [LATER, LATER, LATER];
const inSilence = later.map((switches) => ({ ...switches, callbackLost: true }));

let held: Run;
const suspended: Run[] = [];

const start = async (name: string, switches: IDataObject[], options: IDataObject) =>
	await scene.startImages(switches, { name, options, after: [scene.collector.node()] });

beforeAll(async () => {
	if (!canSuspend) return;
	const { client, service, stage } = scene;
	held = await start('Held', inSilence, {});
	for (let index = 0; index < 5; index++) {
		suspended.push(await start(`Large${index}`, Array<IDataObject>(10).fill(LATER), AT_ONCE));
	}
	if (canMend) {
		// Shorter than it takes to create a few tasks, minutes.
		suspended.push(await start('After a hold', inSilence, { suspendAfter: 0.02 }));
		suspended.push(await start('At once', later, AT_ONCE));
		suspended.push(await start('At once, in silence', inSilence, AT_ONCE));
	}
	for (const run of suspended) await run.suspended();
	await until('nothing but the held run to be at work', 4 * MINUTE, async () => {
		const all = await client.listExecutions({ status: ['running', 'waiting'] });
		const soon = Date.now() + 2_000;
		return all.every(({ id, waitTill }) => id === held.id || Date.parse(waitTill ?? '') > soon);
	});
	await stage.kill();
	await stage.restart(shortMinute(10_000));
	// In another order than they were created.
	for (const taskId of scene.taskIds.reverse()) service.complete(taskId);
}, 900_000);

needing('suspending', 'A power cut while runs are suspended').test(
	'suspended runs come out complete, once, in order',
	async () => {
		for (const run of suspended) {
			const execution = await run.end();
			if (canMend) succeeded(execution);
			const items = itemsOf(execution);
			const places = items.map((item) => Number(promptOf(item).split(' ').at(-1)));
			expect(places).toEqual([...run.taskIds.keys()]);
			for (const item of items) expect([item.state, item.timedOut]).toEqual(['SUCCESS', undefined]);
		}
		// None of the held run.
		await scene.expectArrived(suspended.flatMap(({ taskIds }) => taskIds));
	},
	900_000,
);

needing('endOfSubExecutions', 'A power cut while a run is held').test(
	'a held run names its tasks in the log; they are fetched, and not created again',
	async () => {
		expect((await held.end()).status).toBe('crashed');
		const named = scene.createdByLog(held.id);
		// Creates are under way beside each other: which answer comes first is not said.
		expect([...named].sort()).toEqual([...held.taskIds].sort());
		const node = scene.media({ resource: 'task', operation: 'wait', taskId: named.join() });
		const fetched = itemsOf(await scene.run('Fetched', node));
		expect(fetched).toMatchObject(named.map((taskId) => ({ taskId, state: 'SUCCESS' })));
		// Three of this run, 50 and nine of the suspended ones.
		expect(scene.tasks).toHaveLength(62);
	},
	300_000,
);
