import type { INode } from 'n8n-workflow';
import { median } from 'simple-statistics';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/estimateCost';
import { type Collector, withCollector } from '../e2e/collector';
import { node, type Stage } from '../e2e/stage';
import { until } from '../n8n/until';
import { requestsWithKey } from './batchWorkflows';
import { type Bench, FOREVER_MS } from './bench';
import { postOften } from './calls';
import { openWebhook } from './entrances';
import { limitOf, type Row, rowsBeside, rowsOf } from './results';

const EXECUTIONS = 300;
const QUICK_EXECUTIONS = 30;

/** Resumed one after the other, for the time that one takes; the others go side by side. */
const ONE_BY_ONE = 30;
const CONNECTIONS = 10;

/** So that the look itself delays nothing. */
const LOOK_EVERY_MS = 5;
const LONGEST_MS = 15 * 60_000;

interface Measured {
	/** n8n's memory with all executions suspended, above before. */
	memoryMiB: number;
	/** From the task's end to the node behind, each. */
	resumeMs: number[];
	/** Executions resumed a second, with ten callbacks under way. */
	perSecond: number;
	/** n8n's CPU for one execution from its start to its end. */
	cpuMsEach: number;
	/** Reads of the service for each execution. */
	readsEach: number;
}

/** Suspended executions: ours, and the Wait node with a hand-made request, which believes any call. */
export async function measureSuspended(bench: Bench): Promise<Row[]> {
	const count = bench.options.quick ? QUICK_EXECUTIONS : EXECUTIONS;
	return await withCollector(async (collector) => {
		// Long runs of which each has hundreds of executions: once is enough.
		const ours = await measure(bench, collector, count, 'ours', await oursBehind(bench));
		const peer = await measure(bench, collector, count, 'the Wait node', await waitBehind(bench));
		const rowOf = rowsOf('suspended', `${count.toLocaleString('en')} suspended executions`);
		const row = rowsBeside(rowOf, [ours], "n8n's Wait node, any call resumes", [peer]);
		const fewest = limitOf('one before it is suspended, one of the finished task', 2);
		return [
			row('memory', "n8n's memory, above before", 'MiB', ({ memoryMiB }) => memoryMiB),
			row('resume', 'callback until the node behind', 'ms', ({ resumeMs }) => resumeMs),
			row('rate', 'resumed a second', '/s', ({ perSecond }) => perSecond),
			row('cpu', "n8n's CPU each, start to end", 'ms', ({ cpuMsEach }) => cpuMsEach),
			row('reads', 'reads of the service each', '', ({ readsEach }) => readsEach, fewest),
		];
	});
}

/** Suspends its execution until a task that does not finish by itself is finished. */
export const suspendingNode = (stage: Stage): INode =>
	stage.mediaNode('mediaGeneration', 'Generate', {
		resource: 'image',
		operation: 'generate',
		model: IMAGE_MODEL,
		prompt: 'A lighthouse',
		options: { suspendAfter: 0 },
	});

/** The nodes between the webhook that starts an execution and the node that reports its end. */
async function oursBehind({ stage }: Bench): Promise<INode[]> {
	return [suspendingNode(stage)];
}

async function waitBehind({ stage }: Bench): Promise<INode[]> {
	const request = await requestsWithKey(stage);
	const body = `{ model: '${IMAGE_MODEL}', input: { prompt: 'A lighthouse' }, webhook_url: $execution.resumeUrl }`;
	const parameters = { resume: 'webhook', httpMethod: 'POST', options: {} };
	const wait: INode = {
		...node('n8n-nodes-base.wait', 'Wait', parameters, 1.1),
		webhookId: crypto.randomUUID(),
	};
	return [request.create(body), wait];
}

async function measure(
	{ stage, usage, log }: Bench,
	collector: Collector,
	count: number,
	name: string,
	between: INode[],
): Promise<Measured> {
	const { service } = stage;
	const behind = [...between, collector.node('After')];
	const { url } = await openWebhook(stage, `Suspended: ${name}`, behind);

	service.clear();
	service.configure({ latencyMs: FOREVER_MS });
	collector.reset();
	await usage.quiet();
	const memory = usage.residentMiB();
	const cpu = usage.cpuMs();
	log(`suspending ${count} executions, ${name} …`);
	await postOften(url, count, CONNECTIONS);
	await until(`${count} tasks`, LONGEST_MS, () => service.tasks.size === count);
	await usage.quiet();
	const memoryMiB = usage.residentMiB() - memory;

	const tasks = [...service.tasks.keys()];
	const alone = tasks.splice(0, Math.min(ONE_BY_ONE, count / 2));
	log(`resuming them, ${name} …`);
	const resumeMs: number[] = [];
	for (const taskId of alone) {
		const seen = collector.times.length;
		const at = Date.now();
		service.complete(taskId);
		const isResumed = () => collector.times.length > seen;
		await until(`execution of ${taskId} to be resumed`, LONGEST_MS, isResumed, LOOK_EVERY_MS);
		resumeMs.push((collector.times[seen] ?? NaN) - at);
	}
	const resumedAlone = collector.times.length;
	const startedAt = performance.now();
	for (const [index, taskId] of tasks.entries()) {
		const resumed = () => collector.times.length - resumedAlone;
		const isFree = () => index - resumed() < CONNECTIONS;
		await until('an execution to be resumed', LONGEST_MS, isFree, LOOK_EVERY_MS);
		service.complete(taskId);
	}
	const areAll = () => collector.times.length >= count;
	await until('all executions to be resumed', LONGEST_MS, areAll, LOOK_EVERY_MS);
	const seconds = (performance.now() - startedAt) / 1000;
	await usage.quiet();
	const reads = service.requests.filter(({ host, method }) => host === 'api' && method === 'GET');
	log(`${name}: resumed in ${median(resumeMs)} ms, ${(tasks.length / seconds).toFixed(1)}/s`);
	return {
		memoryMiB,
		resumeMs,
		perSecond: tasks.length / seconds,
		cpuMsEach: (usage.cpuMs() - cpu) / count,
		readsEach: reads.length / count,
	};
}
