import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { outputItems } from '../n8n/client';
import { WHOLE_MINUTE } from '../n8n/settings';
import { missingForQueueMode } from './cluster';
import { Collector } from './collector';
import { Stage } from './stage';

/**
 * A wait with no option set, at its length: it is held for five minutes, then suspended. n8n is killed twice while the
 * run is suspended. This takes a quarter of an hour, so it runs where LONG_TESTS is set:
 * `LONG_TESTS=1 npm run test:e2e -- longWait`.
 */
const isAsked = Boolean(process.env.LONG_TESTS);
if (!isAsked) console.log('the wait at its length is skipped: LONG_TESTS is not set');
const missing = missingForQueueMode();
if (missing !== undefined)
	console.log(`the wait at its length in queue mode is skipped: ${missing}`);

const MINUTE = 60_000;
const SECOND = 1_000;

/** The tasks end in the order opposite to that of the items. */
const LATENCIES_MS = [12 * MINUTE, 12 * MINUTE - 5 * SECOND, 12 * MINUTE - 10 * SECOND];

/** @param kill ends a process of n8n with SIGKILL, and starts it again */
async function waitAtLength(name: string, stage: Stage, kill: () => Promise<void>): Promise<void> {
	const { client, service } = stage;
	const collector = await Collector.open();
	try {
		const from = Date.now();
		const at = async (minutes: number) => await sleep(from + minutes * MINUTE - Date.now());
		const statusOf = async () => (await client.getExecution(id)).status;
		const switches = LATENCIES_MS.map((latencyMs): IDataObject => ({ latencyMs }));
		const id = await stage.startImages(switches, {}, { after: [collector.node()] });
		await at(4.5);
		expect(await statusOf()).toBe('running');
		for (const minutes of [7, 11]) {
			await at(minutes);
			expect(await statusOf()).toBe('waiting');
			await kill();
		}
		const execution = await client.waitForExecution(id, 12 * MINUTE);
		const seconds = Math.round((collector.times[0] ?? NaN) - from) / SECOND;
		const promptOf = ({ input }: { input?: unknown }) => String((input as IDataObject).prompt);
		const tasks = [...service.tasks.values()].sort((one, other) =>
			promptOf(one.record).localeCompare(promptOf(other.record)),
		);
		const late =
			(collector.times[0] ?? NaN) - Math.max(...tasks.map((task) => task.completedAt ?? NaN));
		console.log(
			`${name}: out after ${seconds} s, ${Math.round(late / SECOND)} s after the last task; reads of each task: ${tasks.map(({ reads }) => reads).join(', ')}`,
		);
		expect(execution.status).toBe('success');
		const items = outputItems(execution, 'Media').map(({ json }) => json);
		expect(items.map(({ taskId, state, timedOut }) => [taskId, state, timedOut])).toEqual(
			tasks.map(({ taskId }) => [taskId, 'SUCCESS', undefined]),
		);
		expect(items.map(promptOf)).toEqual(LATENCIES_MS.map((_, index) => `Prompt ${index}`));
		// Nothing comes a second time at a later look of n8n's.
		await sleep(1.5 * MINUTE);
		expect(collector.seen).toEqual(tasks.map(({ taskId }) => taskId));
		expect(service.tasks.size).toBe(LATENCIES_MS.length);
	} finally {
		collector.close();
	}
}

const STORIES: Array<{ title: string; isPossible: boolean; run: () => Promise<void> }> = [
	{
		title: 'n8n is killed at minute 7 and at minute 11 of a wait of 12 minutes',
		isPossible: true,
		run: async () => {
			const stage = await Stage.open(WHOLE_MINUTE);
			try {
				await waitAtLength('One process', stage, async () => await stage.killAndRestart());
			} finally {
				await stage.close();
			}
		},
	},
	{
		title:
			'the worker is killed at minute 7 and at minute 11 of a wait of 12 minutes, in queue mode',
		isPossible: missing === undefined,
		run: async () => {
			const stage = await Stage.openInQueueMode({ workers: 1, webhooks: 1, env: WHOLE_MINUTE });
			try {
				await waitAtLength('Queue mode', stage, async () => {
					await stage.cluster.kill(stage.runner);
					await stage.cluster.addWorker();
				});
			} finally {
				await stage.close();
			}
		},
	},
];

const outcomes = new Map<string, Promise<void>>();

/** They happen at the same time. */
beforeAll(async () => {
	if (!isAsked) return;
	for (const { title, isPossible, run } of STORIES) {
		if (isPossible) outcomes.set(title, run());
	}
	await Promise.allSettled(outcomes.values());
}, 30 * MINUTE);

for (const { title, isPossible } of STORIES) {
	(isAsked && isPossible ? test : test.skip)(title, async () => await outcomes.get(title));
}
