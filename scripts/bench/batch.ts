import { type Collector, withCollector } from '../../test/e2e/collector';
import { until } from '../../test/n8n/until';
import type { Bench } from './bench';
import { loopFor, MAX_IN_FLIGHT, oursFor } from './batchWorkflows';
import { type Row, rowOf } from './results';

const SIZES = [1, 8, 50, 200, 1000];

const LOOK_EVERY_MS = 1_000;
const LONGEST_BATCH_MS = 20 * 60_000;

/** What one run of a batch took. */
interface Measured {
	seconds: number;
	cpuMsEach: number;
}

/** How long the tasks of a batch take, in milliseconds; the same in every run. */
function latenciesOf(size: number): number[] {
	if (size === 1) return [3000];
	if (size === 8) return [500, 1000, 2000, 3000, 4000, 5000, 5500, 6000];
	return Array.from({ length: size }, (_, index) => 1000 + ((index * 7919) % 7001));
}

/** Batches that are waited for: ours, and the loop that users build by hand. */
export async function measureBatches(bench: Bench): Promise<Row[]> {
	return await withCollector(async (collector) => {
		const rows: Row[] = [];
		for (const size of bench.options.quick ? SIZES.slice(0, 3) : SIZES) {
			rows.push(...(await measureSize(bench, collector, size)));
		}
		return rows;
	});
}

async function measureSize(bench: Bench, collector: Collector, size: number): Promise<Row[]> {
	const { stage, options, log } = bench;
	const latencies = latenciesOf(size);
	const ours = await stage.client.createWorkflow(oursFor(stage, collector, latencies));
	const loop = await stage.client.createWorkflow(await loopFor(stage, collector, latencies));
	const measured = { ours: [] as Measured[], loop: [] as Measured[] };
	const workflows = [['ours', ours.id] as const, ['loop', loop.id] as const];
	for (let run = 1; run <= options.runs; run++) {
		for (const [name, id] of workflows) {
			const result = await measureRun(bench, collector, id, size);
			measured[name].push(result);
			log(`batch of ${size}, run ${run}, ${name}: ${JSON.stringify(result)}`);
		}
	}

	const name = size === 1 ? 'One task' : `Batch of ${size.toLocaleString('en')}`;
	const limit = {
		name: size > MAX_IN_FLIGHT ? `${MAX_IN_FLIGHT} at a time` : 'the slowest task',
		value: bestPossible(latencies, MAX_IN_FLIGHT) / 1000,
	};
	const of = (key: keyof Measured) => measured.ours.map((each) => each[key]);
	const peer = (key: keyof Measured) => ({
		name: 'loop built by hand',
		values: measured.loop.map((each) => each[key]),
	});
	const id = `batch-${size}`;
	const what = `${name}: until all are done`;
	const time = rowOf(`${id}-time`, what, 's', of('seconds'), { peer: peer('seconds'), limit });
	const cpu = `${name}: n8n's CPU a task`;
	return [time, rowOf(`${id}-cpu`, cpu, 'ms', of('cpuMsEach'), { peer: peer('cpuMsEach') })];
}

/**
 * @param latencies how long each task takes, in the order in which they are begun
 * @param inFlight how many may be unfinished at once
 * @returns when the last one is finished, where each one is begun the moment there is a place for it
 */
function bestPossible(latencies: readonly number[], inFlight: number): number {
	const places = Array.from({ length: Math.min(inFlight, latencies.length) }, () => 0);
	for (const latency of latencies) {
		const first = places.indexOf(Math.min(...places));
		places[first] = (places[first] ?? 0) + latency;
	}
	return Math.max(...places);
}

async function measureRun(
	{ stage: { service, client }, usage }: Bench,
	collector: Collector,
	workflowId: string,
	size: number,
): Promise<Measured> {
	service.clear();
	collector.reset();
	await usage.quiet();
	const cpu = usage.cpuMs();
	const startedAt = Date.now();
	await finish(client, workflowId, await client.run(workflowId));
	await usage.quiet();
	const { size: created } = service.tasks;
	const states = [...service.tasks.values()].map(({ record }) => record.state);
	const finished = states.filter((state) => state === 'SUCCESS').length;
	if (created !== size || finished !== size) {
		throw new Error(`Of ${size} tasks ${created} were created and ${finished} finished.`);
	}
	return {
		seconds: (Math.max(...collector.times) - startedAt) / 1000,
		cpuMsEach: (usage.cpuMs() - cpu) / size,
	};
}

/** Waits for an execution by the list, which costs n8n next to nothing. */
async function finish(client: Bench['stage']['client'], workflowId: string, executionId: string) {
	const hasEnded = async () => {
		const executions = await client.listExecutions({ workflowId });
		const { status } = executions.find(({ id }) => id === executionId) ?? { status: 'new' };
		if (['new', 'running', 'waiting'].includes(status)) return false;
		if (status !== 'success') throw new Error(`Execution ${executionId} ended with ${status}.`);
		return true;
	};
	await until('a batch to end', LONGEST_BATCH_MS, hasEnded, LOOK_EVERY_MS);
}
