import type { IWorkflowSettings } from 'n8n-workflow';

import { until } from '../n8n/client';
import { inARow, itemNodes, node, prompts, to, type Wired } from './nodes';
import { errorOf, itemsOf } from './run';
import { needing } from './needs';
import { openScene } from './scene';

/** n8n keeps nothing of what an execution has created when it is killed: its retry must not order all of it again. */

const scene = openScene();

/** Has a webhook start nodes. @returns the workflow's id */
async function start(
	path: string,
	{ nodes, connections }: Wired,
	settings?: IWorkflowSettings,
): Promise<string> {
	const { client, stage } = scene;
	const hook = node('n8n-nodes-base.webhook', 'Hook', { path, httpMethod: 'POST' }, 2);
	hook.webhookId = crypto.randomUUID();
	const { id: workflowId } = await client.createWorkflow({
		name: path,
		nodes: [hook, ...nodes],
		connections: { ...connections, Hook: { main: to(nodes[0]?.name ?? '') } },
		settings,
	});
	await client.publish(workflowId, [`/webhook/${path}`]);
	await fetch(`${stage.webhookUrl}/webhook/${path}`, { method: 'POST' });
	return workflowId;
}

/** Kills n8n when the last execution has come to a point. @returns the killed execution */
async function killedWhen(workflowId: string, isThere: () => boolean): Promise<string> {
	const { client, stage } = scene;
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

async function expectRefused(id: string, creates: number): Promise<void> {
	const first = await retry(id);
	expect(errorOf(first)?.message).toContain('The execution that is retried was stopped or killed');
	expect(errorOf(await retry(first.id))?.message).toContain('stopped or killed');
	expect(scene.creates).toHaveLength(creates);
}

const { test: testOf } = needing('tellsRetried', 'The retry of a killed run');

testOf(
	'a run that was killed while it waited is not ordered again by its retry, nor by the retry of that',
	async () => {
		const slow = prompts('Prompt', [{ latencyMs: 60_000 }, { latencyMs: 60_000 }]);
		const workflowId = await start('waits', inARow(slow, scene.image()));
		const run = await killedWhen(workflowId, () => scene.tasks.length === 2);
		await expectRefused(run, 2);
	},
	240_000,
);

testOf(
	'nor one that was killed in a later round of a loop, where n8n saves its progress',
	async () => {
		const items = prompts('Round', [{ latencyMs: 0 }, { latencyMs: 20_000 }]);
		const loop = node('n8n-nodes-base.splitInBatches', 'Loop', { options: {} }, 3);
		const image = scene.image();
		const { nodes, connections } = inARow(items, loop, image);
		const rounds = { Loop: { main: [[], ...to(image.name)] }, [image.name]: { main: to('Loop') } };
		const wired = { nodes, connections: { ...connections, ...rounds } };
		const workflowId = await start('rounds', wired, { saveExecutionProgress: true });
		const run = await killedWhen(workflowId, () => scene.tasks.length === 2);
		await expectRefused(run, 2);
	},
	240_000,
);

testOf(
	'nor the retry of a failed run, which was killed itself',
	async () => {
		const { client, service } = scene;
		service.configure({ outcome: 'FAILURE', latencyMs: 0 });
		const workflowId = await start('retried', inARow(prompts('Retried', [{}]), scene.image()));
		const [{ id } = { id: '' }] = await client.waitForExecutions(workflowId, 1);
		service.configure({ outcome: 'SUCCESS', latencyMs: 20_000 });
		void client.retryExecution(id).catch(() => undefined);
		const run = await killedWhen(workflowId, () => scene.tasks.length === 2);
		await expectRefused(run, 2);
	},
	240_000,
);

test('a run that was killed before the node had begun is ordered by its retry', async () => {
	const { collector } = scene;
	let isHeld = false;
	void collector.untilHeld(1).then(() => (isHeld = true));
	const before = [...itemNodes('Items', [{ taskId: 'none' }]), collector.barrierNode()];
	const nodes = inARow(...before, scene.image({ prompt: 'a' }));
	const run = await killedWhen(await start('before', nodes), () => isHeld);
	collector.openBarrier();
	expect(itemsOf(await retry(run)).map(({ state }) => state)).toEqual(['SUCCESS']);
	expect(scene.creates).toHaveLength(1);
}, 240_000);

test('a run that was killed while it waited for tasks that it did not create goes on with its retry', async () => {
	const { taskId } = scene.slowTask();
	const wait = scene.media({ resource: 'task', operation: 'wait', taskId });
	const workflowId = await start('reads', inARow(itemNodes('Items', [{}]), wait));
	const run = await killedWhen(workflowId, () => scene.reads.length > 0);
	scene.service.complete(taskId);
	expect(itemsOf(await retry(run)).map(({ state }) => state)).toEqual(['SUCCESS']);
}, 240_000);
