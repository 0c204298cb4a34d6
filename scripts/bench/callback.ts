import { setTimeout as sleep } from 'node:timers/promises';
import type { INode } from 'n8n-workflow';

import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackAddress';
import { deliver, inARow, node, type Stage } from '../../test/e2e/stage';
import type { Bench } from './bench';
import { median, type Row, rowOf } from './results';

const CALLS = 30;
const QUICK_CALLS = 8;

/** Lets n8n finish what the call started, before the next call. */
const PAUSE_MS = 150;

/** What one series of calls took. */
interface Series {
	/** Median, until the answer. */
	answerMs: number;
	/** n8n's CPU for one call and what it started. */
	cpuMs: number;
}

/** A published workflow that calls start. @returns its id, and where it is called */
async function open({ client, webhookUrl }: Stage, trigger: INode, path: string) {
	const address = client.webhookPath(trigger, path);
	const row = inARow(trigger, node('n8n-nodes-base.noOp', 'After', {}));
	const { id: workflowId } = await client.createWorkflow({ name: trigger.name, ...row });
	await client.publish(workflowId, [address]);
	return { workflowId, url: webhookUrl + address };
}

/** Callbacks to the trigger, beside the least third-party trigger. */
export async function measureCallbacks(bench: Bench): Promise<Row[]> {
	const { stage, quick, runs, log } = bench;
	const trigger = stage.mediaNode('mediaGenerationTrigger', 'Ours', {});
	const least = node('n8n-nodes-least-trigger.leastTrigger', 'Least', {});
	const ours = await open(stage, trigger, 'callback');
	const entrances = {
		ours: { ...ours, url: callbackAddress(ours.url, stage.service.apiKey) },
		least: await open(stage, { ...least, webhookId: crypto.randomUUID() }, 'least'),
	};
	const names = Object.keys(entrances) as Array<keyof typeof entrances>;
	const series: Record<keyof typeof entrances, Series[]> = { ours: [], least: [] };
	// The first calls are slower than all later ones.
	for (const name of names) await measureSeries(bench, entrances[name], 5);
	for (let run = 1; run <= runs; run++) {
		// There and back: whoever is always last would gain or lose by what goes on meanwhile.
		for (const name of run % 2 === 1 ? names : names.toReversed()) {
			const one = await measureSeries(bench, entrances[name], quick ? QUICK_CALLS : CALLS);
			series[name].push(one);
			log(`callbacks, run ${run}, ${name}: ${JSON.stringify(one)}`);
		}
	}
	const row = (what: string, key: keyof Series) => {
		const values = series.least.map((one) => one[key]);
		const peer = { name: 'least third-party trigger', values };
		return rowOf(
			what,
			'ms',
			series.ours.map((one) => one[key]),
			{ peer },
		);
	};
	return [row('Callback until its answer', 'answerMs'), row("n8n's CPU a callback", 'cpuMs')];
}

/** Calls one after the other, each when n8n has nothing else to do. */
async function measureSeries(
	{ stage, usage }: Bench,
	{ workflowId, url }: Awaited<ReturnType<typeof open>>,
	count: number,
): Promise<Series> {
	stage.service.clear();
	await usage.quiet();
	const cpu = usage.cpuMs();
	const answers: number[] = [];
	for (const taskId of stage.finishedTasks(count)) {
		const startedAt = performance.now();
		const { status } = await deliver(url, { taskId });
		if (status !== 200) throw new Error(`${url} answered ${status}.`);
		answers.push(performance.now() - startedAt);
		await sleep(PAUSE_MS);
	}
	await usage.quiet();
	const cpuMs = (usage.cpuMs() - cpu) / count;
	const { length } = await stage.client.listExecutions({ workflowId });
	if (length < count) throw new Error(`${count} calls have started ${length} executions.`);
	return { answerMs: median(answers), cpuMs };
}
