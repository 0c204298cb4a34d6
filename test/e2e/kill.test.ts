import type { IDataObject, INode, IWorkflowSettings } from 'n8n-workflow';

import { until } from '../n8n/client';
import { shortMinute } from '../n8n/settings';
import { AT_ONCE } from './atOnce';
import { inALoop, inARow, itemNodes, node, prompts, webhook, type Wired } from './nodes';
import { errorOf, itemsOf, promptOf, Run, statesOf, succeeded } from './run';
import { openScene } from './scene';

/**
 * n8n is killed, once for all of these runs: while they sleep, in a turn that creates, and in their first turn. Once more
 * while those that sleep still sleep.
 */

const MINUTE = 60_000;
const MINUTE_HERE = 10_000;

/** Ends when the test says so. */
const LATER: IDataObject = { latencyMs: 3_600_000 };

const scene = openScene({ env: shortMinute(MINUTE_HERE), clears: false });

/** Runs that sleep over both kills: their time comes after the second one. */
const SLEEPERS = 60;
const asleep: Run[] = [];

async function startSleepers(): Promise<void> {
	const options = { ...AT_ONCE, checkInterval: 60 };
	for (let index = 0; index < SLEEPERS; index++) {
		const count = index % 20 === 0 ? 10 : 1;
		const order = { name: `Sleeper${index}`, options, after: [scene.collector.node()] };
		asleep.push(await scene.startImages(Array<IDataObject>(count).fill(LATER), order));
	}
	for (const run of asleep) await run.asleep(2);
}

const COUNT = 40;

/** The first turn creates some of the tasks, and later ones the others. A random seed makes no other order of an item. */
const TURNS: IDataObject = {
	suspendAfter: 0.05,
	maxInFlight: 2,
	additionalInput: '={{ { simulate: $json.simulate, seed: Math.random() } }}',
};

async function startTurns(name: string, more: Partial<INode> = {}): Promise<Run> {
	const switches = Array<IDataObject>(COUNT).fill({ latencyMs: 2_500 });
	const behind = node('n8n-nodes-base.noOp', 'Behind', {});
	return await scene.startImages(switches, { name, options: TURNS, node: more, after: [behind] });
}

/** Waits until a run is in a later turn, and has created a task in it. */
async function inALaterTurn(run: Run): Promise<void> {
	await run.asleep();
	const before = run.tasks.length;
	await until('a later turn', MINUTE, () => run.tasks.length > before + 1);
}

const hook = () => webhook('Hook');

/** Has a webhook start a workflow, whose prompts begin with its name. @returns the workflow's id */
const start = async (name: string, wired: Wired, settings?: IWorkflowSettings) =>
	(await scene.stage.callWebhook({ name, ...wired, settings })).id;

/** Waits for the moment at which a workflow is to be killed. @returns its newest execution */
async function at(name: string, workflowId: string, isThere: (run: Run) => boolean): Promise<Run> {
	await until(`the moment of ${name}`, MINUTE, () => isThere(new Run(scene, '', workflowId, name)));
	const [{ id } = { id: '' }] = await scene.client.listExecutions({ workflowId });
	return new Run(scene, id, workflowId, name);
}

const hasOrderedTwo = ({ tasks }: Run) => tasks.length === 2;

/** The retry of a run that has failed, in its first turn. */
async function retryOfAFailedRun(): Promise<Run> {
	const { client, service } = scene;
	service.configure({ outcome: 'FAILURE', latencyMs: 0 });
	const workflowId = await start(
		'Retried',
		inARow(hook(), prompts('Retried', [{}]), scene.image()),
	);
	const [{ id } = { id: '' }] = await client.waitForExecutions(workflowId, 1);
	service.configure({ outcome: 'SUCCESS', ...LATER });
	void client.retryExecution(id).catch(() => undefined);
	const run = await at('Retried', workflowId, hasOrderedTwo);
	service.resetSettings();
	return run;
}

/** Starts what is killed in its first turn. */
async function startFirstTurns() {
	const retry = await retryOfAFailedRun();

	const loop = inALoop(prompts('Rounds', [{ latencyMs: 0 }, LATER]), scene.image(), hook());
	const rounds = await start('Rounds', loop, { saveExecutionProgress: true });

	let isHeld = false;
	void scene.collector.untilHeld(1).then(() => (isHeld = true));
	const before = [...itemNodes('Items', [{ taskId: 'none' }]), scene.collector.barrierNode()];
	const order = scene.image({ prompt: 'Early 0' });
	const early = await start('Early', inARow(hook(), ...before, order));

	const { taskId } = scene.slowTask();
	const wait = scene.media({ resource: 'task', operation: 'wait', taskId });
	const reads = await start('Reads', inARow(hook(), itemNodes('Items', [{}]), wait));
	return {
		taskId,
		retry,
		rounds: await at('Rounds', rounds, hasOrderedTwo),
		early: await at('Early', early, () => isHeld),
		reads: await at('Reads', reads, () => scene.reads.some(({ path }) => path.endsWith(taskId))),
	};
}

let first: Awaited<ReturnType<typeof startFirstTurns>>;
let original: Run;
let saved: Run;
let savedWithData: Run;

beforeAll(async () => {
	const { client, collector, service, stage } = scene;
	await startSleepers();
	first = await startFirstTurns();
	original = await startTurns('Original');
	saved = await startTurns('Saved');
	savedWithData = await startTurns('WithData', { alwaysOutputData: true });
	await Promise.all([original, saved, savedWithData].map(inALaterTurn));
	await stage.killAndRestart();
	collector.openBarrier();
	service.complete(first.taskId);
	await until('n8n to notice', 2 * MINUTE, async () => {
		return (await client.listExecutions({ status: ['running'] })).length === 0;
	});
	await stage.kill();
	// In another order than they were created.
	for (const taskId of asleep.flatMap(({ taskIds }) => taskIds).reverse()) service.complete(taskId);
	const now = new Date().toISOString().replace('T', ' ').replace('Z', '');
	await stage.database.execute(
		`update execution_entity set "waitTill" = '${now}' where status = 'waiting'`,
	);
	await stage.restart();
}, 900_000);

test('runs that slept while n8n was killed twice come out by themselves, once, in order', async () => {
	for (const run of asleep) {
		const items = itemsOf(succeeded(await run.end()));
		const places = items.map((item) => Number(promptOf(item).split(' ').at(-1)));
		expect(places).toEqual([...run.taskIds.keys()]);
		for (const item of items) expect([item.state, item.timedOut]).toEqual(['SUCCESS', undefined]);
	}
	const taskIds = asleep.flatMap((run) => run.taskIds);
	expect(taskIds).toHaveLength(57 + 30);
	await scene.expectArrived(taskIds);
	console.log(`${SLEEPERS} runs, two kills: ${asleep.length} came out by themselves`);
}, 400_000);

test('a run that was killed in a turn goes on with Retry: nothing is paid twice, and what is in doubt is named', async () => {
	expect((await original.now()).status).toBe('crashed');
	await original.expectRetryGoesOn(COUNT);
});

test.each([
	['', () => saved, []],
	// n8n adds an empty item where a node puts out nothing.
	[', also with Always Output Data', () => savedWithData, [{}]],
])(
	'with the currently saved workflow the retry lets no bare input out%s',
	async (_, runOf, before) => {
		const run = runOf();
		const created = run.tasks.length;
		const retried = await run.retry(true);
		expect(run.tasks).toHaveLength(created);
		const runs = retried.data.resultData.runData.Behind ?? [];
		const items = runs.flatMap(({ data }) => data?.main?.[0] ?? []);
		expect(items.map(({ json }) => json)).toEqual([
			...before,
			{
				error: expect.stringContaining('currently saved workflow') as string,
				taskIds: expect.any(Array) as string[],
			},
		]);
		// The original workflow still goes on.
		const states = statesOf(succeeded(await run.retry()));
		expect(states.filter((state) => state === 'SUCCESS').length).toBeGreaterThanOrEqual(15);
	},
	400_000,
);

test.each([
	['in a later round of a loop, where n8n saves its progress', 'rounds'],
	['in the retry of a failed run', 'retry'],
] as const)(
	'a run that was killed in its first turn, %s, is not ordered again by its retry, nor by the retry of that',
	async (_, name) => {
		const run = first[name];
		const refused = await run.retry();
		expect(errorOf(refused)?.message).toContain(
			'The execution that is retried was stopped or killed',
		);
		const second = await new Run(scene, refused.id, run.workflowId, name).retry();
		expect(errorOf(second)?.message).toContain('stopped or killed');
		expect(run.tasks).toHaveLength(2);
	},
);

test('a run that was killed before the node had begun is ordered by its retry', async () => {
	expect(statesOf(await first.early.retry())).toEqual(['SUCCESS']);
	expect(first.early.tasks).toHaveLength(1);
});

test('a run that was killed while it waited for tasks that it did not create goes on with its retry', async () => {
	expect(statesOf(await first.reads.retry())).toEqual(['SUCCESS']);
});
