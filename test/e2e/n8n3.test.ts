import type { IDataObject } from 'n8n-workflow';

import { describe as tell, type Execution, outputItems } from '../n8n/client';
import { chooseN8nVersion, DEFAULT_VERSION } from '../n8n/version';
import { missingForQueueMode } from './cluster';
import { AT_ONCE } from './atOnce';
import { Collector } from './collector';
import { inARow, itemsNode, manualTrigger, Stage } from './stage';

/**
 * What `N8N_SETTINGS=n8n3` gives all of these tests is what it says, and the ways of this package go there: this much of
 * them is run on every push.
 */

const { version } = chooseN8nVersion();
const missing =
	version === DEFAULT_VERSION ? missingForQueueMode() : `n8n ${version} is not ${DEFAULT_VERSION}`;
if (missing !== undefined) console.log(`the defaults of n8n 3 are skipped: ${missing}`);
const describeDefaults = missing === undefined ? describe : describe.skip;

describeDefaults('with what n8n 3 will set', () => {
	let stage: Stage;
	let collector: Collector;

	beforeAll(async () => {
		stage = await Stage.openLikeN8n3();
		collector = await Collector.open();
	}, 900_000);
	afterAll(async () => {
		collector?.close();
		await stage?.close();
	}, 60_000);
	beforeEach(() => {
		stage.reset();
		collector.reset();
	});

	const media = (execution: Execution) => outputItems(execution, 'Media');

	/** Runs images by hand, which is on the worker. */
	async function run(switches: IDataObject[], options: IDataObject) {
		const id = await stage.startImages(switches, options, { after: [collector.node()] });
		const execution = await stage.client.waitForExecution(id, 150_000);
		expect(tell(execution)).toBe('success');
		return { id, execution };
	}

	test('a batch that is held is run on the worker, its files are in the file system', async () => {
		const { id, execution } = await run([{}, {}], { downloadResults: true });
		expect((await stage.cluster.workerOf(id)).pid).toBeGreaterThan(0);
		for (const item of media(execution)) {
			expect(item.binary?.data).toMatchObject({ mimeType: 'image/png' });
			expect(item.binary?.data?.id).toMatch(/^filesystem/);
		}
		expect(media(execution)).toHaveLength(2);
	});

	test('a suspended run is resumed by its callbacks, with its files', async () => {
		const { execution } = await run([{ latencyMs: 6000 }, { latencyMs: 5000 }], {
			...AT_ONCE,
			downloadResults: true,
		});
		expect(media(execution).map(({ json }) => json.state)).toEqual(['SUCCESS', 'SUCCESS']);
		expect(media(execution).every(({ binary }) => binary?.data?.id?.startsWith('filesystem'))).toBe(
			true,
		);
		await collector.settle(2);
		expect([...collector.seen].sort()).toEqual([...stage.service.tasks.keys()].sort());
	}, 180_000);

	test('Notify a Trigger, by hand, finds the trigger of its own workflow once that is published', async () => {
		const { client, service } = stage;
		const trigger = stage.mediaNode('mediaGenerationTrigger', 'Finished', {});
		const orders = inARow(
			manualTrigger(),
			itemsNode('Prompts', [{ prompt: 'one' }, { prompt: 'two' }]),
			stage.mediaNode('mediaGeneration', 'Media', {
				resource: 'image',
				operation: 'generate',
				prompt: '={{ $json.prompt }}',
				completion: 'trigger',
			}),
		);
		const results = inARow(trigger, collector.node());
		const { id } = await client.createWorkflow({
			name: 'Two lanes',
			nodes: [...orders.nodes, ...results.nodes],
			connections: { ...orders.connections, ...results.connections },
		});
		const order = async () => await client.waitForExecution(await client.run(id));
		expect(tell(await order())).toContain('No active Media Generation Trigger was found');
		expect(service.tasks.size).toBe(0);

		await client.publish(id, [client.webhookPath(trigger, 'callback')]);
		const taskIds = media(await order()).map(({ json }) => json.taskId);
		expect(taskIds).toHaveLength(2);
		await collector.settle(2);
		expect([...collector.seen].sort()).toEqual(taskIds.sort());
	});
});
