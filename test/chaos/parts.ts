import type { IDataObject } from 'n8n-workflow';

import { AT_ONCE } from '../e2e/atOnce';
import { Randomness } from '../simulation/world/randomness';
import { type CampaignPlan, type CampaignResult, type Log, runCampaign } from './campaign';
import { type RunPlan, troubled } from './load';
import type { ChaosOptions } from './options';
import { at, oneProcess, type Place, queueMode } from './place';
import { MINUTE, SECOND } from '../durations';

/** From the least to the most, both included. */
type Bounds = readonly [least: number, most: number];

const campaign = async (place: Promise<Place>, plan: CampaignPlan, log: Log) =>
	await at(place, async (made) => await runCampaign(made, plan, log));

/** One process that no service reaches: 50 runs of 1 to 20 tasks, each task 5 s to 4 min. */
function silentRuns(chance: Randomness, quick: boolean): RunPlan[] {
	return Array.from({ length: quick ? 3 : 50 }, (_, run) => {
		const name = `silent ${run}`;
		const count = chance.between(1, quick ? 3 : 20, name, 'tasks');
		const tasks = Array.from({ length: count }, (_, task): IDataObject => {
			const seconds = chance.between(5, quick ? 30 : 240, name, task);
			return { latencyMs: seconds * SECOND };
		});
		return { name, kind: 'wait', tasks, at: run * 200 };
	});
}

export async function runSilent(
	{ seed, quick }: ChaosOptions,
	log: Log,
	kills: number,
): Promise<CampaignResult> {
	const chance = new Randomness(seed);
	// Within the time that the tasks take, so that something is under way at each.
	const faults = Array.from({ length: quick ? Math.min(kills, 1) : kills }, (_, kill) => ({
		at: chance.between(0, (quick ? 30 : 240) * SECOND, 'kill', kill),
		name: 'n8n',
	})).sort((one, other) => one.at - other.at);
	const runs = silentRuns(chance, quick);
	const plan = { runs, faults, areSuspendedFirst: true, patienceMs: 6 * MINUTE };
	return await campaign(oneProcess(false), plan, log);
}

/** Runs of a kind whose callbacks are lost, doubled and late. */
function troubledRuns(
	chance: Randomness,
	kind: RunPlan['kind'],
	{ runs, tasks, everyMs }: { runs: number; tasks: Bounds; everyMs: number },
	latencySeconds: Bounds = [5, 240],
): RunPlan[] {
	return Array.from({ length: runs }, (_, run) => {
		const name = `${kind} ${run}`;
		const count = chance.between(...tasks, name, 'tasks');
		const all = Array.from({ length: count }, (_, task) => {
			const seconds = chance.between(...latencySeconds, name, task, 'latency');
			return troubled(chance, `${name} ${task}`, seconds * SECOND);
		});
		return { name, kind, tasks: all, at: run * everyMs };
	});
}

/** 200 triggered tasks. */
const triggeredTasks = (quick: boolean) =>
	quick
		? { runs: 2, tasks: [3, 3] as const, everyMs: SECOND }
		: { runs: 20, tasks: [10, 10] as const, everyMs: SECOND };

/** One process: 200 runs that are held for a minute and then suspended, beside 200 triggered tasks. */
export async function runHeld({ seed, quick }: ChaosOptions, log: Log): Promise<CampaignResult> {
	const chance = new Randomness(seed);
	// Nothing ends before all runs are suspended.
	const latencies: Bounds = quick ? [90, 150] : [200, 480];
	const held = { runs: quick ? 4 : 200, tasks: [1, 3] as const, everyMs: 500 };
	const first = chance.between(0, 60, 'first kill') * SECOND;
	const second = first + chance.between(60, 120, 'second kill') * SECOND;
	const plan: CampaignPlan = {
		runs: [
			...troubledRuns(chance, 'wait', held, latencies),
			...troubledRuns(chance, 'trigger', triggeredTasks(quick), latencies),
		],
		faults: [
			{ at: first, name: 'n8n' },
			{ at: second, name: 'n8n, for two minutes' },
		],
		areSuspendedFirst: true,
		wait: { ...AT_ONCE, suspendAfter: 1 },
		patienceMs: 8 * MINUTE,
	};
	return await campaign(oneProcess(true), plan, log);
}

const ALL_FAULTS = ['worker', 'webhook processor', 'main', 'Redis', 'PostgreSQL'];

/** Queue mode: 100 suspended runs and 200 triggered tasks, and every process down in turn. */
export async function runQueue({ seed, quick }: ChaosOptions, log: Log): Promise<CampaignResult> {
	const chance = new Randomness(seed);
	const suspended = { runs: quick ? 4 : 100, tasks: [1, 5] as const, everyMs: 200 };
	const faults = quick ? ALL_FAULTS.slice(0, 3) : [...ALL_FAULTS, ...ALL_FAULTS];
	const plan: CampaignPlan = {
		runs: [
			...troubledRuns(chance, 'wait', suspended),
			...troubledRuns(chance, 'trigger', triggeredTasks(quick)),
		],
		faults: faults.map((name, index) => ({ at: (5 + index * 30) * SECOND, name })),
		areSuspendedFirst: true,
		patienceMs: 8 * MINUTE,
	};
	return await campaign(queueMode(2, 2), plan, log);
}

/** 500 triggered tasks, of which 100 callbacks never come. */
export async function runLost({ seed, quick }: ChaosOptions, log: Log): Promise<CampaignResult> {
	const chance = new Randomness(seed);
	const count = quick ? 10 : 50;
	const runs = Array.from({ length: quick ? 2 : 10 }, (_, run): RunPlan => ({
		name: `lost ${run}`,
		kind: 'trigger',
		// So that the callbacks do not all come at once, and are finished before the first check.
		at: run * 30 * SECOND,
		tasks: Array.from({ length: count }, (_, task) => ({
			latencyMs: SECOND * chance.between(5, 50, run, task),
			...(task % 5 === 0 && { callbackLost: true }),
		})),
	}));
	const plan = { runs, faults: [], areSuspendedFirst: false, patienceMs: 5 * MINUTE };
	return await campaign(oneProcess(true), plan, log);
}

/** Queue mode for so many minutes: runs begin all the time, and a process is killed or a server restarted at random. */
export async function runChaos(
	{ seed, minutes, quick }: ChaosOptions,
	log: Log,
): Promise<CampaignResult> {
	const chance = new Randomness(seed);
	const lastsMs = minutes * MINUTE;
	const every = (everyMs: number) => ({
		runs: Math.ceil(lastsMs / everyMs),
		tasks: [1, 5] as const,
		everyMs,
	});
	const faults: CampaignPlan['faults'] = [];
	for (let time = 20 * SECOND; time < lastsMs;) {
		const name = ALL_FAULTS[chance.between(0, ALL_FAULTS.length - 1, 'fault', faults.length)] ?? '';
		faults.push({ at: time, name });
		time += chance.between(15, 75, 'pause', faults.length) * SECOND;
	}
	const plan: CampaignPlan = {
		runs: [
			...troubledRuns(chance, 'wait', every(15 * SECOND)),
			...troubledRuns(chance, 'trigger', every(30 * SECOND)),
		],
		faults,
		areSuspendedFirst: false,
		patienceMs: (quick ? 4 : 8) * MINUTE,
	};
	return await campaign(queueMode(2, 2), plan, log);
}
