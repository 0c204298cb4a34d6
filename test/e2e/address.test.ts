import { setTimeout as sleep } from 'node:timers/promises';

import { IMAGE_MODEL } from '../../nodes/MediaGeneration/service/prices';
import { until } from '../n8n/client';
import { Collector } from './collector';
import { needing } from './needs';
import { deliver, inARow, itemsNode, manualTrigger, Stage } from './stage';

let stage: Stage;
let collector: Collector;
beforeAll(async () => {
	// Nobody is there.
	stage = await Stage.open({ WEBHOOK_URL: 'http://127.0.0.1:9/' });
	collector = await Collector.open();
	stage.service.configure({ callbackLost: true, latencyMs: 5_000 });
}, 900_000);
afterAll(async () => {
	collector?.close();
	await stage?.close();
});

/** Two lanes: one that orders pictures, and one that a finished one starts. */
async function publishLanes() {
	const trigger = stage.mediaNode('mediaGenerationTrigger', 'Trigger', {});
	const media = stage.mediaNode('mediaGeneration', 'Media', {
		model: IMAGE_MODEL,
		prompt: 'A lighthouse',
		completion: 'trigger',
	});
	const lanes = [
		inARow(manualTrigger(), itemsNode('Prompts', [{}]), media),
		inARow(trigger, collector.node()),
	];
	const { id } = await stage.client.createWorkflow({
		name: 'Two lanes',
		nodes: lanes.flatMap(({ nodes }) => nodes),
		connections: Object.assign({}, ...lanes.map(({ connections }) => connections)),
	});
	const path = stage.client.webhookPath(trigger, 'callback');
	await stage.client.publish(id, [path]);
	return { id, path };
}

/** Orders a picture. @returns the task, and where its callback is to go */
async function order(workflowId: string) {
	const { client, service } = stage;
	const run = await client.run(workflowId, { trigger: 'Start', destination: 'Media' });
	await client.waitForExecution(run);
	const { taskId = '', webhookUrl = '' } = [...service.tasks.values()].at(-1) ?? {};
	return { run, taskId, address: new URL(webhookUrl) };
}

const arrived = async (taskId: string, timeoutMs = 240_000) =>
	await until(`task ${taskId} to arrive`, timeoutMs, async () =>
		Promise.resolve(collector.seen.includes(taskId)),
	);

needing('deadAddress', 'An address that cannot be reached').test(
	'an n8n that cannot reach its own public address knows which callbacks have come',
	async () => {
		const { id, path } = await publishLanes();
		const { run, taskId, address } = await order(id);
		await sleep(6_000);
		await deliver(`${stage.webhookUrl}${path}${address.search}`, { taskId });
		await arrived(taskId, 30_000);
		const others = async () =>
			(await stage.client.listExecutions({ workflowId: id })).filter((each) => each.id !== run);
		await until('the looks to end', 240_000, async () =>
			(await others()).every(({ status }) => status === 'success'),
		);
		// The one of the callback, the one that looked, and the one that would have started it again.
		expect(await others()).toHaveLength(3);
		expect(collector.seen).toEqual([taskId]);
	},
	400_000,
);

needing('deadAddress', 'A new public address').test(
	'a new public address holds after a restart of n8n, also for tasks that were created before',
	async () => {
		const { id, path } = await publishLanes();
		const before = await order(id);
		const whole = ({ address }: typeof before) => address.origin + address.pathname;
		expect(whole(before)).toBe(`http://127.0.0.1:9${path}`);

		await stage.stop();
		await stage.restart({ WEBHOOK_URL: `${stage.webhookUrl}/` });
		await stage.client.login({ email: 'owner@example.com', password: 'Media-generation-1' });
		await stage.client.waitForWebhook(path);
		const after = await order(id);
		expect(whole(after)).toBe(`${stage.webhookUrl}${path}`);
		for (const { taskId } of [before, after]) await arrived(taskId);
	},
	600_000,
);
