import { until } from '../n8n/client';
import type { Log } from './campaign';
import { Load } from './load';
import type { ChaosOptions } from './options';
import { at, oneProcess, type Place, queueMode, untilSuspended } from './place';
import { Reports } from './reports';
import { type Figures, figures } from './results';

/** Milliseconds from the end of a task, at which its callback is sent, until the node behind ours. */
export interface LatencyResult {
	runs: number;
	oneProcess: Figures;
	queueMode: Figures;
}

/** No task of this part finishes by itself. */
const FOREVER_MS = 24 * 3_600_000;

const RUNS = 40;
const QUICK_RUNS = 4;

export async function measureLatency(
	{ quick }: Pick<ChaosOptions, 'quick'>,
	log: Log,
): Promise<LatencyResult> {
	const runs = quick ? QUICK_RUNS : RUNS;
	const measure = async (name: string, place: Promise<Place>) => {
		const latency = figures(await at(place, async (made) => await resumeEach(made, runs)));
		log(`${name}: ${latency.median} ms`);
		return latency;
	};
	return {
		runs,
		oneProcess: await measure('one process', oneProcess(true)),
		queueMode: await measure('queue mode', queueMode(2, 2)),
	};
}

/** Suspends runs of one task and ends the tasks one after the other. */
async function resumeEach(place: Place, count: number): Promise<number[]> {
	const reports = await Reports.open();
	try {
		const load = await Load.publish(place, reports);
		for (let run = 0; run < count; run++) {
			const tasks = [{ latencyMs: FOREVER_MS }];
			await load.start({ name: `latency ${run}`, kind: 'wait', tasks, at: 0 });
		}
		await untilSuspended(place, count);
		const latencies: number[] = [];
		for (const [index, { taskId }] of [...place.stage.service.tasks.values()].entries()) {
			const endedAt = Date.now();
			place.stage.service.complete(taskId);
			await until(`run ${index} to go on`, 120_000, async () =>
				Promise.resolve(reports.all.length > index),
			);
			latencies.push((reports.all[index]?.at ?? NaN) - endedAt);
		}
		return latencies;
	} finally {
		reports.close();
	}
}
