import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';

import { freePort, HOST } from '../n8n/ports';
import { type N8nProcess, startN8n } from '../n8n/process';

const POSTGRES = { host: HOST, port: '5432', user: 'postgres' };

/** Runs one statement on the machine's PostgreSQL. */
function sql(statement: string): void {
	const { host, port, user } = POSTGRES;
	execFileSync('psql', ['-qh', host, '-p', port, '-U', user, '-c', statement], {
		stdio: ['ignore', 'ignore', 'pipe'],
		timeout: 20_000,
	});
}

/** Why queue mode cannot be tested on this machine, in one line; undefined where it can. */
export function missingForQueueMode(): string | undefined {
	try {
		sql('select 1');
	} catch {
		return `no PostgreSQL on ${HOST}:5432`;
	}
	try {
		execFileSync('redis-cli', ['-h', HOST, 'ping'], { timeout: 5_000, stdio: 'pipe' });
		return undefined;
	} catch {
		return `no Redis on ${HOST}:6379`;
	}
}

/** The workers and webhook processors of an n8n in queue mode, with a database and a key prefix of their own. */
export class Cluster {
	private readonly name = `media_generation_e2e_${randomBytes(4).toString('hex')}`;

	readonly workers: N8nProcess[] = [];

	readonly webhooks: N8nProcess[] = [];

	private constructor(readonly env: Record<string, string>) {}

	/** Makes the database, and says with which environment the main process is to be started. */
	static async prepare(): Promise<Cluster> {
		const cluster = new Cluster({});
		const { name } = cluster;
		sql(`create database ${name}`);
		// Callbacks go to the first webhook processor, as a load balancer would send them.
		const port = await freePort();
		Object.assign(cluster.env, {
			EXECUTIONS_MODE: 'queue',
			OFFLOAD_MANUAL_EXECUTIONS_TO_WORKERS: 'true',
			N8N_ENCRYPTION_KEY: name,
			DB_TYPE: 'postgresdb',
			DB_POSTGRESDB_HOST: POSTGRES.host,
			DB_POSTGRESDB_PORT: POSTGRES.port,
			DB_POSTGRESDB_USER: POSTGRES.user,
			DB_POSTGRESDB_DATABASE: name,
			QUEUE_BULL_REDIS_HOST: HOST,
			QUEUE_BULL_PREFIX: name,
			N8N_REDIS_KEY_PREFIX: name,
			WEBHOOK_URL: `http://${HOST}:${port}/`,
		});
		cluster.firstWebhookPort = port;
		return cluster;
	}

	private firstWebhookPort = 0;

	/** Starts the further processes, once the main one has set up the database. */
	async start(userFolder: string, workers: number, webhooks: number): Promise<void> {
		const { env } = this;
		for (let index = 0; index < webhooks; index++) {
			const port = index === 0 ? this.firstWebhookPort : await freePort();
			this.webhooks.push(await startN8n({ userFolder, env, command: 'webhook', port }));
		}
		for (let index = 0; index < workers; index++) {
			this.workers.push(await startN8n({ userFolder, env, command: 'worker' }));
		}
	}

	/** Ends the processes and removes what they left. */
	async close(): Promise<void> {
		await Promise.all([...this.workers, ...this.webhooks].map(async (n8n) => await n8n.kill()));
		sql(`drop database if exists ${this.name} with (force)`);
		const keys = execFileSync('redis-cli', ['-h', HOST, '--scan', '--pattern', `*${this.name}*`])
			.toString()
			.split('\n')
			.filter(Boolean);
		if (keys.length > 0) execFileSync('redis-cli', ['-h', HOST, 'del', ...keys]);
	}
}
