import type { IDataObject } from 'n8n-workflow';

import { until } from '../n8n/client';
import { shortMinute, WHOLE_MINUTE } from '../n8n/settings';
import { AT_ONCE } from './atOnce';
import { itemsOf, promptOf, type Run, succeeded } from './run';
import { openScene } from './scene';

/**
 * The power is cut once while all of these runs wait. No check and no result comes before: what dies while it goes on is
 * a story of `supervisor.test.ts`.
 */

const MINUTE = 60_000;

const scene = openScene({ env: WHOLE_MINUTE, clears: false });

/** Tasks that end when the test says so. */
const LATER: IDataObject = { latencyMs: 3_600_000 };
const later = [LATER, LATER, LATER];
const inSilence = later.map((switches) => ({ ...switches, callbackLost: true }));

const suspended: Run[] = [];

const start = async (name: string, switches: IDataObject[], options: IDataObject) =>
	await scene.startImages(switches, { name, options, after: [scene.collector.node()] });

beforeAll(async () => {
	const { client, service, stage } = scene;
	for (let index = 0; index < 5; index++) {
		suspended.push(await start(`Large${index}`, Array<IDataObject>(10).fill(LATER), AT_ONCE));
	}
	// Shorter than it takes to create a few tasks, minutes.
	suspended.push(await start('After a hold', inSilence, { suspendAfter: 0.02 }));
	suspended.push(await start('At once', later, AT_ONCE));
	suspended.push(await start('At once, in silence', inSilence, AT_ONCE));
	for (const run of suspended) await run.suspended();
	await until('nothing to be at work', 4 * MINUTE, async () => {
		const all = await client.listExecutions({ status: ['running', 'waiting'] });
		const soon = Date.now() + 2_000;
		return all.every(({ waitTill }) => Date.parse(waitTill ?? '') > soon);
	});
	await stage.kill();
	await stage.restart(shortMinute(10_000));
	// In another order than they were created.
	for (const taskId of scene.taskIds.reverse()) service.complete(taskId);
}, 900_000);

test('suspended runs come out complete, once, in order', async () => {
	for (const run of suspended) {
		const execution = await run.end();
		succeeded(execution);
		const items = itemsOf(execution);
		const places = items.map((item) => Number(promptOf(item).split(' ').at(-1)));
		expect(places).toEqual([...run.taskIds.keys()]);
		for (const item of items) expect([item.state, item.timedOut]).toEqual(['SUCCESS', undefined]);
	}
	await scene.expectArrived(suspended.flatMap(({ taskIds }) => taskIds));
}, 900_000);
