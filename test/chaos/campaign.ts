import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { withCollector } from '../e2e/collector';
import { type Account, Accounting } from './account';
import { Load, type RunPlan } from './load';
import { type Place, untilSuspended } from './place';

/** What is started in an n8n and what is done to it meanwhile. */
export interface CampaignPlan {
	runs: RunPlan[];
	/** In the order of time, milliseconds from the start. */
	faults: Array<{ at: number; name: string }>;
	/** Whether nothing is killed before everything that was started is suspended. */
	areSuspendedFirst: boolean;
	/** The options of the runs that wait; default: they are suspended at once. */
	wait?: IDataObject;
	/** How long after the last task's end is waited for what has not come out yet, ms. */
	patienceMs: number;
}

export interface CampaignResult {
	account: Account;
	/** How often each thing was done. */
	faults: Record<string, number>;
	/** From the start to the last end, in minutes. */
	minutes: number;
}

export type Log = (line: string) => void;

/** Starts what is planned, does to n8n what is planned, waits, and counts. */
export async function runCampaign(
	place: Place,
	plan: CampaignPlan,
	log: Log,
): Promise<CampaignResult> {
	const faults: Record<string, number> = {};
	return await withCollector(async (collector) => {
		const load = await Load.publish(place, collector, plan.wait);
		const startedAt = Date.now();
		const starting = startAll(load, plan.runs, startedAt);
		if (plan.areSuspendedFirst) {
			await starting;
			const tasks = plan.runs.flatMap((run) => run.tasks);
			await untilSuspended(place, tasks.length);
			log('everything is suspended');
		}
		const faultsFrom = Date.now();
		for (const { at, name } of plan.faults) {
			await sleep(Math.max(0, faultsFrom + at - Date.now()));
			log(`down: ${name}`);
			await place.faults.find((fault) => fault.name === name)?.strike();
			faults[name] = (faults[name] ?? 0) + 1;
		}
		await starting;
		const accounting = new Accounting(place, load, collector.reports);
		await settle(place, accounting, plan.patienceMs);
		// What was to come only once has the time to come twice.
		await sleep(15_000);
		const minutes = (Date.now() - startedAt) / 60_000;
		return { account: await accounting.account(), faults, minutes };
	});
}

/** @throws where n8n does not take one */
async function startAll(load: Load, runs: RunPlan[], startedAt: number): Promise<void> {
	for (const run of [...runs].sort((one, other) => one.at - other.at)) {
		await sleep(Math.max(0, startedAt + run.at - Date.now()));
		await load.start(run);
	}
}

/** Waits until everything came out, but no longer than so long after the last task's end. */
async function settle(
	{ stage: { service } }: Place,
	accounting: Accounting,
	patienceMs: number,
): Promise<void> {
	for (;;) {
		if (accounting.isSettled()) return;
		const tasks = [...service.tasks.values()];
		const lastEnd = Math.max(...tasks.map(({ completedAt = Infinity }) => completedAt));
		if (lastEnd + patienceMs < Date.now()) return;
		await sleep(1_000);
	}
}
