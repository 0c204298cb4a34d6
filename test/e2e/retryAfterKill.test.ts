import type { INode } from 'n8n-workflow';

import { until } from '../n8n/client';
import { inARow, itemsNode, node, prompts } from './nodes';
import { errorOf, itemsOf } from './run';
import { needing } from './needs';
import { openScene } from './scene';

/** n8n keeps nothing of what an execution has created when it is killed: its retry must not order all of it again. */

const scene = openScene();

/** Has a webhook start nodes in a row, and n8n killed when they have come to a point. @returns the killed execution */
async function killed(path: string, nodes: INode[], isThere: () => boolean): Promise<string> {
	const { client, stage } = scene;
	const hook = node('n8n-nodes-base.webhook', 'Hook', { path, httpMethod: 'POST' }, 2);
	hook.webhookId = crypto.randomUUID();
	const { id: workflowId } = await client.createWorkflow({ name: path, ...inARow(hook, ...nodes) });
	await client.publish(workflowId, [`/webhook/${path}`]);
	await fetch(`${stage.webhookUrl}/webhook/${path}`, { method: 'POST' });
	await until('the moment of the kill', 30_000, isThere);
	const [{ id } = { id: '' }] = await client.listExecutions({ workflowId });
	await stage.killAndRestart();
	await until('n8n to notice', 60_000, async () => {
		return (await client.getExecution(id)).status === 'crashed';
	});
	return id;
}

const retry = async (id: string) =>
	await scene.client.waitForExecution(await scene.client.retryExecution(id));

needing('tellsRetried', 'The retry of a killed run').test(
	'a run that was killed while it waited is not ordered again by its retry, nor by the retry of that',
	async () => {
		const slow = prompts('Prompt', [{ latencyMs: 60_000 }, { latencyMs: 60_000 }]);
		const run = await killed('waits', [slow, scene.image()], () => scene.tasks.length === 2);
		const first = await retry(run);
		expect(errorOf(first)?.message).toContain(
			'The execution that is retried was stopped or killed',
		);
		expect(errorOf(await retry(first.id))?.message).toContain('stopped or killed');
		expect(scene.creates).toHaveLength(2);
	},
	240_000,
);

test('a run that was killed before the node had begun is ordered by its retry', async () => {
	const { collector } = scene;
	let isHeld = false;
	void collector.untilHeld(1).then(() => (isHeld = true));
	const before = [itemsNode('Items', [{ taskId: 'none' }]), collector.barrierNode()];
	const run = await killed('before', [...before, scene.image({ prompt: 'a' })], () => isHeld);
	collector.openBarrier();
	expect(itemsOf(await retry(run)).map(({ state }) => state)).toEqual(['SUCCESS']);
	expect(scene.creates).toHaveLength(1);
}, 240_000);
