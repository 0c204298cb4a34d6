import { describe as describeExecution, outputItems } from '../n8n/client';
import { Stage } from './stage';

let stage: Stage;
beforeAll(async () => {
	stage = await Stage.open();
}, 900_000);
afterAll(async () => await stage?.close());

/** Runs a batch whose tasks take the given times, and measures it. */
async function runBatch(latencies: number[], options: Record<string, number>) {
	const { service, client } = stage;
	service.clear();
	const switches = latencies.map((latencyMs) => ({ latencyMs }));
	const id = await stage.startImages(switches, options);
	const execution = await client.waitForExecution(id);
	if (execution.status !== 'success') throw new Error(describeExecution(execution));
	const run = execution.data.resultData.runData.Media?.[0];
	const reads = [...service.tasks.values()].map((task) => task.reads);
	return {
		output: outputItems(execution, 'Media'),
		wallMs: run?.executionTime ?? NaN,
		mostReads: Math.max(...reads),
		created: service.tasks.size,
	};
}

test('a batch of 8 whose slowest task takes 6 s is done within 9 s, with at most 4 reads a task', async () => {
	const batch = await runBatch([500, 1000, 2000, 3000, 4000, 5000, 5500, 6000], {});
	console.log(`batch of 8: ${batch.wallMs} ms, at most ${batch.mostReads} reads a task`);
	expect(batch.created).toBe(8);
	expect(batch.output.map(({ json }) => json.state)).toEqual(Array(8).fill('SUCCESS'));
	expect(batch.wallMs).toBeLessThan(9000);
	expect(batch.mostReads).toBeLessThanOrEqual(4);
});

test('a batch of 200 with latencies up to 8 s is done within 12 s, in input order', async () => {
	const latencies = Array.from({ length: 200 }, (_, index) => 1000 + ((index * 7919) % 7001));
	const batch = await runBatch(latencies, { maxInFlight: 200 });
	console.log(`batch of 200: ${batch.wallMs} ms, at most ${batch.mostReads} reads a task`);
	expect(batch.created).toBe(200);
	expect(batch.output.map(({ json }) => (json.input as { prompt: string }).prompt)).toEqual(
		latencies.map((_, index) => `Prompt ${index}`),
	);
	expect(batch.wallMs).toBeLessThan(12_000);
});
