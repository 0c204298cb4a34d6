import { setTimeout as sleep } from 'node:timers/promises';

import { nextCheckAt } from '../../nodes/MediaGeneration/suspend/checkSchedule';
import { Usage } from '../bench/usage';
import { type Collector, withCollector } from '../e2e/collector';
import type { Log } from './campaign';
import { resumeOneByOne, suspendRuns } from './latency';
import { Load } from './load';
import type { ChaosOptions } from './options';
import { at, oneProcess, type Place } from './place';

const HOUR_MS = 3_600_000;

/** What many runs that are suspended for an hour cost n8n, from a part of the hour. */
export interface HourResult {
	runs: number;
	/** How long the checks were measured, minutes, and how many there were. */
	minutes: number;
	checks: number;
	/** CPU of n8n for one check, ms; what it does by itself meanwhile is in it. */
	cpuMsACheck: number;
	/** CPU of n8n from a callback to the end of its run, ms. */
	cpuMsAResume: number;
	/** Looks of one run in an hour, by the schedule. */
	checksAnHour: number;
	/** Percent of a core over the hour: the checks, and the resume of each run. */
	percentOfACore: number;
	/** n8n's memory with all runs suspended, and at the end of the checks, above before, MiB. */
	memoryMiB: number;
	memoryAfterChecksMiB: number;
}

export async function measureHour(
	{ quick }: Pick<ChaosOptions, 'quick'>,
	log: Log,
): Promise<HourResult> {
	return await at(
		oneProcess(true),
		async (place) =>
			await withCollector(async (collector) => await measure(place, collector, quick, log)),
	);
}

async function measure(
	place: Place,
	collector: Collector,
	quick: boolean,
	log: Log,
): Promise<HourResult> {
	const [runs, minutes, resumes] = quick ? [20, 2, 4] : [1_000, 6, 100];
	const { service, n8n } = place.stage;
	const usage = new Usage(n8n.pid);
	const reads = () =>
		service.requests.filter(({ host, method }) => host === 'api' && method === 'GET').length;
	const load = await Load.publish(place, collector);
	await usage.quiet();
	const before = usage.residentMiB();
	await suspendRuns(place, load, runs);
	const memoryMiB = usage.residentMiB() - before;
	log(`${runs} runs are suspended, ${Math.round(memoryMiB)} MiB above before`);

	const from = { reads: reads(), cpu: usage.cpuMs() };
	await sleep(minutes * 60_000);
	const checks = reads() - from.reads;
	const cpuMsACheck = (usage.cpuMs() - from.cpu) / checks;
	const memoryAfterChecksMiB = usage.residentMiB() - before;
	log(`${checks} checks, ${cpuMsACheck.toFixed(1)} ms of CPU each`);

	// Between two checks, so that nothing else is counted.
	await usage.quiet();
	const cpu = usage.cpuMs();
	await resumeOneByOne(place, collector, resumes);
	const cpuMsAResume = (usage.cpuMs() - cpu) / resumes;
	const checksAnHour = checksIn(HOUR_MS);
	return {
		runs,
		minutes,
		checks,
		cpuMsACheck,
		cpuMsAResume,
		checksAnHour,
		percentOfACore: (100 * runs * (checksAnHour * cpuMsACheck + cpuMsAResume)) / HOUR_MS,
		memoryMiB,
		memoryAfterChecksMiB,
	};
}

/** How often one run is checked on in a time, by the schedule of the node. */
function checksIn(time: number): number {
	const state = { startedAt: 0, intervalMs: 0 } as Parameters<typeof nextCheckAt>[0];
	let checks = -1;
	for (let now = 0; now <= time; now = nextCheckAt(state, now, [])) checks++;
	return checks;
}
