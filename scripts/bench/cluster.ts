import { execFileSync } from 'node:child_process';

import { node, Stage, webhook } from '../../test/e2e/stage';
import { HOST } from '../../test/n8n/ports';
import { WHOLE_MINUTE } from '../../test/n8n/settings';
import { until } from '../../test/n8n/until';
import { type BenchOptions, callOften, FOREVER_MS, type Log, publish } from './bench';
import { openOurs } from './callback';
import { type Row, rowOf } from './results';
import { suspendingNode } from './suspended';
import { Usage } from './usage';

const LONGEST_MS = 15 * 60_000;

/** A rate is measured to the last look. */
const LOOK_EVERY_MS = 150;

/**
 * Queue mode with more and more processes: what a callback and a suspended execution cost all of them and the database.
 * CPU times add up on larger machines; where this one's cores end, nothing more is to be learned of the time.
 */
export async function measureCluster({ quick }: BenchOptions, log: Log): Promise<Row[]> {
	const rows: Row[] = [];
	// Workers, and as many webhook processors.
	for (const size of quick ? [1] : [1, 2, 4]) {
		const stage = await Stage.openInQueueMode({ env: WHOLE_MINUTE, workers: size, webhooks: size });
		try {
			const works = [
				{ id: 'callback', what: 'a callback', work: await callbacks(stage), count: 200 },
				{ id: 'suspended', what: 'a suspended run', work: await suspendedRuns(stage), count: 100 },
			];
			for (const { id, what, work, count } of works) {
				// The first ones of each process are slower than all later ones.
				await work(5 * size);
				const before = cpuOf(stage);
				const measured = quick ? count / 10 : count;
				await work(measured);
				const each = (cpuOf(stage) - before) / measured;
				log(`${size} + ${size}, ${what}: ${each.toFixed(0)} ms`);
				rows.push(
					rowOf(`cluster-${size}-${id}`, `${size} + ${size}: CPU of all, ${what}`, 'ms', [each]),
				);
			}
		} finally {
			await stage.close();
		}
	}
	return rows;
}

/** @returns what delivers so many callbacks, an equal part to each webhook processor, and waits for their executions */
async function callbacks(stage: Stage): Promise<(count: number) => Promise<void>> {
	const { webhooks } = stage.cluster;
	const { workflowId, url } = await openOurs(stage);
	const urls = webhooks.map((processor) => url.replace(stage.webhookUrl, processor.url));
	return async (count) => {
		const tasks = stage.finishedTasks(count);
		const partOf = (index: number) => tasks.filter((_, at) => at % urls.length === index);
		await Promise.all(urls.map(async (each, index) => await callOften(each, partOf(index))));
		await stage.cluster.settle(workflowId);
	};
}

/** @returns what starts so many runs, ends their tasks when all are suspended, and waits for the end of the runs */
async function suspendedRuns(stage: Stage): Promise<(count: number) => Promise<void>> {
	const { service, cluster } = stage;
	const after = node('n8n-nodes-base.noOp', 'After', {});
	const row = [suspendingNode(stage), after];
	const { workflowId, url } = await publish(stage, webhook('Suspended'), row);
	return async (count) => {
		service.clear();
		service.configure({ latencyMs: FOREVER_MS });
		const executions = (status: string) => cluster.executions(workflowId)[status] ?? 0;
		const ended = executions('success');
		await callOften(url, count);
		const areSuspended = () => service.tasks.size >= count && executions('waiting') >= count;
		await until(`${count} runs to be suspended`, LONGEST_MS, areSuspended, LOOK_EVERY_MS);
		for (const taskId of service.tasks.keys()) service.complete(taskId);
		const haveEnded = () => executions('success') >= ended + count;
		await until(`${count} runs to end`, LONGEST_MS, haveEnded, LOOK_EVERY_MS);
		service.resetSettings();
	};
}

/** CPU time of n8n's processes, of PostgreSQL and of Redis so far, milliseconds. */
function cpuOf({ n8n, cluster }: Stage): number {
	const backends = cluster.query(
		'select pid from pg_stat_activity where datname = current_database()',
	);
	const redis = execFileSync('redis-cli', ['-h', HOST, 'info', 'server'], { encoding: 'utf8' });
	const pids = [n8n, ...cluster.workers, ...cluster.webhooks].map(({ pid }) => pid);
	return [...pids, ...backends, /process_id:(\d+)/.exec(redis)?.[1]].reduce(
		(sum: number, pid) => sum + cpuMs(Number(pid)),
		0,
	);
}

/** 0 for a process that has ended meanwhile, such as the connection that asked. */
function cpuMs(pid: number): number {
	try {
		return new Usage(pid).cpuMs();
	} catch {
		return 0;
	}
}
