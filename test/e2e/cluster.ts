import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';

import { freePort, HOST } from '../n8n/ports';
import { type N8nProcess, startN8n } from '../n8n/process';
import { until } from '../n8n/until';

/** Ports on 127.0.0.1 of a PostgreSQL that lets the user `postgres` in without a password, and of a Redis. */
export interface Servers {
	postgresPort: number;
	redisPort: number;
}

/** n8n takes up to a minute to find out about a worker that was killed, and 30 s more to believe it. */
const SETTLE_LIMIT_MS = 180_000;

export const OF_THE_MACHINE: Servers = { postgresPort: 5432, redisPort: 6379 };

/** @returns the lines that a client program prints */
function linesOf(program: string, ...parameters: string[]): string[] {
	const output = execFileSync(program, parameters, { stdio: 'pipe', timeout: 20_000 });
	return output.toString().split('\n').filter(Boolean);
}

/** Runs one statement, and returns its rows, with their columns joined by `|`. */
export function sql({ postgresPort }: Servers, statement: string, database = 'postgres'): string[] {
	const connection = ['-h', HOST, '-p', String(postgresPort), '-U', 'postgres', '-d', database];
	return linesOf('psql', '-qAt', ...connection, '-c', statement);
}

const redis = ({ redisPort }: Servers, ...command: string[]): string[] =>
	linesOf('redis-cli', '-h', HOST, '-p', String(redisPort), ...command);

function unlessItAnswers(name: string, port: number, ask: () => unknown): string | undefined {
	try {
		ask();
		return undefined;
	} catch {
		return `no ${name} on ${HOST}:${port}`;
	}
}

/** Why nothing can be tested with PostgreSQL on this machine, in one line; undefined where it can. */
export const missingPostgres = (servers = OF_THE_MACHINE) =>
	unlessItAnswers('PostgreSQL', servers.postgresPort, () => sql(servers, 'select 1'));

/** Why queue mode cannot be tested on this machine, in one line; undefined where it can. */
export const missingForQueueMode = (servers = OF_THE_MACHINE) =>
	missingPostgres(servers) ??
	unlessItAnswers('Redis', servers.redisPort, () => redis(servers, 'ping'));

/** The workers and webhook processors of an n8n in queue mode, with a database and a key prefix of their own. */
export class Cluster {
	workers: N8nProcess[] = [];

	webhooks: N8nProcess[] = [];

	private userFolder = '';

	private constructor(
		private readonly servers: Servers,
		private readonly name: string,
		private readonly firstWebhookPort: number,
		readonly env: Record<string, string>,
	) {}

	/**
	 * Makes the database.
	 *
	 * @param env added to the environment of all processes
	 * @throws where PostgreSQL or Redis is missing
	 */
	static async prepare(servers = OF_THE_MACHINE, env: Record<string, string> = {}) {
		const missing = missingForQueueMode(servers);
		if (missing !== undefined) throw new Error(`n8n cannot run in queue mode: ${missing}.`);
		const name = `media_generation_e2e_${randomBytes(4).toString('hex')}`;
		sql(servers, `create database ${name}`);
		// Callbacks go to the first webhook processor, as a load balancer would send them.
		const firstWebhookPort = await freePort();
		return new Cluster(servers, name, firstWebhookPort, {
			EXECUTIONS_MODE: 'queue',
			OFFLOAD_MANUAL_EXECUTIONS_TO_WORKERS: 'true',
			N8N_ENCRYPTION_KEY: name,
			DB_TYPE: 'postgresdb',
			DB_POSTGRESDB_HOST: HOST,
			DB_POSTGRESDB_PORT: String(servers.postgresPort),
			DB_POSTGRESDB_USER: 'postgres',
			DB_POSTGRESDB_DATABASE: name,
			QUEUE_BULL_REDIS_HOST: HOST,
			QUEUE_BULL_REDIS_PORT: String(servers.redisPort),
			QUEUE_BULL_PREFIX: name,
			N8N_REDIS_KEY_PREFIX: name,
			WEBHOOK_URL: `http://${HOST}:${firstWebhookPort}/`,
			// A killed worker is noticed when its lock has run out: in a minute and a half by default.
			// On a busy machine a worker may not come round to renew it for 20 s. A job that it has fetched, and has no lock
			// of yet, is given up at the second look.
			QUEUE_WORKER_LOCK_DURATION: '40000',
			QUEUE_WORKER_LOCK_RENEW_TIME: '4000',
			QUEUE_WORKER_STALLED_INTERVAL: '20000',
			...env,
		});
	}

	/** Starts the further processes, once the main one has set up the database. */
	async start(userFolder: string, workers: number, webhooks: number): Promise<void> {
		this.userFolder = userFolder;
		await Promise.all([
			...Array.from({ length: webhooks }, async (_, index) => {
				const port = index === 0 ? this.firstWebhookPort : await freePort();
				this.webhooks.push(await this.startProcess('webhook', port));
			}),
			...Array.from({ length: workers }, async () => {
				this.workers.push(await this.startProcess('worker'));
			}),
		]);
		this.webhooks.sort((a) => (a.port === this.firstWebhookPort ? -1 : 1));
	}

	async kill(n8n: N8nProcess): Promise<void> {
		await n8n.kill();
		this.workers = this.workers.filter((other) => other !== n8n);
	}

	/** Shuts a worker down in order, and starts another one in its place. @param graceMs what it has time for */
	async replace(worker: N8nProcess, graceMs: number): Promise<void> {
		await worker.stop(graceMs);
		await this.kill(worker);
		await this.addWorker();
	}

	/** @param port of a worker that has ended, which comes back */
	async addWorker(port?: number): Promise<void> {
		this.workers.push(await this.startProcess('worker', port));
	}

	async restartWebhook(index: number): Promise<void> {
		this.webhooks[index] = await this.startProcess('webhook', this.webhooks[index]?.port);
	}

	/** Kills all of them, or shuts them down in order; `restart` brings them back. */
	async endAll(how: 'kill' | 'stop'): Promise<void> {
		await Promise.all([...this.workers, ...this.webhooks].map(async (n8n) => await n8n[how]()));
	}

	/** Starts all of them again, on the same ports. @param env put over the environment of before */
	async restart(env: Record<string, string> = {}): Promise<void> {
		Object.assign(this.env, env);
		const startAgain = async (command: 'worker' | 'webhook', ended: N8nProcess[]) =>
			await Promise.all(ended.map(async ({ port }) => await this.startProcess(command, port)));
		[this.workers, this.webhooks] = await Promise.all([
			startAgain('worker', this.workers),
			startAgain('webhook', this.webhooks),
		]);
	}

	private async startProcess(command: 'worker' | 'webhook', given?: number): Promise<N8nProcess> {
		const { userFolder } = this;
		const port = given ?? (await freePort());
		// A process that starts takes for crashed what its log of events has no end of, so each has a log of its own.
		const env = { ...this.env, N8N_EVENTBUS_LOGWRITER_LOGBASENAME: `n8nEventLog-${port}` };
		return await startN8n({ userFolder, env, command, port });
	}

	/**
	 * Puts executions that workers have taken back into the queue, as a Redis does that came back a moment older, after a power
	 * cut or a failover: then n8n runs them again, under the same id.
	 *
	 * @returns how many were with a worker
	 */
	putBack(executionIds: readonly string[]): number {
		let count = 0;
		const ask = (command: string, key: string, ...more: string[]) =>
			redis(this.servers, command, `${this.name}:jobs:${key}`, ...more);
		for (const job of ask('lrange', 'active', '0', '-1')) {
			const [data = ''] = ask('hget', job, 'data');
			const { executionId } = JSON.parse(data) as { executionId: string };
			if (!executionIds.includes(executionId)) continue;
			ask('del', `${job}:lock`);
			ask('lrem', 'active', '1', job);
			ask('rpush', 'wait', job);
			count++;
		}
		return count;
	}

	/** Runs one statement on n8n's database, and returns its rows, with their columns joined by `|`. */
	query(statement: string): string[] {
		return sql(this.servers, statement, this.name);
	}

	/** How many executions of a workflow n8n has stored, by their status. */
	executions(workflowId: string): Record<string, number> {
		const counts = this.query(
			`select status, count(*) from execution_entity where "workflowId" = '${workflowId}' group by status`,
		);
		const columns = counts.map((line) => line.split('|'));
		return Object.fromEntries(columns.map(([status, count]) => [status, Number(count)]));
	}

	executionIds(workflowId: string, status: string): string[] {
		return this.query(
			`select id from execution_entity where "workflowId" = '${workflowId}' and status = '${status}'`,
		);
	}

	/**
	 * Waits until nothing is queued and nothing of a workflow runs.
	 *
	 * @param options.mayHang not to wait for those that n8n says are running: it may never learn what became of them
	 */
	async settle(workflowId: string, { mayHang = false } = {}): Promise<Record<string, number>> {
		let queued = '';
		let executions: Record<string, number> = {};
		const what = () =>
			`nothing to be queued and active: ${queued}; executions: ${JSON.stringify(executions)}`;
		const jobs = ['wait', 'active'].map((list) => `${this.name}:jobs:${list}`);
		const count = "return redis.call('llen', KEYS[1]) + redis.call('llen', KEYS[2])";
		const isSettled = () => {
			[queued = ''] = redis(this.servers, 'eval', count, '2', ...jobs);
			executions = this.executions(workflowId);
			const runs = !mayHang && executions.running !== undefined;
			return !runs && queued === '0';
		};
		await until(what, SETTLE_LIMIT_MS, isSettled);
		return executions;
	}

	async close(): Promise<void> {
		await this.endAll('kill');
		sql(this.servers, `drop database if exists ${this.name} with (force)`);
		const keys = redis(this.servers, '--scan', '--pattern', `*${this.name}*`);
		if (keys.length > 0) redis(this.servers, 'del', ...keys);
	}
}
