import { setTimeout as sleep } from 'node:timers/promises';
import type { INode } from 'n8n-workflow';
import { max } from 'simple-statistics';

import { type Collector, withCollector } from '../e2e/collector';
import { inARow, node } from '../e2e/stage';
import type { Bench } from './bench';
import { bestPossible, largestBurst } from './batchFigures';
import { loopFor, MAX_IN_FLIGHT, oursFor, report, startWith } from './batchWorkflows';
import { OpenAiStandIn } from './openAi';
import { limitOf, peerOf, type Row, rowsBeside, rowsOf } from './results';

const SIZES = [1, 8, 50, 200, 1000];
const QUICK_SIZES = [1, 8, 50];

/** The batch that n8n's video node is asked for too. */
const COMPARED_SIZE = 8;
/** n8n's video node takes minutes and next to no CPU, so its runs go side by side. */
const OPENAI_RUNS = 3;

const LOOK_EVERY_MS = 1_000;
const LONGEST_BATCH_MS = 20 * 60_000;

/** What one run of a batch took. */
interface Measured {
	seconds: number;
	requestsEach: number;
	cpuMsEach: number;
	/** Most requests in 100 ms. */
	burst: number;
	memoryMiB: number;
}

/** How long the tasks of a batch take, in milliseconds; the same in every run. */
function latenciesOf(size: number): number[] {
	if (size === 1) return [3000];
	if (size === COMPARED_SIZE) return [500, 1000, 2000, 3000, 4000, 5000, 5500, 6000];
	return Array.from({ length: size }, (_, index) => 1000 + ((index * 7919) % 7001));
}

/** Batches that are waited for: ours, the loop that users build by hand, and n8n's own video node. */
export async function measureBatches(bench: Bench): Promise<Row[]> {
	return await withCollector(async (collector) => {
		const rows: Row[] = [];
		for (const size of bench.options.quick ? QUICK_SIZES : SIZES) {
			rows.push(...(await measureSize(bench, collector, size)));
		}
		return rows;
	});
}

async function measureSize(bench: Bench, collector: Collector, size: number): Promise<Row[]> {
	const { stage, options, log } = bench;
	const latencies = latenciesOf(size);
	const ours = await stage.client.createWorkflow(oursFor(bench, collector, latencies));
	const loop = await stage.client.createWorkflow(await loopFor(bench, collector, latencies));
	const measured: { ours: Measured[]; loop: Measured[] } = { ours: [], loop: [] };
	for (let run = 1; run <= options.runs; run++) {
		for (const [name, { id }] of Object.entries({ ours, loop })) {
			const result = await measureRun(bench, collector, id, size);
			measured[name as keyof typeof measured].push(result);
			log(
				`batch of ${size}, run ${run}, ${name}: ${result.seconds.toFixed(1)} s, ${result.cpuMsEach.toFixed(1)} ms of CPU a task`,
			);
		}
	}

	const name = size === 1 ? 'One task' : `Batch of ${size.toLocaleString('en')}`;
	const rowOf = rowsOf(`batch-${size}`, name);
	const row = rowsBeside(rowOf, measured.ours, 'loop built by hand', measured.loop);
	const limit = limitOf(
		size > MAX_IN_FLIGHT ? `${MAX_IN_FLIGHT} at a time` : 'the slowest task',
		bestPossible(latencies, MAX_IN_FLIGHT) / 1000,
	);
	const time = row('time', 'until all are done', 's', ({ seconds }) => seconds, limit);
	const fewest = limitOf('a create and a read', 2);
	return [
		time,
		...(size === COMPARED_SIZE ? [await openAiRow(bench, collector, latencies, time)] : []),
		row('requests', 'requests a task', '', ({ requestsEach }) => requestsEach, fewest),
		row('cpu', "n8n's CPU a task", 'ms', ({ cpuMsEach }) => cpuMsEach),
		row('burst', 'most requests in 100 ms', '', ({ burst }) => burst),
		row('memory', "n8n's memory, above before", 'MiB', ({ memoryMiB }) => memoryMiB),
	];
}

async function measureRun(
	bench: Bench,
	collector: Collector,
	workflowId: string,
	size: number,
): Promise<Measured> {
	const { service } = bench.stage;
	const { seconds, cpuMs, memoryMiB } = await timeRun(bench, collector, workflowId);
	const finished = [...service.tasks.values()].filter(
		({ record }) => record.state === 'SUCCESS',
	).length;
	if (service.tasks.size !== size || finished !== size) {
		throw new Error(
			`Of ${size} tasks ${service.tasks.size} were created and ${finished} finished.`,
		);
	}
	const times = service.requests.filter(({ host }) => host === 'api').map(({ at }) => at);
	return {
		seconds,
		requestsEach: times.length / size,
		cpuMsEach: cpuMs / size,
		burst: largestBurst(times),
		memoryMiB,
	};
}

/** Runs a workflow that reports to the collector at its end. @returns what it took of n8n, above before */
export async function timeRun(
	{ stage: { service, client }, usage }: Bench,
	collector: Collector,
	workflowId: string,
): Promise<{ seconds: number; cpuMs: number; memoryMiB: number }> {
	service.clear();
	collector.reset();
	await usage.quiet();
	usage.forgetPeak();
	const memory = usage.residentMiB();
	const cpu = usage.cpuMs();
	const startedAt = Date.now();
	await finish(client, workflowId, [await client.run(workflowId)]);
	await usage.quiet();
	return {
		seconds: (max([...collector.times]) - startedAt) / 1000,
		cpuMs: usage.cpuMs() - cpu,
		memoryMiB: usage.peakMiB() - memory,
	};
}

/** Waits for executions by the list, which costs n8n next to nothing. */
export async function finish(
	client: Bench['stage']['client'],
	workflowId: string,
	ids: string[],
): Promise<void> {
	for (const giveUpAt = Date.now() + LONGEST_BATCH_MS; ;) {
		await sleep(LOOK_EVERY_MS);
		const executions = (await client.listExecutions({ workflowId })).filter(({ id }) =>
			ids.includes(id),
		);
		const ended = executions.filter(
			({ status }) => !['new', 'running', 'waiting'].includes(status),
		);
		const failed = ended.find(({ status }) => status !== 'success');
		if (failed) throw new Error(`Execution ${failed.id} ended with ${failed.status}.`);
		if (ended.length === ids.length) return;
		if (Date.now() > giveUpAt) throw new Error('A batch did not end in twenty minutes.');
	}
}

/** n8n's own OpenAI video node, against a stand-in of its interface with the same latencies. */
async function openAiRow(
	{ stage: { client }, usage, log }: Bench,
	collector: Collector,
	latencies: number[],
	{ ours, limit }: Row,
): Promise<Row> {
	log(`batch of ${latencies.length}: n8n's OpenAI video node takes about three minutes …`);
	const standIn = await OpenAiStandIn.open();
	try {
		const { id, name } = await client.createCredential('Stand-in', 'openAiApi', {
			apiKey: 'sk-stand-in',
			url: standIn.url,
		});
		const { start, pinData } = startWith(latencies);
		const video: INode = {
			...node(
				'@n8n/n8n-nodes-langchain.openAi',
				'Video',
				{
					resource: 'video',
					operation: 'generate',
					modelId: { __rl: true, mode: 'id', value: 'sora-2' },
					prompt: '={{ $json.prompt }}',
					seconds: 4,
					size: '1280x720',
					options: {},
				},
				2.3,
			),
			credentials: { openAiApi: { id, name } },
		};
		const workflow = await client.createWorkflow({
			name: `OpenAI: ${latencies.length}`,
			...inARow(start, video, report(collector)),
			pinData,
		});
		await usage.quiet();
		collector.times.length = 0;
		const startedAt: number[] = [];
		const ids: string[] = [];
		for (let run = 0; run < OPENAI_RUNS; run++) {
			startedAt.push(Date.now());
			ids.push(await client.run(workflow.id));
			await sleep(LOOK_EVERY_MS);
		}
		await finish(client, workflow.id, ids);
		const seconds = startedAt.map((at, run) => ((collector.times[run] ?? NaN) - at) / 1000);
		log(`batch of ${latencies.length}, n8n's OpenAI video node: ${seconds[0]?.toFixed(1)} s`);
		return {
			id: `batch-${latencies.length}-time-openai`,
			what: `Batch of ${latencies.length}: until all are done`,
			unit: 's',
			ours,
			...peerOf("n8n's OpenAI video node", seconds),
			...(limit && { limit }),
		};
	} finally {
		await standIn.close();
	}
}
