import { setTimeout as sleep } from 'node:timers/promises';

import { WHOLE_MINUTE } from '../n8n/settings';
import { missingForQueueMode } from './cluster';
import { ifAsked, unless } from './needs';
import { atTheSameTime, itemsOf, promptOf, succeeded } from './run';
import { openScene, type Scene } from './scene';
import { Stage } from './stage';

/**
 * A wait with no option set, at its length: it is held for five minutes, then suspended. n8n is killed twice while the
 * run is suspended. This takes a quarter of an hour for each way, so it runs where LONG_TESTS is set:
 * `LONG_TESTS=1 npm run test:e2e -- longWait`.
 */

const MINUTE = 60_000;
const SECOND = 1_000;

/** The tasks end in the order opposite to that of the items. */
const LATENCIES_MS = [12 * MINUTE, 12 * MINUTE - 5 * SECOND, 12 * MINUTE - 10 * SECOND];

const missing = missingForQueueMode();
const oneProcess = openScene({ env: WHOLE_MINUTE, clears: false });
const openQueueMode = async () =>
	await Stage.openInQueueMode({ workers: 1, webhooks: 1, env: WHOLE_MINUTE });
const queueMode =
	missing === undefined ? openScene({ open: openQueueMode, clears: false }) : undefined;
const story = atTheSameTime(ifAsked('The wait at its length').test, 0, 30 * MINUTE);

/** @param kill ends a process of n8n with SIGKILL, and starts it again */
async function waitAtLength(name: string, scene: Scene, kill: () => Promise<void>): Promise<void> {
	const { collector } = scene;
	const from = Date.now();
	const at = async (minutes: number) => await sleep(from + minutes * MINUTE - Date.now());
	const switches = LATENCIES_MS.map((latencyMs) => ({ latencyMs }));
	const run = await scene.startImages(switches, { after: [collector.node()] });
	await at(4.5);
	expect((await run.now()).status).toBe('running');
	for (const minutes of [7, 11]) {
		await at(minutes);
		expect((await run.now()).status).toBe('waiting');
		await kill();
	}
	const execution = succeeded(await run.end(12 * MINUTE));
	const tasks = run.tasks.sort((one, other) =>
		promptOf(one.record).localeCompare(promptOf(other.record)),
	);
	const outAt = collector.times[0] ?? NaN;
	const lateMs = outAt - Math.max(...tasks.map((task) => task.completedAt ?? NaN));
	console.log(
		`${name}: out after ${Math.round((outAt - from) / SECOND)} s, ${Math.round(lateMs / SECOND)} s after the last task; reads of each task: ${tasks.map(({ reads }) => reads).join(', ')}`,
	);
	const items = itemsOf(execution);
	expect(items.map(({ taskId, state, timedOut }) => [taskId, state, timedOut])).toEqual(
		tasks.map(({ taskId }) => [taskId, 'SUCCESS', undefined]),
	);
	expect(items.map(promptOf)).toEqual(LATENCIES_MS.map((_, index) => `Prompt ${index}`));
	// Nothing comes a second time at a later look of n8n's.
	await sleep(1.5 * MINUTE);
	expect(collector.seen).toEqual(tasks.map(({ taskId }) => taskId));
	expect(scene.tasks).toHaveLength(LATENCIES_MS.length);
}

story('n8n is killed at minute 7 and at minute 11 of a wait of 12 minutes', async () => {
	const { stage } = oneProcess;
	await waitAtLength('One process', oneProcess, async () => await stage.killAndRestart());
});

const title =
	'the worker is killed at minute 7 and at minute 11 of a wait of 12 minutes, in queue mode';
if (queueMode === undefined) {
	unless(missing, 'The wait at its length in queue mode').test(title, () => undefined);
} else {
	story(title, async () => {
		const { stage } = queueMode;
		await waitAtLength('Queue mode', queueMode, async () => {
			await stage.cluster.kill(stage.runner);
			await stage.cluster.addWorker();
		});
	});
}
