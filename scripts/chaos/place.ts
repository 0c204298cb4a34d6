import { copyFileSync, mkdirSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { MINUTE, SECOND } from '../../test/durations';
import { Cluster } from '../../test/e2e/cluster';
import { type Database, PostgresDatabase } from '../../test/e2e/database';
import { OwnPostgres, OwnRedis } from '../../test/e2e/servers';
import { Stage } from '../../test/e2e/stage';
import { type N8nProcess, N8nStartError } from '../../test/n8n/process';
import { WHOLE_MINUTE } from '../../test/n8n/settings';

/** A real n8n that things are done to. */
export interface Place {
	stage: Stage;
	database: Database;
	/** The processes of n8n that run now. */
	processes: () => N8nProcess[];
	/** Of processes that were seen so far. */
	logs: Set<string>;
	/** Where executions can be started from outside. */
	urls: () => string[];
	/** What can be done to this n8n. */
	faults: Record<string, () => Promise<void>>;
	close: () => Promise<void>;
}

/** @returns where all processes of n8n have logged that ran now, or when this was asked before */
export function logsOf({ processes, logs }: Place): string[] {
	for (const { logFile } of processes()) logs.add(logFile);
	return [...logs];
}

/** Does something with an n8n of its own, and keeps what it has logged in test/artefacts/chaos. */
export async function at<T>(place: Promise<Place>, work: (place: Place) => Promise<T>): Promise<T> {
	const made = await place;
	try {
		return await work(made);
	} finally {
		// What n8n said, for whoever looks into a run that did not come out.
		const folder = resolve(__dirname, '../../test/artefacts/chaos');
		mkdirSync(folder, { recursive: true });
		for (const path of logsOf(made)) copyFileSync(path, join(folder, basename(path)));
		await made.close();
	}
}

/** A machine that is busy may start an n8n too late for whoever waits for it. */
async function patiently(start: () => Promise<void>): Promise<void> {
	for (let tries = 3; ; tries--) {
		try {
			return await start();
		} catch (error) {
			if (!(error instanceof N8nStartError) || tries === 1) throw error;
		}
	}
}

/** One process on SQLite. */
export async function oneProcess(isReachable: boolean): Promise<Place> {
	const unreachable = { WEBHOOK_URL: 'http://n8n.invalid/' };
	const stage = await Stage.open({ ...WHOLE_MINUTE, ...(!isReachable && unreachable) });
	return {
		stage,
		database: stage.database,
		processes: () => [stage.n8n],
		logs: new Set(),
		urls: () => [stage.n8n.url],
		faults: {
			n8n: async () => await patiently(async () => await stage.killAndRestart()),
			'n8n, for two minutes': async () => {
				await stage.kill();
				// Longer than the pause before a check of a short wait: at n8n's next start all of them are due.
				await sleep(2 * MINUTE);
				await patiently(async () => await stage.restart());
			},
		},
		close: async () => await stage.close(),
	};
}

/** Queue mode: the main process, workers and webhook processors, on a PostgreSQL and a Redis of their own. */
export async function queueMode(workers: number, webhooks: number): Promise<Place> {
	const postgres = await OwnPostgres.make();
	const redis = await OwnRedis.make();
	await Promise.all([postgres.start(), redis.start()]);
	const servers = { postgresPort: postgres.port, redisPort: redis.port };
	const cluster = await Cluster.prepare(servers, WHOLE_MINUTE);
	// Without a cluster of its own: its main process is killed alone.
	const stage = await Stage.open(cluster.env);
	await cluster.start(stage.userFolder, workers, webhooks);
	const restart = async (server: OwnPostgres | OwnRedis, signal: NodeJS.Signals) => {
		await server.stop(signal);
		// Shorter than the ten seconds after which n8n ends itself where it has no Redis.
		await sleep(3 * SECOND);
		await server.start();
	};
	let struck = 0;
	return {
		stage,
		database: new PostgresDatabase((statements) => cluster.query(statements)),
		processes: () => [stage.n8n, ...cluster.workers, ...cluster.webhooks],
		logs: new Set(),
		urls: () => cluster.webhooks.map(({ url }) => url),
		faults: {
			worker: async () => {
				const [worker] = cluster.workers;
				if (worker !== undefined) await cluster.kill(worker);
				await patiently(async () => await cluster.addWorker());
			},
			'webhook processor': async () => {
				const index = struck++ % cluster.webhooks.length;
				await cluster.webhooks[index]?.kill();
				await patiently(async () => await cluster.restartWebhook(index));
			},
			main: async () => await patiently(async () => await stage.killAndRestart()),
			Redis: async () => await restart(redis, 'SIGTERM'),
			PostgreSQL: async () => await restart(postgres, 'SIGINT'),
		},
		close: async () => {
			await cluster.close();
			await stage.close();
			await redis.close();
			await postgres.close();
		},
	};
}
