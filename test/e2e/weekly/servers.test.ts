import { setTimeout as sleep } from 'node:timers/promises';

import { until } from '../../n8n/client';
import { LEAN } from '../../n8n/settings';
import { Lane } from '../lane';
import { unless } from '../needs';
import { statesOf, succeeded } from '../run';
import { openScene } from '../scene';
import { missingForOwnServers, OwnPostgres, OwnRedis } from '../servers';
import { Stage } from '../stage';

const onOwnServers = unless(missingForOwnServers(), 'Restarts of PostgreSQL and Redis');

/** How long a server is away at least. What is tested does not depend on it. */
const DOWN_MS = 3_000;

/** On a busy machine it takes longer to come back than the ten seconds after which n8n ends itself where it has no Redis. */
const WITHOUT_REDIS = { QUEUE_BULL_REDIS_TIMEOUT_THRESHOLD: '60000' };

onOwnServers.describe('queue mode, on a PostgreSQL and a Redis of its own', () => {
	let postgres: OwnPostgres;
	let redis: OwnRedis;
	const scene = openScene({
		open: async () => {
			postgres = await OwnPostgres.make();
			redis = await OwnRedis.make();
			await Promise.all([postgres.start(), redis.start()]);
			const servers = { postgresPort: postgres.port, redisPort: redis.port };
			const env = { ...LEAN, ...WITHOUT_REDIS, N8N_DEFAULT_BINARY_DATA_MODE: 'database' };
			return await Stage.openInQueueMode({ workers: 1, webhooks: 1, servers, env });
		},
	});
	// After the scene was closed.
	afterAll(async () => {
		await redis?.close();
		await postgres?.close();
	}, 60_000);

	/** A lane of 30 tasks: ten are held up in the worker, four are queued, and 16 are yet to be delivered. */
	async function underWay() {
		const lane = await Lane.publish(scene, { held: true });
		const tasks = lane.finishedTasks(30);
		const early = tasks.slice(0, 14);
		await lane.deliverAll(early);
		await scene.collector.untilHeld(10);
		return { lane, early, late: tasks.slice(14) };
	}

	/** Delivers callbacks while a server is away for some seconds. */
	async function deliverMeanwhile(lane: Lane, taskIds: string[], server: OwnPostgres | OwnRedis) {
		const delivering = lane.deliverAll(taskIds);
		await sleep(DOWN_MS);
		await server.start();
		await delivering;
		scene.collector.openBarrier();
	}

	test.each([
		['Redis', () => redis, 'SIGTERM'],
		['PostgreSQL', () => postgres, 'SIGINT'],
	] as const)(
		'%s is restarted',
		async (_, server, signal) => {
			const { lane, late } = await underWay();
			await server().stop(signal);
			await deliverMeanwhile(lane, late, server());
			await lane.expectRuns(30);
		},
		240_000,
	);

	test('PostgreSQL is away while executions go on: those that were lost are started by another delivery', async () => {
		const { lane, early, late } = await underWay();
		const { cluster } = scene.stage;
		await postgres.stop('SIGINT');
		scene.collector.openBarrier();
		await sleep(DOWN_MS);
		await postgres.start();
		await lane.deliverAll(late);
		await scene.collector.settle(26);
		const account = await lane.settle({ mayHang: true });
		expect(account).toMatchObject({ duplicates: 0 });
		expect(account.losses).toBeLessThanOrEqual(4);

		// As after five minutes: it has forgotten whose executions n8n had stored.
		await cluster.webhooks[0]?.kill();
		await cluster.restartWebhook(0);
		await lane.deliverAll([...early, ...late]);
		await lane.expectRuns(30, { mayHang: true });
	}, 300_000);

	test('PostgreSQL is away just when a run that orders goes to sleep: the run stays awake, then goes on, and orders each item once', async () => {
		const count = 16;
		const run = await (await scene.startTurns('Cut', count)).inALaterTurn();
		await postgres.stop('SIGINT');
		const { sleeps } = run;
		// Longer than a turn lasts here.
		await sleep(8_000);
		expect(run.sleeps).toBe(sleeps);
		await postgres.start();
		expect(statesOf(succeeded(await run.end()))).toEqual(Array(count).fill('SUCCESS'));
		expect(run.tasks).toHaveLength(count);
		expect(run.sleeps).toBeGreaterThan(sleeps);
	}, 300_000);

	test('Redis is restarted and has kept nothing: those that were queued can be retried from the list', async () => {
		const { lane, late } = await underWay();
		await redis.stop('SIGTERM');
		redis.loseData();
		await deliverMeanwhile(lane, late, redis);
		await scene.collector.settle(26);
		const account = await lane.settle();
		expect(account).toMatchObject({ executions: { new: 4 }, runs: 26, duplicates: 0, losses: 4 });

		// n8n looks for such executions when it starts, and every three hours.
		const { stage } = scene;
		await stage.killAndRestart();
		await until('n8n to notice', 120_000, () => {
			return stage.cluster.executions(lane.workflowId).crashed === 4;
		});
		for (const id of stage.cluster.executionIds(lane.workflowId, 'crashed')) {
			await scene.client.retryExecution(id);
		}
		await lane.expectRuns(30);
	}, 300_000);
});
