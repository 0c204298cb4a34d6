import type { IDataObject } from 'n8n-workflow';

import { callbackAddress } from '../../nodes/MediaGeneration/callback/address';
import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/prices';
import { outputItems } from '../n8n/client';
import { Cluster, missingForQueueMode } from './cluster';
import { Collector } from './collector';
import { inARow, Stage } from './stage';

const missing = missingForQueueMode();
if (missing !== undefined) console.log(`queue mode is skipped: ${missing}`);
const describeQueueMode = missing === undefined ? describe : describe.skip;

describeQueueMode('queue mode: one main, two webhook processors, two workers', () => {
	let cluster: Cluster;
	let stage: Stage;
	let collector: Collector;

	beforeAll(async () => {
		cluster = await Cluster.prepare();
		stage = await Stage.open(cluster.env);
		await cluster.start(stage.userFolder, 2, 2);
		collector = await Collector.open();
	}, 900_000);
	afterAll(async () => {
		collector?.close();
		await cluster?.close();
		await stage?.close();
	}, 60_000);
	beforeEach(() => {
		stage.reset();
		collector.seen.length = 0;
	});

	test.each(['poll', 'suspend'])('%s: ten tasks come back from a worker', async (completion) => {
		const switches = Array<IDataObject>(10).fill({ latencyMs: [1500, 4000], callbackCopies: 2 });
		const execution = await stage.client.waitForExecution(
			await stage.startImages(switches, {}, { completion, after: [collector.node()] }),
			90_000,
		);
		expect(outputItems(execution, 'Media').map(({ json }) => json.state)).toEqual(
			Array(10).fill('SUCCESS'),
		);
		await collector.settle(10);
		expect(collector.seen).toHaveLength(10);
	});

	test('40 tasks start the workflow 40 times: delivered to both processors at once, and again', async () => {
		const { client, service } = stage;
		const trigger = stage.mediaNode('mediaGenerationTrigger', 'Finished', {});
		const workflow = await client.createWorkflow({
			name: 'Trigger',
			...inARow(trigger, collector.node()),
		});
		const path = client.webhookPath(trigger, 'callback');
		await client.publish(workflow.id);
		const addresses = cluster.webhooks.map(({ url }) =>
			callbackAddress(url + path, service.apiKey),
		);
		const tasks = Array.from({ length: 40 }, (_, index) => {
			const { taskId } = service.createTask(IMAGE_MODEL, { prompt: `Task ${index}` });
			service.complete(taskId);
			return taskId;
		});
		const deliver = async (address: string, taskId: string) => {
			const response = await fetch(address, {
				method: 'POST',
				headers: { 'content-type': 'application/json' },
				body: JSON.stringify({ taskId }),
			});
			return response.status;
		};
		// The main process registers the webhook a moment after it answered.
		const unknown = { taskId: 'no-such-task' };
		for (const address of addresses) {
			const giveUp = Date.now() + 30_000;
			for (;;) {
				const response = await fetch(address, {
					method: 'POST',
					headers: { 'content-type': 'application/json' },
					body: JSON.stringify(unknown),
				});
				if ((await response.text()).includes('for this account') || Date.now() > giveUp) break;
			}
		}
		const both = await Promise.all(
			tasks.flatMap((taskId) => addresses.map(async (address) => await deliver(address, taskId))),
		);
		await collector.settle(40);
		const again = await Promise.all(
			tasks.map(async (taskId, index) => await deliver(addresses[index % 2] ?? '', taskId)),
		);
		await collector.settle(41, 5_000);
		expect([...both, ...again]).toEqual(Array(120).fill(200));
		expect([...collector.seen].sort()).toEqual([...tasks].sort());
		console.log(
			`queue mode: ${both.length + again.length} callbacks, ${collector.seen.length} runs`,
		);
	});
});
