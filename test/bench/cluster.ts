import { execFileSync } from 'node:child_process';

import autocannon from 'autocannon';

import { type Cluster, LOOK_EVERY_MS, missingForQueueMode } from '../e2e/cluster';
import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackToken';
import { node, Stage } from '../e2e/stage';
import { HOST } from '../n8n/ports';
import { WHOLE_MINUTE } from '../n8n/settings';
import { until } from '../n8n/until';
import { type Bench, FOREVER_MS } from './bench';
import { callbacksAtOnce, postOften } from './calls';
import { openOurs, openWebhook } from './entrances';
import type { BenchOptions } from './options';
import { type Row, rowsOf } from './results';
import { suspendingNode } from './suspended';
import { Usage } from './usage';

/** Workers, and as many webhook processors. */
const SIZES = [1, 2, 4];
const QUICK_SIZES = [1];

const CALLBACKS = 200;
const SUSPENDED = 100;
const QUICK = { callbacks: 20, suspended: 10 };

const CONNECTIONS = 10;
const LONGEST_MS = 15 * 60_000;

const slug = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

/** CPU time by process, milliseconds. */
type Cpu = Record<string, number>;

/**
 * Queue mode with more and more processes: what a callback and a suspended execution cost each of them and the
 * database, with n8n's own Webhook node as the measure. CPU times add up on larger machines; where this one's cores
 * end, nothing more is to be learned of the time.
 */
export async function measureCluster(options: BenchOptions, log: Bench['log']): Promise<Row[]> {
	const missing = missingForQueueMode();
	if (missing !== undefined) throw new Error(`A cluster cannot be measured: ${missing}.`);
	const rows: Row[] = [];
	for (const size of options.quick ? QUICK_SIZES : SIZES) {
		rows.push(...(await measureSize(size, options, log)));
	}
	return rows;
}

async function measureSize(
	size: number,
	{ quick }: BenchOptions,
	log: Bench['log'],
): Promise<Row[]> {
	const stage = await Stage.openInQueueMode({
		env: WHOLE_MINUTE,
		workers: size,
		webhooks: size,
	});
	try {
		const { cluster } = stage;
		const calls = quick ? QUICK.callbacks : CALLBACKS;
		const runs = quick ? QUICK.suspended : SUSPENDED;
		const cpu = () => cpuOf(stage, cluster);
		const rows: Row[] = [];
		const note = (
			column: string,
			what: string,
			each: number,
			before: Cpu,
			after: Cpu,
			perSecond: number,
		) => {
			const names = Object.keys(after);
			const used = (name: string) => ((after[name] ?? 0) - (before[name] ?? 0)) / each;
			const shares = names.map((name) => `${name} ${used(name).toFixed(0)} ms`).join(', ');
			log(`${size} + ${size}, ${column}, ${what}: ${perSecond.toFixed(1)}/s, ${shares}`);
			const row = rowsOf(slug(`cluster-${size}-${what}-${column}`), `${size} + ${size}, ${column}`);
			const all = names.reduce((sum, name) => sum + used(name), 0);
			rows.push(
				...names.map((name) => row(slug(name), `${what}, CPU of ${name}`, 'ms', used(name))),
				row('all', `${what}, CPU of all`, 'ms', all),
				row('rate', `${what}, a second`, '/s', perSecond),
			);
		};

		const ours = await openOurs(stage);
		const entrances = {
			ours,
			"n8n's Webhook node": await openWebhook(stage, 'Webhook'),
		};
		for (const [name, { workflowId, path, trigger }] of Object.entries(entrances)) {
			const urls = cluster.webhooks.map(({ url }) =>
				trigger === ours.trigger ? callbackAddress(url + path, stage.service.apiKey) : url + path,
			);
			const call = async (count: number) => {
				const startedAt = performance.now();
				const tasks = stage.finishedTasks(count);
				await Promise.all(
					urls.map(async (url, index) => {
						const own = tasks.filter((_, at) => at % urls.length === index);
						await deliverAll(url, own);
					}),
				);
				await cluster.settle(workflowId);
				return count / ((performance.now() - startedAt) / 1000);
			};
			// The first calls of each process are slower than all later ones.
			await call(5 * size);
			const before = cpu();
			const perSecond = await call(calls);
			note(name, 'A callback', calls, before, cpu(), perSecond);
		}

		const suspended = await openSuspended(stage);
		await runSuspended(stage, cluster, suspended, 2 * size);
		const before = cpu();
		const perSecond = await runSuspended(stage, cluster, suspended, runs);
		note('ours', 'A suspended run', runs, before, cpu(), perSecond);
		const row = rowsOf(`cluster-${size}`, `${size} + ${size}, ours`);
		const what = 'An execution of a callback in the database';
		rows.push(row('execution-bytes', what, 'bytes', storedBytes(cluster)));
		return rows;
	} finally {
		await stage.close();
	}
}

const openSuspended = async (stage: Stage) =>
	await openWebhook(stage, 'Suspended', [
		suspendingNode(stage),
		node('n8n-nodes-base.noOp', 'After', {}),
	]);

/** @returns executions a second, from the first start to the end of the last one */
async function runSuspended(
	{ service }: Stage,
	cluster: Cluster,
	{ workflowId, path }: { workflowId: string; path: string },
	count: number,
): Promise<number> {
	service.clear();
	service.configure({ latencyMs: FOREVER_MS });
	const ended = cluster.executions(workflowId).success ?? 0;
	const startedAt = performance.now();
	const url = `${cluster.webhooks[0]?.url}${path}`;
	await postOften(url, count, CONNECTIONS);
	const suspended = () => (cluster.executions(workflowId).waiting ?? 0) >= count;
	const areAll = () => service.tasks.size >= count && suspended();
	await until(`${count} runs to be suspended`, LONGEST_MS, areAll, LOOK_EVERY_MS);
	for (const taskId of service.tasks.keys()) service.complete(taskId);
	const haveEnded = () => (cluster.executions(workflowId).success ?? 0) >= ended + count;
	await until(`${count} runs to end`, LONGEST_MS, haveEnded, LOOK_EVERY_MS);
	service.resetSettings();
	return count / ((performance.now() - startedAt) / 1000);
}

async function deliverAll(url: string, taskIds: string[]): Promise<void> {
	const { statusCodeStats } = await autocannon(callbacksAtOnce(url, taskIds));
	const answered = statusCodeStats?.['200']?.count ?? 0;
	if (answered !== taskIds.length) {
		throw new Error(`Of ${taskIds.length} calls ${answered} were answered 200.`);
	}
}

function cpuOf({ n8n }: Stage, cluster: Cluster): Cpu {
	const of = (pids: number[]) => pids.reduce((sum, pid) => sum + cpuMs(pid), 0);
	const backends = cluster.query(
		'select pid from pg_stat_activity where datname = current_database()',
	);
	const redis = /process_id:(\d+)/.exec(
		execFileSync('redis-cli', ['-h', HOST, 'info', 'server']).toString(),
	)?.[1];
	return {
		'the main process': of([n8n.pid]),
		'the webhook processors': of(cluster.webhooks.map(({ pid }) => pid)),
		'the workers': of(cluster.workers.map(({ pid }) => pid)),
		PostgreSQL: of(backends.map(Number)),
		Redis: of([Number(redis)]),
	};
}

/** 0 for a process that has ended meanwhile, such as the connection that asked. */
function cpuMs(pid: number): number {
	try {
		return new Usage(pid).cpuMs();
	} catch {
		return 0;
	}
}

/** What one stored execution takes with its indexes; those of callbacks are by far the most. */
function storedBytes(cluster: Cluster): number {
	const [size = ''] = cluster.query(
		"select (pg_total_relation_size('execution_entity') + pg_total_relation_size('execution_data'))::float8 / greatest(1, (select count(*) from execution_entity))",
	);
	return Number(size);
}
