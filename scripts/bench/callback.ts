import { setTimeout as sleep } from 'node:timers/promises';
import type { IDataObject, INode } from 'n8n-workflow';

import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackAddress';
import { node, type Stage, webhook } from '../../test/e2e/stage';
import { outputItems } from '../../test/n8n/client';
import { type Bench, call, publish } from './bench';
import { median, type Row, rowOf } from './results';

const CALLS = 30;
const QUICK_CALLS = 8;

/** Lets n8n finish what the call started, before the next call. */
const PAUSE_MS = 150;

/** What one series of calls took. */
interface Series {
	/** Median, until the answer. */
	answerMs: number;
	/** Median, until the node behind the trigger starts. */
	startMs: number;
	/** n8n's CPU for one call and what it started. */
	cpuMs: number;
}

/** A published workflow that starts with a trigger. */
const open = async (stage: Stage, trigger: INode, path?: string) =>
	await publish(stage, trigger, [node('n8n-nodes-base.noOp', 'After', {})], path);

/** A workflow that starts with our trigger. */
async function openOurs(stage: Stage) {
	const trigger = stage.mediaNode('mediaGenerationTrigger', 'Ours', {});
	const { workflowId, url } = await open(stage, trigger, 'callback');
	return { workflowId, url: callbackAddress(url, stage.service.apiKey) };
}

/** Callbacks to the trigger, beside the least third-party trigger and n8n's own Webhook node. */
export async function measureCallbacks(bench: Bench): Promise<Row[]> {
	const { stage, options, log } = bench;
	const least = node('n8n-nodes-least-trigger.leastTrigger', 'Least', {});
	const entrances = {
		ours: await openOurs(stage),
		least: await open(stage, { ...least, webhookId: crypto.randomUUID() }, 'least'),
		webhook: await open(stage, webhook('Webhook')),
	};
	const names = Object.keys(entrances) as Array<keyof typeof entrances>;
	const series: Record<keyof typeof entrances, Series[]> = { ours: [], least: [], webhook: [] };
	// The first calls are slower than all later ones.
	for (const name of names) await measureSeries(bench, entrances[name], 5);
	for (let run = 1; run <= options.runs; run++) {
		// There and back: whoever is always last would gain or lose by what goes on meanwhile.
		for (const name of run % 2 === 1 ? names : names.toReversed()) {
			const one = await measureSeries(bench, entrances[name], options.quick ? QUICK_CALLS : CALLS);
			series[name].push(one);
			log(`callbacks, run ${run}, ${name}: ${JSON.stringify(one)}`);
		}
	}
	const row = (id: string, what: string, key: keyof Series, peer: 'least' | 'webhook') => {
		const name = peer === 'least' ? 'least third-party trigger' : "n8n's Webhook node";
		const valuesOf = (who: keyof typeof series) => series[who].map((one) => one[key]);
		const more = { peer: { name, values: valuesOf(peer) } };
		return rowOf(`callback-accepted-${id}`, what, 'ms', valuesOf('ours'), more);
	};
	return [
		row('answer-0', 'Callback until its answer', 'answerMs', 'least'),
		row('answer-0-webhook', 'Callback until its answer', 'answerMs', 'webhook'),
		row('start-0', 'Callback until the workflow goes on', 'startMs', 'least'),
		row('cpu-0', "n8n's CPU a callback", 'cpuMs', 'least'),
	];
}

/** Calls one after the other, each when n8n has nothing else to do. */
async function measureSeries(
	{ stage, usage }: Bench,
	{ workflowId, url }: Awaited<ReturnType<typeof open>>,
	count: number,
): Promise<Series> {
	stage.service.clear();
	const taskIds = stage.finishedTasks(count);
	const sentAt = new Map<string, number>();
	await usage.quiet();
	const cpu = usage.cpuMs();
	const answers: number[] = [];
	for (const taskId of taskIds) {
		sentAt.set(taskId, Date.now());
		answers.push(await call(url, taskId));
		await sleep(PAUSE_MS);
	}
	await usage.quiet();
	const cpuMs = (usage.cpuMs() - cpu) / count;
	const started: number[] = [];
	for (const { id } of (await stage.client.listExecutions({ workflowId })).slice(0, count)) {
		const execution = await stage.client.getExecution(id);
		const [{ json } = { json: undefined }] = outputItems(execution, 'After');
		// n8n's own node puts the body into a field.
		const { taskId } = (json?.body ?? json ?? {}) as IDataObject;
		const ranAt = execution.data.resultData.runData.After?.[0]?.startTime;
		// A workflow that no call has started makes the median no number.
		started.push((ranAt ?? NaN) - (sentAt.get(String(taskId)) ?? NaN));
	}
	return { answerMs: median(answers), startMs: median(started), cpuMs };
}
