import type { IWorkflowSettings } from 'n8n-workflow';

import { until } from '../n8n/client';
import { inALoop, inARow, itemNodes, prompts, webhook, type Wired } from './nodes';
import { errorOf, Run, statesOf } from './run';
import { openScene } from './scene';

/**
 * n8n keeps nothing of what an execution has created when it is killed: its retry must not order all of it again. All
 * executions are killed at the same time.
 */

const scene = openScene({ clears: false });

const hook = () => webhook('Hook');

/** Has a webhook start a workflow, whose prompts begin with its name. @returns the workflow's id */
const start = async (name: string, wired: Wired, settings?: IWorkflowSettings) =>
	(await scene.stage.callWebhook({ name, ...wired, settings })).id;

/** Waits for the moment at which a workflow is to be killed. @returns its newest execution */
async function at(name: string, workflowId: string, isThere: (run: Run) => boolean): Promise<Run> {
	await until(`the moment of ${name}`, 30_000, () => isThere(new Run(scene, '', workflowId, name)));
	const [{ id } = { id: '' }] = await scene.client.listExecutions({ workflowId });
	return new Run(scene, id, workflowId, name);
}

const SLOW = { latencyMs: 3_600_000 };
const hasOrderedTwo = ({ tasks }: Run) => tasks.length === 2;

/** The retry of a run that has failed. */
async function retryOfAFailedRun(): Promise<Run> {
	const { client, service } = scene;
	service.configure({ outcome: 'FAILURE', latencyMs: 0 });
	const row = inARow(hook(), prompts('Retried', [{}]), scene.image());
	const workflowId = await start('Retried', row);
	const [{ id } = { id: '' }] = await client.waitForExecutions(workflowId, 1);
	service.configure({ outcome: 'SUCCESS', ...SLOW });
	void client.retryExecution(id).catch(() => undefined);
	const run = await at('Retried', workflowId, hasOrderedTwo);
	service.resetSettings();
	return run;
}

let killed: Record<'retry' | 'rounds' | 'early' | 'reads', Run>;
beforeAll(async () => {
	const { collector, service, stage } = scene;
	const retry = await retryOfAFailedRun();

	const loop = inALoop(prompts('Rounds', [{ latencyMs: 0 }, SLOW]), scene.image(), hook());
	const rounds = await start('Rounds', loop, { saveExecutionProgress: true });

	let isHeld = false;
	void collector.untilHeld(1).then(() => (isHeld = true));
	const before = [...itemNodes('Items', [{ taskId: 'none' }]), collector.barrierNode()];
	const order = scene.image({ prompt: 'Early 0' });
	const early = await start('Early', inARow(hook(), ...before, order));

	const { taskId } = scene.slowTask();
	const wait = scene.media({ resource: 'task', operation: 'wait', taskId });
	const reads = await start('Reads', inARow(hook(), itemNodes('Items', [{}]), wait));

	killed = {
		retry,
		rounds: await at('Rounds', rounds, hasOrderedTwo),
		early: await at('Early', early, () => isHeld),
		reads: await at('Reads', reads, () => scene.reads.some(({ path }) => path.endsWith(taskId))),
	};
	await stage.killAndRestart();
	collector.openBarrier();
	service.complete(taskId);
	await until('n8n to notice', 60_000, async () => {
		const all = await Promise.all(Object.values(killed).map(async (run) => await run.now()));
		return all.every(({ status }) => status === 'crashed');
	});
}, 400_000);

test.each([
	['in a later round of a loop, where n8n saves its progress', 'rounds'],
	['in the retry of a failed run', 'retry'],
] as const)(
	'a run that was killed %s is not ordered again by its retry, nor by the retry of that',
	async (_, name) => {
		const run = killed[name];
		const first = await run.retry();
		expect(errorOf(first)?.message).toContain(
			'The execution that is retried was stopped or killed',
		);
		const second = await new Run(scene, first.id, run.workflowId, name).retry();
		expect(errorOf(second)?.message).toContain('stopped or killed');
		expect(run.tasks).toHaveLength(2);
	},
);

test('a run that was killed before the node had begun is ordered by its retry', async () => {
	expect(statesOf(await killed.early.retry())).toEqual(['SUCCESS']);
	expect(killed.early.tasks).toHaveLength(1);
});

test('a run that was killed while it waited for tasks that it did not create goes on with its retry', async () => {
	expect(statesOf(await killed.reads.retry())).toEqual(['SUCCESS']);
});
