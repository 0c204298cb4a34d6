import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject } from 'n8n-workflow';

import { AT_ONCE } from '../e2e/atOnce';
import type { Collector } from '../e2e/collector';
import { inARow, node, webhook } from '../e2e/nodes';
import { N8nClient } from '../n8n/client';
import type { Randomness } from '../simulation/world/randomness';
import type { Place } from './place';

/** How the tasks of a run are to be waited for. */
export type Kind = 'wait' | 'trigger';

/** One execution that creates tasks. */
export interface RunPlan {
	/** The beginning of its prompts, by which its tasks are known. */
	name: string;
	kind: Kind;
	/** The switches of the simulated service, one object for each task. */
	tasks: IDataObject[];
	/** When it is to begin, milliseconds from the start. */
	at: number;
}

/** A run that n8n has taken. */
export interface StartedRun extends RunPlan {
	/** Milliseconds since 1970. */
	startedAt: number;
}

const GIVE_UP_AFTER_MS = 120_000;
const PAUSE_MS = 500;

export const promptOf = (name: string, index: number) => `${name} #${index}`;

/** What becomes of a task and its callback: lost, doubled, late, or as it should be. */
export function troubled(chance: Randomness, name: string, latencyMs: number): IDataObject {
	const dice = chance.of(name, 'trouble');
	if (dice < 0.25) return { latencyMs, callbackLost: true };
	if (dice < 0.5) return { latencyMs, callbackCopies: chance.between(2, 4, name, 'copies') };
	if (dice < 0.75) {
		return { latencyMs, callbackDelayMs: 1_000 * chance.between(1, 60, name, 'delay') };
	}
	return { latencyMs };
}

/** The published workflows whose runs are counted. */
export class Load {
	readonly started: StartedRun[] = [];

	private constructor(
		private readonly place: Place,
		private readonly paths: Record<Kind, string>,
		readonly workflowIds: string[],
	) {}

	/** @param wait the options of the runs that wait */
	static async publish(
		place: Place,
		collector: Collector,
		wait: IDataObject = AT_ONCE,
	): Promise<Load> {
		const paths: Record<Kind, string> = { wait: '', trigger: '' };
		const workflowIds: string[] = [];
		for (const kind of ['wait', 'trigger'] as const) {
			const { path, id } = await publish(place, collector, kind, wait);
			paths[kind] = path;
			workflowIds.push(id);
		}
		return new Load(place, paths, workflowIds);
	}

	/**
	 * Has n8n begin a run; where it does not answer it is asked again, under another name.
	 *
	 * @throws where it does not answer in two minutes
	 */
	async start(run: RunPlan): Promise<void> {
		const giveUp = Date.now() + GIVE_UP_AFTER_MS;
		for (let attempt = 0; ; attempt++) {
			const urls = this.place.urls();
			// Whether one that was not answered has begun is not known.
			const name = attempt === 0 ? run.name : `${run.name}.${attempt}`;
			const tasks = run.tasks.map((simulate, index) => ({
				prompt: promptOf(name, index),
				simulate,
			}));
			const startedAt = Date.now();
			const url = `${urls[this.started.length % urls.length]}${this.paths[run.kind]}`;
			if (await isTaken(url, { tasks })) {
				this.started.push({ ...run, name, startedAt });
				return;
			}
			if (Date.now() > giveUp) throw new Error(`n8n did not take the run ${run.name}`);
			await sleep(PAUSE_MS);
		}
	}
}

async function isTaken(url: string, body: unknown): Promise<boolean> {
	try {
		const response = await fetch(url, {
			method: 'POST',
			headers: { 'content-type': 'application/json' },
			body: JSON.stringify(body),
			signal: AbortSignal.timeout(15_000),
		});
		await response.arrayBuffer();
		return response.ok;
	} catch {
		return false;
	}
}

async function publish(
	{ stage, urls }: Place,
	collector: Collector,
	kind: Kind,
	wait: IDataObject,
) {
	const start = webhook('Start');
	const from = stage.mediaNode('mediaGenerationTrigger', 'Finished', {});
	const media = stage.image({ completion: kind, options: kind === 'wait' ? wait : {} });
	const split = node('n8n-nodes-base.splitOut', 'Prompts', {
		fieldToSplitOut: 'body.tasks',
		options: {},
	});
	const { nodes, connections } = inARow(start, split, media);
	const report = inARow(kind === 'wait' ? media : from, collector.reportNode());
	const { id } = await stage.client.createWorkflow({
		name: kind === 'wait' ? 'Suspended' : 'Triggered',
		nodes: [...nodes, ...report.nodes.filter((each) => each !== media)],
		connections: { ...connections, ...report.connections },
	});
	const path = `/webhook/${start.webhookId}`;
	const paths = [path];
	if (kind === 'trigger') paths.push(stage.client.webhookPath(from, 'callback'));
	await stage.client.publish(id);
	for (const url of urls()) {
		for (const each of paths) await new N8nClient(url).waitForWebhook(each);
	}
	return { path, id };
}
