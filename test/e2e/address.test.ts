import { setTimeout as sleep } from 'node:timers/promises';
import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/prices';
import { needing } from './needs';
import { inARow, itemsNode, manualTrigger, Stage } from './stage';

let stage: Stage;
beforeAll(async () => {
	stage = await Stage.open({ WEBHOOK_URL: 'https://before.example.com/' });
	stage.service.configure({ callbackLost: true, latencyMs: 60_000 });
}, 900_000);
afterAll(async () => await stage?.close());

needing('addressesThatStay', 'A new public address').test(
	'a new public address is noted when the workflow is published anew, as the pages say, and not by a restart',
	async () => {
		const trigger = stage.mediaNode('mediaGenerationTrigger', 'Trigger', {});
		const media = stage.mediaNode('mediaGeneration', 'Media', {
			model: IMAGE_MODEL,
			prompt: 'A lighthouse',
			completion: 'trigger',
		});
		const { nodes, connections } = inARow(manualTrigger(), itemsNode('Prompts', [{}]), media);
		const workflow = await stage.client.createWorkflow({
			name: 'Two lanes',
			nodes: [...nodes, trigger],
			connections,
		});
		const path = stage.client.webhookPath(trigger, 'callback');
		await stage.client.publish(workflow.id, [path]);
		const order = async () => {
			await stage.client.waitForExecution(
				await stage.client.run(workflow.id, { trigger: 'Start', destination: 'Media' }),
			);
			const [webhookUrl = ''] = [...stage.service.tasks.values()].map((task) => task.webhookUrl);
			stage.service.clear();
			return new URL(webhookUrl).origin + new URL(webhookUrl).pathname;
		};
		expect(await order()).toBe(`https://before.example.com${path}`);

		await stage.stop();
		await stage.restart({ WEBHOOK_URL: 'https://after.example.com/' });
		await stage.client.login({ email: 'owner@example.com', password: 'Media-generation-1' });
		// Long enough for n8n to have activated its workflows.
		await sleep(5_000);
		expect(await order()).toBe(`https://before.example.com${path}`);

		await stage.client.unpublish(workflow.id);
		await stage.client.publish(workflow.id, [path]);
		expect(await order()).toBe(`https://after.example.com${path}`);
	},
	240_000,
);
