import type { IDataObject } from 'n8n-workflow';

import { until } from '../../n8n/client';
import { LEAN, WHOLE_MINUTE } from '../../n8n/settings';
import { missingForQueueMode } from '../cluster';
import { Lane } from '../lane';
import { unless } from '../needs';
import { itemsOf, promptOf, succeeded } from '../run';
import { openScene } from '../scene';
import { Stage } from '../stage';

const { describe } = unless(missingForQueueMode(), 'Queue mode');

/** The time that n8n has for a turn when it is shut down. */
const GRACE_SECONDS = 90;

describe('queue mode: one main, two webhook processors, two workers', () => {
	const scene = openScene({
		open: async () => {
			const env = { ...LEAN, N8N_GRACEFUL_SHUTDOWN_TIMEOUT: String(GRACE_SECONDS) };
			return await Stage.openInQueueMode({ workers: 2, webhooks: 2, env });
		},
	});

	test('both workers are replaced, one after the other, in turns that create: each item is ordered once', async () => {
		const { cluster } = scene.stage;
		const count = 120;
		const run = await (await scene.startTurns('Replaced', count)).inALaterTurn();
		for (const worker of [...cluster.workers]) {
			expect(run.tasks.length).toBeLessThan(count);
			await cluster.replace(worker, GRACE_SECONDS * 1_000);
		}
		const items = itemsOf(succeeded(await run.end(400_000)));
		expect(items.map(({ state }) => state)).toEqual(Array(count).fill('SUCCESS'));
		expect(run.tasks).toHaveLength(count);
		expect(await run.others()).toEqual([]);
	}, 600_000);

	test('a worker stands still while callbacks come: n8n gives up what it has fetched before it begins, and the next callback starts it', async () => {
		const { cluster } = scene.stage;
		const lane = await Lane.publish(scene);
		const [first = '', second = ''] = lane.addresses;
		const { pid } = cluster.workers[0]!;
		process.kill(pid, 'SIGSTOP');
		try {
			await lane.deliverAll(lane.finishedTasks(20), [first]);
			await until('n8n to give them up', 180_000, () => {
				const { error = 0, success = 0 } = cluster.executions(lane.workflowId);
				return error > 0 && error + success === 20;
			});
		} finally {
			process.kill(pid, 'SIGCONT');
		}
		const { executions, runs } = await lane.settle();
		expect(executions).toEqual({ success: runs, error: 20 - runs });
		await lane.deliverAll(lane.tasks, [second]);
		await lane.expectRuns(20);
	}, 400_000);
});

describe('queue mode with two workers, where a minute is a minute', () => {
	const scene = openScene({
		open: async () =>
			await Stage.openInQueueMode({ workers: 2, webhooks: 1, env: { ...LEAN, ...WHOLE_MINUTE } }),
	});

	test('a run is woken on one worker, and again on the other, since Redis comes back a moment older: each item is ordered and comes out once', async () => {
		const { cluster } = scene.stage;
		const count = 100;
		const run = await (await scene.startTurns('Twice', count)).inALaterTurn();
		const wakes = () => scene.log.split(`Worker started execution ${run.id} `).length;
		const known = wakes();
		await until('a turn', 60_000, () => cluster.putBack([run.id]) > 0);
		await until('the second wake', 60_000, () => wakes() > known);
		const items = itemsOf(succeeded(await run.end(900_000)));
		expect(items.map(({ state }) => state)).toEqual(Array(count).fill('SUCCESS'));
		expect(new Set(run.tasks.map(({ record }) => promptOf(record))).size).toBe(count);
		expect(run.tasks).toHaveLength(count);
	}, 1_200_000);
});

describe('queue mode: two workers, with executions in files', () => {
	const scene = openScene({
		open: async () => {
			const env = { ...LEAN, N8N_EXECUTION_DATA_STORAGE_MODE: 'filesystem' };
			return await Stage.openInQueueMode({ workers: 2, webhooks: 0, env });
		},
	});

	test('a run that nobody saves sleeps three times, loses a worker, and comes out', async () => {
		const { cluster } = scene.stage;
		const run = await scene.startImages(Array<IDataObject>(6).fill({ latencyMs: 100_000 }), {
			name: 'Unsaved',
			options: { suspendAfter: 0 },
			after: [scene.collector.node()],
			settings: { saveDataSuccessExecution: 'none' },
		});
		await run.asleep();
		const [victim] = cluster.workers;
		if (victim) await cluster.kill(victim);
		await scene.collector.settle(6, 330_000);
		expect([...scene.collector.seen].sort()).toEqual([...run.taskIds].sort());
		expect(run.tasks).toHaveLength(6);
		expect(run.sleeps).toBeGreaterThanOrEqual(3);
	}, 500_000);
});
