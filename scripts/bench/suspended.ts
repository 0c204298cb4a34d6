import { setTimeout as sleep } from 'node:timers/promises';

import type { IDataObject, INode } from 'n8n-workflow';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/prices';
import { type Collector, withCollector } from '../../test/e2e/collector';
import { node, type Stage, webhook } from '../../test/e2e/stage';
import { until } from '../../test/n8n/until';
import { type Bench, callOften, publish } from './bench';
import { type Row, rowOf } from './results';

/** Ours and the others' in turn, so many times. */
const ROUNDS = 2;

const EXECUTIONS = 100;
const QUICK_EXECUTIONS = 30;

const LONGEST_MS = 30 * 60_000;

/** Longer than n8n's Wait node keeps an execution in memory. */
const WAIT_SECONDS = 66;

/** How long n8n's idle time is measured, milliseconds. */
const IDLE_MS = 30_000;

/** Ours, sleeping, beside n8n's own Wait node. */
export async function measureSuspended(bench: Bench): Promise<Row[]> {
	const { stage, options } = bench;
	return await withCollector(async (collector) => {
		await bench.usage.quiet();
		const idle = bench.usage.cpuMs();
		await sleep(IDLE_MS);
		const idlePart = (bench.usage.cpuMs() - idle) / IDLE_MS;
		const count = options.quick ? QUICK_EXECUTIONS : EXECUTIONS;
		const ways = { ours: [suspendingNode(stage)], theirs: waitNodes() };
		const each: Record<keyof typeof ways, number[]> = { ours: [], theirs: [] };
		// The first of each is not counted: n8n loads code then.
		for (let round = 0; round <= ROUNDS; round++) {
			for (const way of ['ours', 'theirs'] as const) {
				const ms = await measure(bench, collector, count, ways[way], idlePart);
				if (round > 0) each[way].push(ms);
			}
		}
		const peer = { name: "two of n8n's Wait nodes, one after the other", values: each.theirs };
		const what = `${count} runs that sleep twice: n8n's CPU each, start to end`;
		return [rowOf('suspended-cpu', what, 'ms', each.ours, { peer })];
	});
}

/** Is stored before its first create, woken to create the task, and woken again when the task has ended. */
export const suspendingNode = (stage: Stage, parameters: IDataObject = {}): INode =>
	stage.mediaNode('mediaGeneration', 'Generate', {
		resource: 'image',
		operation: 'generate',
		model: IMAGE_MODEL,
		prompt: 'A lighthouse',
		downloadResults: false,
		options: { suspendAfter: 0 },
		...parameters,
	});

const waitNodes = (): INode[] =>
	['First wait', 'Second wait'].map((name) => ({
		...node('n8n-nodes-base.wait', name, { amount: WAIT_SECONDS, unit: 'seconds' }, 1.1),
		webhookId: crypto.randomUUID(),
	}));

/** @returns n8n's CPU for one execution from its start to its end, without n8n's idle time, milliseconds */
async function measure(
	{ stage, usage, log }: Bench,
	collector: Collector,
	count: number,
	between: INode[],
	idlePart: number,
): Promise<number> {
	const name = between.at(-1)?.name ?? '';
	const { url } = await publish(stage, webhook(`Start: ${name}`), [
		...between,
		collector.node('After'),
	]);
	stage.service.clear();
	stage.service.configure({ latencyMs: 45_000 });
	collector.reset();
	await usage.quiet();
	const [cpu, at] = [usage.cpuMs(), Date.now()];
	log(`${count} executions that wait twice, ${name} …`);
	await callOften(url, count);
	await until(`${count} ends`, LONGEST_MS, () => collector.times.length >= count);
	await usage.quiet();
	const eachMs = (usage.cpuMs() - cpu - idlePart * (Date.now() - at)) / count;
	log(`${name}: ${eachMs.toFixed(0)} ms of CPU each`);
	return eachMs;
}
