import type { IDataObject } from 'n8n-workflow';

import { AT_ONCE } from '../e2e/atOnce';
import { Randomness } from '../simulation/world/randomness';
import { type CampaignPlan, type CampaignResult, type Log, runCampaign } from './campaign';
import { type RunPlan, troubled } from './load';
import type { ChaosOptions } from './options';
import { at, oneProcess, queueMode } from './place';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

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
	const plan: CampaignPlan = {
		runs: silentRuns(chance, quick),
		faults,
		areSuspendedFirst: true,
		patienceMs: 6 * MINUTE,
	};
	return await at(oneProcess(false), async (place) => await runCampaign(place, plan, log));
}

/** Runs of a kind whose callbacks are lost, doubled and late. */
function troubledRuns(
	chance: Randomness,
	kind: RunPlan['kind'],
	runs: number,
	tasksOf: (name: string) => number,
	atOf: (run: number) => number,
	[least, most]: [number, number] = [5, 240],
): RunPlan[] {
	return Array.from({ length: runs }, (_, run) => {
		const name = `${kind} ${run}`;
		const tasks = Array.from({ length: tasksOf(name) }, (_, task) => {
			const seconds = chance.between(least, most, name, task, 'latency');
			return troubled(chance, `${name} ${task}`, seconds * SECOND);
		});
		return { name, kind, tasks, at: atOf(run) };
	});
}

/** One process: 200 runs that are held for a minute and then suspended, beside 200 triggered tasks. */
export async function runHeld({ seed, quick }: ChaosOptions, log: Log): Promise<CampaignResult> {
	const chance = new Randomness(seed);
	// Nothing ends before all runs are suspended.
	const latencies: [number, number] = quick ? [90, 150] : [200, 480];
	const held = troubledRuns(
		chance,
		'wait',
		quick ? 4 : 200,
		(name) => chance.between(1, 3, name, 'tasks'),
		(run) => run * 500,
		latencies,
	);
	const triggered = troubledRuns(
		chance,
		'trigger',
		quick ? 2 : 20,
		() => (quick ? 3 : 10),
		(run) => run * SECOND,
		latencies,
	);
	const first = chance.between(0, 60, 'first kill') * SECOND;
	const second = first + chance.between(60, 120, 'second kill') * SECOND;
	const plan: CampaignPlan = {
		runs: [...held, ...triggered],
		faults: [
			{ at: first, name: 'n8n' },
			{ at: second, name: 'n8n, for two minutes' },
		],
		areSuspendedFirst: true,
		wait: { ...AT_ONCE, suspendAfter: 1 },
		patienceMs: 8 * MINUTE,
	};
	return await at(oneProcess(true), async (place) => await runCampaign(place, plan, log));
}

const ALL_FAULTS = ['worker', 'webhook processor', 'main', 'Redis', 'PostgreSQL'];

/** Queue mode: 100 suspended runs and 200 triggered tasks, and every process down in turn. */
export async function runQueue({ seed, quick }: ChaosOptions, log: Log): Promise<CampaignResult> {
	const chance = new Randomness(seed);
	const suspended = troubledRuns(
		chance,
		'wait',
		quick ? 4 : 100,
		(name) => chance.between(1, 5, name, 'tasks'),
		(run) => run * 200,
	);
	const triggered = troubledRuns(
		chance,
		'trigger',
		quick ? 2 : 20,
		() => (quick ? 3 : 10),
		(run) => run * SECOND,
	);
	const plan: CampaignPlan = {
		runs: [...suspended, ...triggered],
		faults: (quick ? ALL_FAULTS.slice(0, 3) : [...ALL_FAULTS, ...ALL_FAULTS]).map(
			(name, index) => ({ at: (5 + index * 30) * SECOND, name }),
		),
		areSuspendedFirst: true,
		patienceMs: 8 * MINUTE,
	};
	return await at(queueMode(2, 2), async (place) => await runCampaign(place, plan, log));
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
	return await at(oneProcess(true), async (place) => await runCampaign(place, plan, log));
}

/** Queue mode for so many minutes: runs begin all the time, and a process is killed or a server restarted at random. */
export async function runChaos(
	{ seed, minutes, quick }: ChaosOptions,
	log: Log,
): Promise<CampaignResult> {
	const chance = new Randomness(seed);
	const lastsMs = minutes * MINUTE;
	const suspended = troubledRuns(
		chance,
		'wait',
		Math.ceil(lastsMs / (15 * SECOND)),
		(name) => chance.between(1, 5, name, 'tasks'),
		(run) => run * 15 * SECOND,
	);
	const triggered = troubledRuns(
		chance,
		'trigger',
		Math.ceil(lastsMs / (30 * SECOND)),
		(name) => chance.between(1, 5, name, 'tasks'),
		(run) => run * 30 * SECOND,
	);
	const faults: CampaignPlan['faults'] = [];
	for (let time = 20 * SECOND; time < lastsMs;) {
		const name = ALL_FAULTS[chance.between(0, ALL_FAULTS.length - 1, 'fault', faults.length)] ?? '';
		faults.push({ at: time, name });
		time += chance.between(15, 75, 'pause', faults.length) * SECOND;
	}
	const plan: CampaignPlan = {
		runs: [...suspended, ...triggered],
		faults,
		areSuspendedFirst: false,
		patienceMs: (quick ? 4 : 8) * MINUTE,
	};
	return await at(queueMode(2, 2), async (place) => await runCampaign(place, plan, log));
}
