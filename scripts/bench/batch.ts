import { HOUR, MINUTE, SECOND } from '../../test/durations';
import { type Collector, withCollector } from '../../test/e2e/collector';
import type { Stage } from '../../test/e2e/stage';
import { until } from '../../test/n8n/until';
import type { Bench } from './bench';
import { loopFor, oursFor } from './batchWorkflows';
import { type Row, rowOf } from './results';

const SIZES = [1, 200, 1000];
const QUICK_SIZES = [1, 8];

/** *Max Tasks at the Same Time* of our node. */
const MAX_IN_FLIGHT = 200;

const LOOK_EVERY_MS = 1_000;

/** How long the tasks of a batch take, in milliseconds; the same in every run. */
const latenciesOf = (size: number) =>
	size === 1 ? [3000] : Array.from({ length: size }, (_, nth) => 1000 + ((nth * 7919) % 7001));

/** Batches that are waited for: ours, and the loop that users build by hand. */
export async function measureBatches(bench: Bench): Promise<Row[]> {
	return await withCollector(async (collector) => {
		const rows: Row[] = [];
		for (const size of bench.quick ? QUICK_SIZES : SIZES) {
			rows.push(await measureSize(bench, collector, size));
		}
		return rows;
	});
}

async function measureSize(bench: Bench, collector: Collector, size: number): Promise<Row> {
	const { stage, usage, runs, log } = bench;
	const latencies = latenciesOf(size);
	const maxInFlight = Math.min(size, MAX_IN_FLIGHT);
	const workflows = {
		ours: oursFor(stage, collector, latencies, { maxInFlight }),
		loop: await loopFor(stage, collector, latencies),
	};
	const seconds = { ours: [] as number[], loop: [] as number[] };
	for (let run = 1; run <= runs; run++) {
		for (const name of ['ours', 'loop'] as const) {
			await usage.quiet();
			const took = await runToEnd(stage, collector, workflows[name], size);
			seconds[name].push(took);
			log(`batch of ${size}, run ${run}, ${name}: ${took} s`);
		}
	}
	const name = size === 1 ? 'One task' : `Batch of ${size.toLocaleString('en')}`;
	return rowOf(`${name}: until all are done`, 's', seconds.ours, {
		peer: { name: 'loop built by hand', values: seconds.loop },
		limit: {
			name: size > MAX_IN_FLIGHT ? `${MAX_IN_FLIGHT} at a time` : 'the slowest task',
			value: bestPossible(latencies, maxInFlight) / SECOND,
		},
	});
}

/** @returns when the last task is finished, where each one is begun the moment there is a place for it */
function bestPossible(latencies: readonly number[], inFlight: number): number {
	const places = Array.from({ length: inFlight }, () => 0);
	for (const latency of latencies) {
		const first = places.indexOf(Math.min(...places));
		places[first] = (places[first] ?? 0) + latency;
	}
	return Math.max(...places);
}

/** @returns seconds until the collector hears of the end @throws where not each task has come to its end */
export async function runToEnd(
	{ service, client }: Stage,
	collector: Collector,
	workflow: Parameters<typeof client.createWorkflow>[0],
	size: number,
): Promise<number> {
	service.clear();
	collector.reset();
	const { id } = await client.createWorkflow(workflow);
	const startedAt = Date.now();
	await client.run(id);
	await until('a batch to end', 3 * HOUR, () => collector.times.length > 0, LOOK_EVERY_MS);
	const states = [...service.tasks.values()].map(({ record }) => record.state);
	const finished = states.filter((state) => state === 'SUCCESS').length;
	if (states.length !== size || finished !== size) {
		throw new Error(`Of ${size} tasks ${states.length} were created and ${finished} finished.`);
	}
	await until('n8n to store the end', MINUTE, async () => {
		return (await client.listExecutions({ status: ['running', 'waiting'] })).length === 0;
	});
	return (collector.times[0]! - startedAt) / SECOND;
}
