import type { INode } from 'n8n-workflow';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/prices';
import { type Collector, withCollector } from '../../test/e2e/collector';
import { node, type Stage, webhook } from '../../test/e2e/stage';
import { until } from '../../test/n8n/until';
import { requestsWithKey } from './batchWorkflows';
import { type Bench, callOften, FOREVER_MS, publish } from './bench';
import { type Row, rowOf } from './results';
import { median } from './statistics';

const EXECUTIONS = 300;
const QUICK_EXECUTIONS = 30;

/** Resumed one after the other, for the time that one takes; the others go side by side. */
const ONE_BY_ONE = 30;
const AT_ONCE = 10;

/** So that the look itself delays nothing. */
const LOOK_EVERY_MS = 5;
const LONGEST_MS = 15 * 60_000;

/** Suspended executions: ours, and the Wait node with a hand-made request, which believes any call. */
export async function measureSuspended(bench: Bench): Promise<Row[]> {
	const { stage, options } = bench;
	const count = options.quick ? QUICK_EXECUTIONS : EXECUTIONS;
	return await withCollector(async (collector) => {
		// Long runs of which each has hundreds of executions: once is enough.
		const ours = await measure(bench, collector, count, [suspendingNode(stage)]);
		const theirs = await measure(bench, collector, count, await waitNodes(stage));
		const row = (id: string, what: string, key: 'resumeMs' | 'cpuMsEach') => {
			const peer = { name: "n8n's Wait node, any call resumes", values: theirs[key] };
			const all = `${count.toLocaleString('en')} suspended executions: ${what}`;
			return rowOf(`suspended-${id}`, all, 'ms', ours[key], { peer });
		};
		return [
			row('resume', 'callback until the node behind', 'resumeMs'),
			row('cpu', "n8n's CPU each, start to end", 'cpuMsEach'),
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
		downloadResults: false,
		options: { suspendAfter: 0 },
	});

/** The same with n8n's own nodes. */
async function waitNodes(stage: Stage): Promise<INode[]> {
	const request = await requestsWithKey(stage);
	const body = `{ model: '${IMAGE_MODEL}', input: { prompt: 'A lighthouse' }, webhook_url: $execution.resumeUrl }`;
	const parameters = { resume: 'webhook', httpMethod: 'POST', options: {} };
	const wait = node('n8n-nodes-base.wait', 'Wait', parameters, 1.1);
	return [request.create(body), { ...wait, webhookId: crypto.randomUUID() }];
}

/**
 * @param between the nodes between the webhook that starts an execution and the node that reports its end
 * @returns from a task's end to the node behind, each; n8n's CPU for one execution from its start to its end
 */
async function measure(
	{ stage, usage, log }: Bench,
	collector: Collector,
	count: number,
	between: INode[],
): Promise<{ resumeMs: number[]; cpuMsEach: number[] }> {
	const { service } = stage;
	const name = between.at(-1)?.name ?? '';
	const behind = [...between, collector.node('After')];
	const { url } = await publish(stage, webhook(`Start: ${name}`), behind);

	service.clear();
	service.configure({ latencyMs: FOREVER_MS });
	collector.reset();
	await usage.quiet();
	const cpu = usage.cpuMs();
	log(`suspending ${count} executions, ${name} …`);
	await callOften(url, count);
	await until(`${count} tasks`, LONGEST_MS, () => service.tasks.size === count);
	await usage.quiet();

	const { times } = collector;
	const untilResumed = async (least: number) => {
		const areResumed = () => times.length >= least;
		await until(`${least} executions to be resumed`, LONGEST_MS, areResumed, LOOK_EVERY_MS);
	};
	const alone = Math.min(ONE_BY_ONE, count / 2);
	const resumeMs: number[] = [];
	for (const [index, taskId] of [...service.tasks.keys()].entries()) {
		// Those before it: all of them, or all but the ones that go side by side.
		await untilResumed(index < alone ? index : Math.max(alone, index - AT_ONCE + 1));
		const at = Date.now();
		service.complete(taskId);
		if (index >= alone) continue;
		await untilResumed(index + 1);
		resumeMs.push((times[index] ?? NaN) - at);
	}
	await untilResumed(count);
	await usage.quiet();
	log(`${name}: resumed in ${median(resumeMs)} ms`);
	return { resumeMs, cpuMsEach: [(usage.cpuMs() - cpu) / count] };
}
