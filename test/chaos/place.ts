import { copyFileSync, mkdirSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { Cluster } from '../e2e/cluster';
import { OwnPostgres, OwnRedis } from '../e2e/servers';
import { Stage } from '../e2e/stage';
import { until } from '../n8n/client';
import { querySqlite } from '../n8n/database';
import { N8nStartError } from '../n8n/process';
import { WHOLE_MINUTE } from '../n8n/settings';

/** Shorter than the ten seconds after which n8n ends itself where it has no Redis. */
const DOWN_MS = 3_000;

/** Longer than the pause before a check of a short wait: at n8n's next start all of them are due. */
const LONG_DOWN_MS = 120_000;

/** Something that can be done to a running n8n. */
export interface Fault {
	name: string;
	strike: () => Promise<void>;
}

/** A real n8n that things are done to. */
export interface Place {
	stage: Stage;
	/** Where executions can be started from outside. */
	urls: () => string[];
	logFiles: () => string[];
	faults: Fault[];
	/** Runs one statement on n8n's database and returns its rows, the columns joined by `|`. */
	query: (sql: string) => Promise<string[]>;
	close: () => Promise<void>;
}

const LOGS = resolve(__dirname, '../artefacts/chaos');

/** Does something with an n8n of its own, and keeps what it has logged in test/artefacts/chaos. */
export async function at<T>(place: Promise<Place>, work: (place: Place) => Promise<T>): Promise<T> {
	const made = await place;
	try {
		return await work(made);
	} finally {
		// What n8n said, for whoever looks into a run that did not come out.
		mkdirSync(LOGS, { recursive: true });
		for (const path of made.logFiles()) copyFileSync(path, join(LOGS, basename(path)));
		await made.close();
	}
}

/** An address at which no service reaches this n8n. */
const UNREACHABLE = { WEBHOOK_URL: 'http://n8n.invalid/' };

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
	const stage = await Stage.open({ ...WHOLE_MINUTE, ...(isReachable ? {} : UNREACHABLE) });
	return {
		stage,
		urls: () => [stage.n8n.url],
		logFiles: () => [stage.n8n.logFile],
		faults: [
			{
				name: 'n8n',
				strike: async () => await patiently(async () => await stage.killAndRestart()),
			},
			{
				name: 'n8n, for two minutes',
				strike: async () => {
					await stage.kill();
					await sleep(LONG_DOWN_MS);
					await patiently(async () => await stage.restart());
				},
			},
		],
		query: async (sql) =>
			(await querySqlite(stage.n8n, sql)).map((row) => Object.values(row).join('|')),
		close: async () => await stage.close(),
	};
}

/** Queue mode: the main process, workers and webhook processors, on a PostgreSQL and a Redis of their own. */
export async function queueMode(workers: number, webhooks: number): Promise<Place> {
	const postgres = await OwnPostgres.make();
	const redis = await OwnRedis.make();
	await Promise.all([postgres.start(), redis.start()]);
	const cluster = await Cluster.prepare(
		{ postgresPort: postgres.port, redisPort: redis.port },
		WHOLE_MINUTE,
	);
	const stage = await Stage.open(cluster.env);
	await cluster.start(stage.userFolder, workers, webhooks);
	const logFiles = new Set<string>();
	const noteLogs = () =>
		[stage.n8n, ...cluster.workers, ...cluster.webhooks].forEach((n8n) =>
			logFiles.add(n8n.logFile),
		);
	const restart = async (server: OwnPostgres | OwnRedis, signal: NodeJS.Signals) => {
		await server.stop(signal);
		await sleep(DOWN_MS);
		await server.start();
	};
	let struck = 0;
	return {
		stage,
		urls: () => cluster.webhooks.map(({ url }) => url),
		logFiles: () => {
			noteLogs();
			return [...logFiles];
		},
		faults: [
			{
				name: 'worker',
				strike: async () => {
					noteLogs();
					const [worker] = cluster.workers;
					if (worker !== undefined) await cluster.kill(worker);
					await patiently(async () => await cluster.addWorker());
				},
			},
			{
				name: 'webhook processor',
				strike: async () => {
					const index = struck++ % cluster.webhooks.length;
					await cluster.webhooks[index]?.kill();
					await patiently(async () => await cluster.restartWebhook(index));
				},
			},
			{
				name: 'main',
				strike: async () => await patiently(async () => await stage.killAndRestart()),
			},
			{ name: 'Redis', strike: async () => await restart(redis, 'SIGTERM') },
			{ name: 'PostgreSQL', strike: async () => await restart(postgres, 'SIGINT') },
		],
		query: async (sql) => await Promise.resolve(cluster.query(sql)),
		close: async () => {
			await cluster.close();
			await stage.close();
			await redis.close();
			await postgres.close();
		},
	};
}

const PATIENCE_MS = 600_000;

/**
 * Waits until nothing runs any more: what is not finished is suspended.
 *
 * @param tasks how many the runs create
 */
export async function untilSuspended({ stage, query }: Place, tasks: number): Promise<void> {
	const areCreated = () => stage.service.tasks.size >= tasks;
	await until(`${tasks} tasks to be created`, PATIENCE_MS, areCreated);
	await until('all executions to be suspended', PATIENCE_MS, async () => {
		const [active] = await query(
			"select count(*) from execution_entity where status in ('new', 'running')",
		);
		return active === '0';
	});
}
