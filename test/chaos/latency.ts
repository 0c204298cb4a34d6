import { FOREVER_MS } from '../bench/bench';
import { type Collector, withCollector } from '../e2e/collector';
import { until } from '../n8n/client';
import type { Log } from './campaign';
import { Load } from './load';
import type { ChaosOptions } from './options';
import { at, oneProcess, type Place, queueMode, untilSuspended } from './place';
import { type Figures, figures } from './results';

/** Milliseconds from the end of a task, at which its callback is sent, until the node behind ours. */
export interface LatencyResult {
	runs: number;
	oneProcess: Figures;
	queueMode: Figures;
}

export async function measureLatency(
	{ quick }: Pick<ChaosOptions, 'quick'>,
	log: Log,
): Promise<LatencyResult> {
	const runs = quick ? 4 : 40;
	const resumeAll = async (place: Place) =>
		await withCollector(async (collector) => {
			const load = await Load.publish(place, collector);
			await suspendRuns(place, load, runs);
			return await resumeOneByOne(place, collector, runs);
		});
	const measure = async (name: string, place: Promise<Place>) => {
		const latency = figures(await at(place, resumeAll));
		log(`${name}: ${latency.median} ms`);
		return latency;
	};
	return {
		runs,
		oneProcess: await measure('one process', oneProcess(true)),
		queueMode: await measure('queue mode', queueMode(2, 2)),
	};
}

/** Starts so many runs of one task, and waits until all of them are suspended. */
export async function suspendRuns(place: Place, load: Load, count: number): Promise<void> {
	const tasks = [{ latencyMs: FOREVER_MS }];
	for (let run = 0; run < count; run++) {
		await load.start({ name: `run ${run}`, kind: 'wait', tasks, at: 0 });
	}
	await untilSuspended(place, count);
}

/**
 * Ends the first tasks, each when the run of the one before has gone on.
 *
 * @returns milliseconds from the end of each task until its run has come to the node behind ours
 */
export async function resumeOneByOne(
	{ stage: { service } }: Place,
	{ reports }: Collector,
	count: number,
): Promise<number[]> {
	const latencies: number[] = [];
	for (const [index, taskId] of [...service.tasks.keys()].slice(0, count).entries()) {
		const endedAt = Date.now();
		service.complete(taskId);
		await until(`run ${index} to go on`, 120_000, () => reports.length > index);
		latencies.push((reports[index]?.at ?? NaN) - endedAt);
	}
	return latencies;
}
