import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { AT_ONCE } from '../../test/e2e/atOnce';
import { type Collector, withCollector } from '../../test/e2e/collector';
import { deliver, inARow, lanes, node, webhook } from '../../test/e2e/nodes';
import { N8nClient, until } from '../../test/n8n/client';
import { MINUTE } from '../../test/durations';
import { account, isSettled } from './account';
import { logsOf, type Place } from './place';

/** One execution that creates tasks. */
export interface RunPlan {
	/** The beginning of its prompts, by which its tasks are known. */
	name: string;
	/** How its tasks are to be waited for. */
	kind: 'wait' | 'trigger';
	/** The switches of the simulated service, one object for each task. */
	tasks: IDataObject[];
	/** When it is to begin, milliseconds from the start. */
	at: number;
}

/** A run that n8n has taken. */
export interface StartedRun extends Pick<RunPlan, 'kind' | 'name'> {
	prompts: string[];
	/** Milliseconds since 1970. */
	startedAt: number;
}

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

/** What a campaign came to. */
export interface Outcome {
	/** A column of the page's table. */
	cells: Record<string, string | number>;
	/** What did not come out as it should, a line each. */
	exceptions: string[];
}

export type Log = (line: string) => void;

/** Starts what is planned, does to n8n what is planned, waits, and counts. */
export async function runCampaign(place: Place, plan: CampaignPlan, log: Log): Promise<Outcome> {
	return await withCollector(async (collector) => {
		const paths = {
			wait: await publish(place, collector, 'wait', plan.wait ?? AT_ONCE),
			trigger: await publish(place, collector, 'trigger', {}),
		};
		const startedAt = Date.now();
		const started: StartedRun[] = [];
		const startAll = async () => {
			for (const run of plan.runs.toSorted((one, other) => one.at - other.at)) {
				await sleep(Math.max(0, startedAt + run.at - Date.now()));
				started.push(await start(place, run, paths[run.kind], started.length));
			}
		};
		const starting = startAll();
		if (plan.areSuspendedFirst) {
			await starting;
			await untilSuspended(place, plan.runs.flatMap((run) => run.tasks).length);
			log('everything is suspended');
		}
		const counts: Record<string, number> = {};
		const faultsFrom = Date.now();
		for (const { at, name } of plan.faults) {
			await sleep(Math.max(0, faultsFrom + at - Date.now()));
			log(`down: ${name}`);
			logsOf(place);
			await place.faults[name]?.();
			counts[name] = (counts[name] ?? 0) + 1;
		}
		await starting;
		const lastEnd = () =>
			Math.max(
				...[...place.stage.service.tasks.values()].map(({ completedAt = Infinity }) => completedAt),
			);
		const isOver = () =>
			isSettled(started, collector.reports) || lastEnd() + plan.patienceMs < Date.now();
		while (!isOver()) await sleep(1_000);
		// What was to come only once has the time to come twice.
		await sleep(15_000);
		const minutes = ((Date.now() - startedAt) / 60_000).toFixed(1);
		const killed = Object.entries(counts).map(([name, count]) => `${count} × ${name}`);
		const { cells, exceptions } = await account(place, started, collector.reports);
		return {
			cells: { Minutes: minutes, 'Killed or restarted': killed.join(', '), ...cells },
			exceptions,
		};
	});
}

/** Publishes a workflow of which each run creates tasks and reports what came out. @returns the path that starts one */
async function publish(
	{ stage, urls }: Place,
	collector: Collector,
	kind: RunPlan['kind'],
	options: IDataObject,
): Promise<string> {
	const start = webhook('Start');
	const from = stage.mediaNode('mediaGenerationTrigger', 'Finished', {});
	const media = stage.image({ completion: kind, options });
	const split = node('n8n-nodes-base.splitOut', 'Prompts', {
		fieldToSplitOut: 'body.tasks',
		options: {},
	});
	const row = [start, split, media];
	const report = collector.reportNode();
	const { id } = await stage.client.createWorkflow(
		kind === 'wait'
			? { name: 'Suspended', ...inARow(...row, report) }
			: { name: 'Triggered', ...lanes(row, [from, report]) },
	);
	const path = `/webhook/${start.webhookId}`;
	const paths = kind === 'wait' ? [path] : [path, stage.client.webhookPath(from, 'callback')];
	await stage.client.publish(id);
	for (const url of urls()) {
		for (const each of paths) await new N8nClient(url).waitForWebhook(each);
	}
	return path;
}

/**
 * Has n8n begin a run; where it does not answer it is asked again, under another name.
 *
 * @param nth decides which of n8n's processes is asked
 * @throws where it does not answer in two minutes
 */
async function start(
	{ urls }: Place,
	run: RunPlan,
	path: string,
	nth: number,
): Promise<StartedRun> {
	const giveUp = Date.now() + 2 * MINUTE;
	for (let attempt = 0; ; attempt++) {
		const all = urls();
		// Whether one that was not answered has begun is not known.
		const name = attempt === 0 ? run.name : `${run.name}.${attempt}`;
		const prompts = run.tasks.map((_, index) => `${name} #${index}`);
		const tasks = run.tasks.map((simulate, index) => ({ prompt: prompts[index], simulate }));
		const startedAt = Date.now();
		if (await isTaken(`${all[nth % all.length]}${path}`, { tasks })) {
			return { kind: run.kind, name, prompts, startedAt };
		}
		if (Date.now() > giveUp) throw new Error(`n8n did not take the run ${run.name}`);
		await sleep(500);
	}
}

async function isTaken(url: string, body: unknown): Promise<boolean> {
	try {
		const response = await deliver(url, body, { signal: AbortSignal.timeout(15_000) });
		await response.arrayBuffer();
		return response.ok;
	} catch {
		return false;
	}
}

/** Waits until so many tasks are created and nothing runs any more: what is not finished is suspended. */
async function untilSuspended({ stage, database }: Place, tasks: number): Promise<void> {
	const areCreated = () => stage.service.tasks.size >= tasks;
	await until(`${tasks} tasks to be created`, 10 * MINUTE, areCreated);
	await until('all executions to be suspended', 10 * MINUTE, async () => {
		const active = "select id from execution_entity where status in ('new', 'running')";
		return (await database.rows(active)).length === 0;
	});
}
