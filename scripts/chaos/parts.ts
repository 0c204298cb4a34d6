import type { IDataObject } from 'n8n-workflow';

import { AT_ONCE } from '../../test/e2e/atOnce';
import { Randomness } from '../../test/workflow/n8n/randomness';
import { type CampaignPlan, type Log, type Outcome, runCampaign, type RunPlan } from './campaign';
import { at, oneProcess, queueMode } from './place';
import { MINUTE, SECOND } from '../../test/durations';

/** What the command line says. */
interface ChaosOptions {
	/** How long `chaos` goes on starting runs and killing processes. */
	minutes: number;
	/** Decides what is started, what goes wrong, and when. */
	seed: number;
	/** Small figures: to see that it works. */
	quick: boolean;
}

/** From the least to the most, both included. */
type Bounds = readonly [least: number, most: number];

/** One process that no service reaches, killed five times: 50 runs of 1 to 20 tasks, each task 5 s to 4 min. */
export async function runKills({ seed, quick }: ChaosOptions, log: Log): Promise<Outcome> {
	const chance = new Randomness(seed);
	const longest = quick ? 30 : 240;
	// Within the time that the tasks take, so that something is under way at each.
	const faults = Array.from({ length: quick ? 1 : 5 }, (_, kill) => ({
		at: chance.between(0, longest * SECOND, 'kill', kill),
		name: 'n8n',
	})).sort((one, other) => one.at - other.at);
	const runs = Array.from({ length: quick ? 3 : 50 }, (_, run): RunPlan => {
		const name = `silent ${run}`;
		const count = chance.between(1, quick ? 3 : 20, name, 'tasks');
		const tasks = Array.from({ length: count }, (_, task) => ({
			latencyMs: chance.between(5, longest, name, task) * SECOND,
		}));
		return { name, kind: 'wait', tasks, at: run * 200 };
	});
	const plan = { runs, faults, areSuspendedFirst: true, patienceMs: 6 * MINUTE };
	return await at(oneProcess(false), async (place) => await runCampaign(place, plan, log));
}

/** What becomes of a task and its callback: lost, doubled, late, or as it should be. */
function troubled(chance: Randomness, name: string, latencyMs: number): IDataObject {
	const dice = chance.of(name, 'trouble');
	if (dice < 0.25) return { latencyMs, callbackLost: true };
	if (dice < 0.5) return { latencyMs, callbackCopies: chance.between(2, 4, name, 'copies') };
	if (dice < 0.75) {
		return { latencyMs, callbackDelayMs: SECOND * chance.between(1, 60, name, 'delay') };
	}
	return { latencyMs };
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

/** One process: 200 runs that are held for a minute and then suspended, beside 200 triggered tasks. */
export async function runHeld({ seed, quick }: ChaosOptions, log: Log): Promise<Outcome> {
	const chance = new Randomness(seed);
	// Nothing ends before all runs are suspended.
	const latencies: Bounds = quick ? [90, 150] : [200, 480];
	const held = { runs: quick ? 4 : 200, tasks: [1, 3] as const, everyMs: 500 };
	const most = quick ? 3 : 10;
	const triggered = { runs: quick ? 2 : 20, tasks: [most, most] as const, everyMs: SECOND };
	const first = chance.between(0, 60, 'first kill') * SECOND;
	const second = first + chance.between(60, 120, 'second kill') * SECOND;
	const plan: CampaignPlan = {
		runs: [
			...troubledRuns(chance, 'wait', held, latencies),
			...troubledRuns(chance, 'trigger', triggered, latencies),
		],
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

const FAULTS = ['worker', 'webhook processor', 'main', 'Redis', 'PostgreSQL'];

/** Queue mode for so many minutes: runs begin all the time, and a process is killed or a server restarted at random. */
export async function runChaos(options: ChaosOptions, log: Log): Promise<Outcome> {
	const chance = new Randomness(options.seed);
	const lastsMs = options.minutes * MINUTE;
	const every = (everyMs: number) => ({
		runs: Math.ceil(lastsMs / everyMs),
		tasks: [1, 5] as const,
		everyMs,
	});
	const faults: CampaignPlan['faults'] = [];
	for (let time = 20 * SECOND; time < lastsMs;) {
		const name = FAULTS[chance.between(0, FAULTS.length - 1, 'fault', faults.length)] ?? '';
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
		patienceMs: (options.quick ? 4 : 8) * MINUTE,
	};
	return await at(queueMode(2, 2), async (place) => await runCampaign(place, plan, log));
}
