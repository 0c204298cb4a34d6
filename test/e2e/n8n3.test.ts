import type { IDataObject } from 'n8n-workflow';

import { describe as tell, type Execution, outputItems } from '../n8n/client';
import { chooseN8nVersion, DEFAULT_VERSION } from '../n8n/version';
import { Cluster, missingForQueueMode } from './cluster';
import { Collector } from './collector';
import { Lane } from './lane';
import { Stage } from './stage';

/**
 * What n8n 3 will set, on the n8n of today, in queue mode: unverified packages stated, runs by hand on a worker, files
 * in the file system, and its protection against requests to private addresses with these tests' own allowed.
 */
const N8N_3 = {
	N8N_UNVERIFIED_PACKAGES_ENABLED: 'true',
	OFFLOAD_MANUAL_EXECUTIONS_TO_WORKERS: 'true',
	N8N_DEFAULT_BINARY_DATA_MODE: 'filesystem',
	N8N_SSRF_PROTECTION_ENABLED: 'true',
	N8N_SSRF_ALLOWED_IP_RANGES: '127.0.0.0/8',
};

const { version } = chooseN8nVersion();
const missing =
	version === DEFAULT_VERSION ? missingForQueueMode() : `n8n ${version} is not ${DEFAULT_VERSION}`;
if (missing !== undefined) console.log(`the defaults of n8n 3 are skipped: ${missing}`);
const describeDefaults = missing === undefined ? describe : describe.skip;

describeDefaults('with what n8n 3 will set', () => {
	let cluster: Cluster;
	let stage: Stage;
	let collector: Collector;

	beforeAll(async () => {
		cluster = await Cluster.prepare();
		Object.assign(cluster.env, N8N_3);
		stage = await Stage.open(cluster.env);
		await cluster.start(stage.userFolder, 1, 1);
		collector = await Collector.open();
	}, 900_000);
	afterAll(async () => {
		collector?.close();
		await cluster?.close();
		await stage?.close();
	}, 60_000);
	beforeEach(() => {
		stage.reset();
		collector.reset();
	});

	const media = (execution: Execution) => outputItems(execution, 'Media');

	/** Runs images by hand, which is on the worker. */
	async function run(switches: IDataObject[], options: IDataObject, completion: string) {
		const id = await stage.startImages(switches, options, {
			completion,
			after: [collector.node()],
		});
		const execution = await stage.client.waitForExecution(id, 150_000);
		expect(tell(execution)).toBe('success');
		return { id, execution };
	}

	test('a batch by polling is run on the worker, its files are in the file system', async () => {
		const { id, execution } = await run([{}, {}], { downloadResults: true }, 'poll');
		expect((await cluster.workerOf(id)).pid).toBeGreaterThan(0);
		for (const item of media(execution)) {
			expect(item.binary?.data).toMatchObject({ mimeType: 'image/png' });
			expect(item.binary?.data?.id).toMatch(/^filesystem/);
		}
		expect(media(execution)).toHaveLength(2);
	});

	test('a suspended run is resumed by its callbacks, with its files', async () => {
		const { execution } = await run(
			[{ latencyMs: 3000 }, { latencyMs: 2000 }],
			{ downloadResults: true },
			'suspend',
		);
		expect(media(execution).map(({ json }) => json.state)).toEqual(['SUCCESS', 'SUCCESS']);
		expect(media(execution).every(({ binary }) => binary?.data?.id?.startsWith('filesystem'))).toBe(
			true,
		);
		await collector.settle(2);
		expect([...collector.seen].sort()).toEqual([...stage.service.tasks.keys()].sort());
	}, 180_000);

	test('a trigger starts its workflow once for each task', async () => {
		const lane = await Lane.publish(stage, cluster, collector);
		const taskIds = lane.finishedTasks(5);
		for (let copy = 0; copy < 2; copy++) {
			await Promise.all(taskIds.map(async (id) => await lane.deliver(id, lane.addresses)));
		}
		expect(await lane.settle("n8n 3's defaults")).toMatchObject({
			runs: 5,
			duplicates: 0,
			losses: 0,
		});
	});
});
