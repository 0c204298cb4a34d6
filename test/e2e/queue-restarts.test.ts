import { setTimeout as sleep } from 'node:timers/promises';

import { Collector } from './collector';
import { Lane } from './lane';
import { needing } from './needs';
import { missingForOwnServers, OwnPostgres, OwnRedis } from './servers';
import { Stage } from './stage';

const missing = missingForOwnServers();
if (missing !== undefined) console.log(`restarts of PostgreSQL and Redis are skipped: ${missing}`);
const describeRestarts = missing === undefined ? describe : describe.skip;

/** Shorter than the ten seconds after which n8n ends itself where it has no Redis. What is tested does not depend on it. */
const DOWN_MS = 3_000;

describeRestarts('queue mode, on a PostgreSQL and a Redis of its own', () => {
	let postgres: OwnPostgres;
	let redis: OwnRedis;
	let stage: Stage;
	let collector: Collector;

	beforeAll(async () => {
		postgres = await OwnPostgres.make();
		redis = await OwnRedis.make();
		await Promise.all([postgres.start(), redis.start()]);
		const servers = { postgresPort: postgres.port, redisPort: redis.port };
		stage = await Stage.openInQueueMode({ workers: 1, webhooks: 1, servers });
		collector = await Collector.open();
	}, 900_000);
	afterAll(async () => {
		collector?.close();
		await stage?.close();
		await redis?.close();
		await postgres?.close();
	}, 60_000);
	beforeEach(() => {
		stage.reset();
		collector.reset();
	});

	/** A lane of 30 tasks: ten are held up in the worker, four are queued, and 16 are yet to be delivered. */
	async function underWay() {
		const lane = await Lane.publish(stage, collector, { held: true });
		const tasks = lane.finishedTasks(30);
		const deliver = async (some: string[]) =>
			await Promise.all(some.map(async (taskId) => await lane.deliver(taskId, lane.addresses)));
		const early = tasks.slice(0, 14);
		await deliver(early);
		await collector.untilHeld(10);
		return { lane, deliver, early, late: tasks.slice(14) };
	}

	test('Redis is restarted', async () => {
		const { lane, deliver, late } = await underWay();
		await redis.stop('SIGTERM');
		const delivering = deliver(late);
		await sleep(DOWN_MS);
		await redis.start();
		await delivering;
		collector.openBarrier();
		const account = await lane.settle('Redis is restarted');
		expect(account).toMatchObject({ runs: 30, duplicates: 0, losses: 0 });
	}, 240_000);

	test('PostgreSQL is restarted', async () => {
		const { lane, deliver, late } = await underWay();
		await postgres.stop('SIGINT');
		const delivering = deliver(late);
		await sleep(DOWN_MS);
		await postgres.start();
		await delivering;
		collector.openBarrier();
		const account = await lane.settle('PostgreSQL is restarted');
		expect(account).toMatchObject({ runs: 30, duplicates: 0, losses: 0 });
	}, 240_000);

	test('PostgreSQL is away while executions go on: those that were lost are started by another delivery', async () => {
		const { lane, deliver, early, late } = await underWay();
		await postgres.stop('SIGINT');
		collector.openBarrier();
		await sleep(DOWN_MS);
		await postgres.start();
		await deliver(late);
		await collector.settle(26);
		const account = await lane.settle('PostgreSQL is away while executions go on', {
			mayHang: true,
		});
		expect(account).toMatchObject({ duplicates: 0 });
		expect(account.losses).toBeLessThanOrEqual(4);

		// As after ten minutes: it has forgotten whose executions n8n had stored.
		await stage.cluster.webhooks[0]?.kill();
		await stage.cluster.restartWebhook(0);
		await deliver([...early, ...late]);
		const after = await lane.settle('… and all are delivered again', { mayHang: true });
		expect(after).toMatchObject({ runs: 30, duplicates: 0, losses: 0 });
	}, 300_000);

	needing('workersAfterRedisLost', 'A Redis that keeps nothing').test(
		'Redis is restarted and has kept nothing: those that were queued can be retried from the list',
		async () => {
			const { lane, deliver, late } = await underWay();
			await redis.stop('SIGTERM');
			redis.loseData();
			const delivering = deliver(late);
			await sleep(DOWN_MS);
			await redis.start();
			await delivering;
			collector.openBarrier();
			await collector.settle(26);
			const account = await lane.settle('Redis is restarted and has kept nothing');
			expect(account).toMatchObject({ executions: { new: 4 }, runs: 26, duplicates: 0, losses: 4 });

			// n8n looks for such executions when it starts, and every three hours.
			await stage.killAndRestart();
			while (stage.cluster.executions(lane.workflowId).crashed !== 4) await sleep(200);
			await lane.retryCrashed();
			const after = await lane.settle('… and they are retried from the list');
			expect(after).toMatchObject({ runs: 30, duplicates: 0, losses: 0 });
		},
		300_000,
	);
});
