import type { IWorkflowSettings } from 'n8n-workflow';

import { until } from '../n8n/client';
import { inALoop, inARow, itemNodes, prompts, webhook, type Wired } from './nodes';
import { errorOf, itemsOf } from './run';
import { needing } from './needs';
import { openScene } from './scene';

/** n8n keeps nothing of what an execution has created when it is killed: its retry must not order all of it again. */

const scene = openScene();

const hook = () => webhook('Hook');

/** Has a webhook start a workflow. @returns the workflow's id */
async function start(name: string, wired: Wired, settings?: IWorkflowSettings): Promise<string> {
	return (await scene.stage.callWebhook({ name, ...wired, settings })).id;
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

const SLOW = { latencyMs: 20_000 };
const isOrdered = (count: number) => () => scene.tasks.length === count;

/** Each gives the execution that was killed, when two tasks had been created. */
const KILLED: Record<string, () => Promise<string>> = {
	'in a later round of a loop, where n8n saves its progress': async () => {
		const loop = inALoop(prompts('Round', [{ latencyMs: 0 }, SLOW]), scene.image(), hook());
		const settings = { saveExecutionProgress: true };
		return await killedWhen(await start('rounds', loop, settings), isOrdered(2));
	},
	'in the retry of a failed run': async () => {
		const { client, service } = scene;
		service.configure({ outcome: 'FAILURE', latencyMs: 0 });
		const retried = inARow(hook(), prompts('Retried', [{}]), scene.image());
		const workflowId = await start('retried', retried);
		const [{ id } = { id: '' }] = await client.waitForExecutions(workflowId, 1);
		service.configure({ outcome: 'SUCCESS', ...SLOW });
		void client.retryExecution(id).catch(() => undefined);
		return await killedWhen(workflowId, isOrdered(2));
	},
};

needing('tellsRetried', 'The retry of a killed run').test.each(Object.entries(KILLED))(
	'a run that was killed %s is not ordered again by its retry, nor by the retry of that',
	async (_, kill) => {
		const first = await retry(await kill());
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
	const before = [...itemNodes('Items', [{ taskId: 'none' }]), collector.barrierNode()];
	const nodes = inARow(hook(), ...before, scene.image({ prompt: 'a' }));
	const run = await killedWhen(await start('before', nodes), () => isHeld);
	collector.openBarrier();
	expect(itemsOf(await retry(run)).map(({ state }) => state)).toEqual(['SUCCESS']);
	expect(scene.creates).toHaveLength(1);
}, 240_000);

test('a run that was killed while it waited for tasks that it did not create goes on with its retry', async () => {
	const { taskId } = scene.slowTask();
	const wait = scene.media({ resource: 'task', operation: 'wait', taskId });
	const workflowId = await start('reads', inARow(hook(), itemNodes('Items', [{}]), wait));
	const run = await killedWhen(workflowId, () => scene.reads.length > 0);
	scene.service.complete(taskId);
	expect(itemsOf(await retry(run)).map(({ state }) => state)).toEqual(['SUCCESS']);
}, 240_000);
