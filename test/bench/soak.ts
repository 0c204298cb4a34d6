import { setTimeout as sleep } from 'node:timers/promises';
import { linearRegression, median } from 'simple-statistics';

import { missingForQueueMode } from '../e2e/cluster';
import { callbackAddress } from '../../nodes/MediaGeneration/callback/callbackToken';
import { type Collector, withCollector } from '../e2e/collector';
import { Stage } from '../e2e/stage';
import { finish } from './batch';
import { oursFor } from './batchWorkflows';
import type { Bench } from './bench';
import { callOneByOne, finishedTasks } from './calls';
import { openOurs } from './entrances';
import { heapOf, MONITORED, stateOf } from './monitor';
import type { BenchOptions } from './options';
import { limitOf, type Row, rowsOf, type SoakMinute } from './results';
import { Usage } from './usage';

const MINUTE = 60_000;
const MIB = 1024 ** 2;

/** Until n8n has loaded what it needs, and V8 has compiled what runs often. */
const WARM_MINUTES = 3;

/** Of every minute: a batch that is waited for, and callbacks that each start a workflow. */
const BATCH = Array.from({ length: 20 }, (_, index) => 500 + index * 200);
const CALLBACKS = 60;
const PAUSE_MS = 500;

/** The same load minute by minute in queue mode: what grows, and whether anything becomes slower. */
export async function measureSoak(
	options: BenchOptions,
	log: Bench['log'],
): Promise<{ rows: Row[]; minutes: SoakMinute[] }> {
	const missing = missingForQueueMode();
	if (missing !== undefined) throw new Error(`The soak is in queue mode: ${missing}.`);
	if (options.minutes < WARM_MINUTES + 3) {
		throw new Error(`The soak takes ${WARM_MINUTES + 3} minutes at least.`);
	}
	const stage = await Stage.openInQueueMode({ env: MONITORED, workers: 1, webhooks: 1 });
	const bench = { stage, usage: new Usage(stage.n8n.pid), options, log };
	try {
		return await withCollector(async (collector) => await soak(bench, collector));
	} finally {
		await stage.close();
	}
}

async function soak(bench: Bench, collector: Collector) {
	const { stage, options, log } = bench;
	const { cluster } = stage;
	const processes = {
		'main process': stage.n8n,
		'webhook processor': stage.receiver,
		worker: stage.runner,
	};
	const inEach = async <T>(ask: (pid: number) => Promise<T>): Promise<Record<string, T>> => {
		const answers: Record<string, T> = {};
		for (const [name, { pid }] of Object.entries(processes)) answers[name] = await ask(pid);
		return answers;
	};
	const ownBytes = async (pid: number) =>
		(await heapOf(pid)).bytesKeptBy((path) => path.includes('n8n-nodes-media-generation/dist'));

	const ours = await openOurs(stage);
	const url = callbackAddress(stage.webhookUrl + ours.path, stage.service.apiKey);
	const batch = await stage.client.createWorkflow(oursFor(bench, collector, BATCH));
	const minutes: SoakMinute[] = [];
	let ownBefore: Record<string, number> = {};
	const startedAt = performance.now();
	while (minutes.length < options.minutes) {
		const endsAt = performance.now() + MINUTE;
		const running = await stage.client.run(batch.id);
		const tasks = finishedTasks(bench, CALLBACKS);
		const { answerMs } = await callOneByOne(bench, url, tasks, 200, PAUSE_MS);
		await finish(stage.client, batch.id, [running]);
		await cluster.settle(ours.workflowId);
		const [rows = ''] = cluster.query('select count(*) from processed_data');
		minutes.push({
			at: (performance.now() - startedAt) / MINUTE,
			answerMs,
			ledgerRows: Number(rows),
			memory: await inEach(async (pid) => ({
				usedMiB: (await stateOf(pid)).bytes / MIB,
				residentMiB: new Usage(pid).residentMiB(),
			})),
		});
		log(`soak: ${JSON.stringify(minutes.at(-1))}`);
		if (minutes.length === WARM_MINUTES) ownBefore = await inEach(ownBytes);
		stage.service.clear();
		collector.reset();
		await sleep(Math.max(0, endsAt - performance.now()));
	}
	return { rows: tableOf(minutes, ownBefore, await inEach(ownBytes)), minutes };
}

function tableOf(
	minutes: readonly SoakMinute[],
	ownBefore: Record<string, number>,
	ownAfter: Record<string, number>,
): Row[] {
	const warm = minutes.slice(WARM_MINUTES);
	const third = Math.floor(warm.length / 3);
	const answers = (some: SoakMinute[]) => median(some.map(({ answerMs }) => answerMs));
	const row = rowsOf('soak');
	const callbacks = minutes.length * CALLBACKS;
	const ledger = minutes.at(-1)?.ledgerRows ?? NaN;
	const [early, late] = [warm.slice(0, third), warm.slice(-third)].map(answers);
	const answer = 'A callback until its answer, the last third';
	return [
		row('minutes', 'How long', 'min', minutes.length),
		row('callbacks', 'Callbacks that started a workflow', '', callbacks),
		row('tasks', 'Tasks of batches', '', minutes.length * BATCH.length),
		row('ledger', 'Rows that the trigger keeps', '', ledger, limitOf('one a callback', callbacks)),
		row('answer', answer, 'ms', late ?? NaN, limitOf('the first third', early ?? NaN)),
		...Object.keys(ownAfter).flatMap((name) => {
			const id = name.replaceAll(' ', '-');
			const points = (of: (state: SoakMinute['memory'][string]) => number) =>
				warm.flatMap(({ at, memory: { [name]: state } }) => (state ? [[at, of(state)]] : []));
			const used = points(({ usedMiB }) => usedMiB);
			const resident = points(({ residentMiB }) => residentMiB);
			const own = (bytes: Record<string, number>) => (bytes[name] ?? NaN) / MIB;
			const growth = own(ownAfter) - own(ownBefore);
			const atFirst = limitOf(`after ${WARM_MINUTES} min`, used[0]?.[1] ?? NaN);
			const most = limitOf('the most it may be', 1);
			const grows = `The ${name}: growth`;
			return [
				row(
					`${id}-used`,
					`The ${name}: memory in use at the end`,
					'MiB',
					used.at(-1)?.[1] ?? NaN,
					atFirst,
				),
				row(`${id}-growth`, `${grows} a minute`, 'MiB', linearRegression(used).m),
				row(
					`${id}-resident`,
					`${grows} a minute of all it holds of the machine's`,
					'MiB',
					linearRegression(resident).m,
				),
				row(`${id}-own`, `${grows} of what this package keeps`, 'MiB', growth, most),
			];
		}),
	];
}
