import type { IDataObject, INode, IWorkflowSettings } from 'n8n-workflow';

import { hasEnded, until } from '../n8n/client';
import { installPackage, packPackage } from '../n8n/package';
import { shortMinute } from '../n8n/settings';
import { inALoop, inARow, itemNodes, node, prompts, webhook, type Wired } from './nodes';
import { errorOf, itemsOf, promptOf, Run, statesOf, succeeded } from './run';
import { AT_ONCE, openScene, type Published } from './scene';

/**
 * n8n is killed, once for all of this: runs that sleep, runs in a turn that creates, runs in their first turn, triggers whose
 * callbacks come late. Then the package is installed anew. What a retry orders: test/workflow/killed.test.ts.
 */

const MINUTE = 60_000;
const MINUTE_HERE = 10_000;

/** Ends when the test says so. */
const LATER: IDataObject = { latencyMs: 3_600_000 };

/** n8n waits so long for the end of a turn, seconds: what the page advises. */
const GRACE_SECONDS = 90;

const scene = openScene({
	env: { ...shortMinute(MINUTE_HERE), N8N_GRACEFUL_SHUTDOWN_TIMEOUT: String(GRACE_SECONDS) },
	clears: false,
});

/** A moment as n8n writes it to its database. */
const dateOf = (ms: number) => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');

/** The numbers of their tasks. */
const SLEEPERS = [6, 1, 1];
const sleepers: Run[] = [];

async function startSleepers(): Promise<void> {
	for (const [index, count] of SLEEPERS.entries()) {
		const order = { name: `Sleeper${index}`, options: AT_ONCE, after: [scene.collector.node()] };
		sleepers.push(await scene.startImages(Array<IDataObject>(count).fill(LATER), order));
	}
	for (const run of sleepers) await run.asleep(2);
}

const COUNT = 20;

async function startTurns(name: string, settings: Partial<INode> = {}): Promise<Run> {
	const after = [node('n8n-nodes-base.noOp', 'Behind', {})];
	return await scene.startTurns(name, COUNT, { node: settings, after });
}

/** A trigger, and tasks for which it is to start. */
interface Lane {
	target: Published;
	tasks: string[];
}

async function callBack({ target, tasks }: Lane): Promise<void> {
	for (const taskId of tasks) {
		await until('the callback to be taken', MINUTE, async () => {
			return (await scene.deliver(target.address, taskId)) === 200;
		});
	}
}

async function expectStarted({ tasks }: Lane): Promise<void> {
	for (const taskId of tasks) await scene.arrived(taskId);
}

/** Starts what triggers are killed in. */
async function startLanes() {
	const { client, stage } = scene;
	const started = { target: await scene.publish(), tasks: stage.finishedTasks(2) };
	await callBack(started);
	await expectStarted(started);

	const pending = { completion: 'trigger', callbackUrl: started.target.url };
	const order = scene.image(pending);
	const left = prompts('Left', Array<IDataObject>(2).fill(LATER));
	const leaves = itemsOf(succeeded(await scene.run('Left', left, order)));

	// They end after the kill.
	const late = { callbackLost: true, latencyMs: 3_600_000 };
	const lost = prompts('Checked', Array<IDataObject>(2).fill(late));
	const orders = [lost, scene.image({ completion: 'trigger' })];
	const target = await scene.publish(scene.trigger(), { orders });
	const ordered = await client.waitForExecution(await client.run(target.id));
	const taskIdsOf = (items: IDataObject[]) => items.map(({ taskId }) => String(taskId));
	const checked = { target, tasks: taskIdsOf(itemsOf(ordered)) };
	return { started, checked, pending: { ...started, tasks: taskIdsOf(leaves) } };
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

/** Starts what is killed before it orders anything. */
async function startUnordered(): Promise<Run> {
	let isHeld = false;
	void scene.collector.untilHeld(1).then(() => (isHeld = true));
	const before = [...itemNodes('Items', [{}]), scene.collector.barrierNode()];
	const order = scene.image({ prompt: 'Early 0' });
	const early = await start('Early', inARow(hook(), ...before, order));
	return await at('Early', early, () => isHeld);
}

/** Starts what is killed in its first turn. n8n stores such a turn half a minute after its order, or later. */
async function startFirstTurn(): Promise<Run> {
	const loop = inALoop(prompts('Rounds', [{ latencyMs: 0 }, LATER]), scene.image(), hook());
	const rounds = await start('Rounds', loop, { saveExecutionProgress: true });
	return await at('Rounds', rounds, ({ tasks }) => tasks.length === 2);
}

/** What is killed in a node behind ours. `asleep`: stored, with its task, before our node ended. */
async function startBehind() {
	const behindOurs = scene.collector.barrierNode();
	// n8n retries no run by hand of which nothing is stored.
	const nodes = [prompts('Behind', [{ latencyMs: 0 }]), scene.image(), behindOurs];
	const workflowId = await start('Behind', inARow(hook(), ...nodes));
	const order = { name: 'Stored', options: AT_ONCE, after: [scene.collector.barrierNode()] };
	const asleep = await (await scene.startImages([LATER], order)).asleep(2);
	scene.service.complete(asleep.taskIds[0] ?? '');
	// One more is held before our node.
	await scene.collector.untilHeld(3, 2 * MINUTE);
	const held = await at('Behind', workflowId, ({ tasks }) => tasks.length === 1);
	return { held, asleep };
}

const BEHIND_A = ['B 0', 'C 0', 'C 1', 'C 2'];
const orderedBehindA = () =>
	scene.tasks.filter(({ record }) => BEHIND_A.includes(promptOf(record))).length;

/** A node behind A that orders what is named after it. */
function behindA(name: string, simulate: IDataObject) {
	const prompt = BEHIND_A.filter((each) => each.startsWith(name)).join('\n');
	const lines = { prompt, promptPerLine: true, options: { additionalInput: { simulate } } };
	return scene.image(lines, { name, onError: 'continueRegularOutput' });
}

/** A run that sleeps in node A. Node B behind it orders a task that ends at once, and node C three tasks. */
async function startThreeNodes(): Promise<Run> {
	const after = [behindA('B', { latencyMs: 0 }), behindA('C', LATER)];
	const run = await scene.startImages([LATER], { name: 'A', options: AT_ONCE, after });
	return await run.asleep(2);
}

/** Has B order and end, and the first turn of C order. */
async function orderBehindA(): Promise<void> {
	scene.service.complete(threeNodes.taskIds[0] ?? '');
	await until('C to order', 2 * MINUTE, () => orderedBehindA() === BEHIND_A.length);
}

/** Retries the run of three nodes: its node A sleeps once more, since the service shows no task for a while. */
async function retryThreeNodes(): Promise<Run> {
	scene.service.configure({ readStatus: { status: 503 } });
	const retry = await threeNodes.beginRetry();
	await retry.asleep();
	scene.service.resetSettings();
	return retry;
}

let firstTurn: Run;
let unordered: Run;
let behind: Awaited<ReturnType<typeof startBehind>>;
let lanes: Awaited<ReturnType<typeof startLanes>>;
let threeNodes: Run;
let retriedNodes: Run;
let original: Run;
let saved: Run;
/** How the retries of the two come out, which run beside each other. */
let goesOn: Promise<void>;
let savedGoesOn: Promise<void>;

/** Waits until n8n has seen what became of the executions that were killed, and has checked what can be checked. */
async function untilSettled(): Promise<void> {
	const { client } = scene;
	const workflowId = lanes.checked.target.id;
	for (const taskId of lanes.checked.tasks) scene.service.complete(taskId);
	await expectStarted(lanes.checked);
	let left: string[] = [];
	const what = () => `n8n to notice, and not to leave ${left.join(', ')}`;
	await until(what, 2 * MINUTE, async () => {
		const checks = await client.listExecutions({ workflowId });
		const running = await client.listExecutions({ status: ['running'] });
		const open = [...running, ...checks.filter(({ status }) => !hasEnded(status))];
		left = open.map(({ id, status }) => `${id} (${status})`);
		return left.length === 0;
	});
}

/** Has runs sleep that wait for a task: whichever of them sleeps is due in an hour, until none is awake. */
async function sleepForAnHour(runs: readonly Run[]): Promise<void> {
	const { database } = scene.stage;
	const ids = runs.map(({ id }) => id).join(', ');
	let quietSince = Infinity;
	await until('all to sleep', 5 * MINUTE, async () => {
		await database.execute(
			`update execution_entity set "waitTill" = '${dateOf(Date.now() + 60 * MINUTE)}'
			where status = 'waiting' and id in (${ids})`,
		);
		const awake = await database.rows(
			`select id from execution_entity where status <> 'waiting' and id in (${ids})`,
		);
		quietSince = awake.length > 0 ? Infinity : Math.min(quietSince, Date.now());
		// n8n has timers for what it saw due at its last looks.
		return Date.now() > quietSince + 2 * MINUTE_HERE;
	});
}

async function expectNoBareInput(): Promise<void> {
	const created = saved.tasks.length;
	const retried = await saved.retry(true);
	expect(saved.tasks).toHaveLength(created);
	const runs = retried.data.resultData.runData.Behind ?? [];
	const items = runs.flatMap(({ data }) => data?.main?.[0] ?? []);
	expect(items.map(({ json }) => json)).toEqual([
		// n8n adds an empty item where a node with Always Output Data puts out nothing.
		{},
		{
			error: expect.stringContaining('currently saved workflow') as string,
			taskIds: expect.any(Array) as string[],
		},
	]);
	// The original workflow still goes on.
	await saved.expectRetryGoesOn(COUNT, 0);
}

const stageAll = async () => {
	const { collector, service, stage } = scene;
	await startSleepers();
	threeNodes = await startThreeNodes();
	unordered = await startUnordered();
	behind = await startBehind();
	lanes = await startLanes();
	await sleepForAnHour(sleepers);
	original = await startTurns('Original');
	saved = await startTurns('Saved', { alwaysOutputData: true });
	firstTurn = await startFirstTurn();
	await Promise.all([orderBehindA(), original.inALaterTurn(), saved.inALaterTurn()]);
	// None of those that end later has come out.
	expect(collector.seen.sort()).toEqual(lanes.started.tasks.sort());
	await stage.kill();
	await installPackage(stage.userFolder, (await packPackage()).tarball);
	// In another order than they were created.
	const later = sleepers.flatMap(({ taskIds }) => taskIds).reverse();
	for (const taskId of [...later, ...lanes.pending.tasks]) service.complete(taskId);
	await stage.database.execute(
		`update execution_entity set "waitTill" = '${dateOf(Date.now())}' where status = 'waiting'`,
	);
	await stage.restart();
	collector.openBarrier();
	await untilSettled();
	await scene.client.waitForWebhook(lanes.started.target.path);
	retriedNodes = await retryThreeNodes();
	expect((await original.now()).status).toBe('crashed');
	goesOn = original.expectRetryGoesOn(COUNT);
	savedGoesOn = expectNoBareInput();
	for (const each of [goesOn, savedGoesOn]) each.catch(() => undefined);
};
beforeAll(stageAll, 900_000);

test('runs that slept come out by themselves, in order', async () => {
	for (const run of sleepers) {
		const items = itemsOf(succeeded(await run.end()));
		const places = items.map((item) => Number(promptOf(item).split(' ').at(-1)));
		expect(places).toEqual([...run.taskIds.keys()]);
		for (const item of items) expect([item.state, item.timedOut]).toEqual(['SUCCESS', undefined]);
	}
	expect(sleepers.map(({ taskIds }) => taskIds.length)).toEqual(SLEEPERS);
}, 400_000);

test('a run that was killed in a node behind ours orders nothing again', async () => {
	const { held, asleep } = behind;
	// Nothing is stored of the first turn.
	expect(errorOf(await held.retry())?.message).toContain('stopped or killed');
	expect(statesOf(succeeded(await asleep.retry()))).toEqual(['SUCCESS']);
	for (const run of [held, asleep]) expect(run.tasks).toHaveLength(1);
});

test('a run that was killed in its first turn, in a later round of a loop, where n8n saves its progress, is not ordered again by its retry, nor by the retry of that', async () => {
	const refused = await firstTurn.retry();
	expect(errorOf(refused)?.message).toContain('stopped or killed');
	const second = await new Run(scene, refused.id, firstTurn.workflowId, 'Rounds').retry();
	expect(errorOf(second)?.message).toContain('stopped or killed');
	expect(firstTurn.tasks).toHaveLength(2);
});

test('a run that was killed in the first turn of a third node: its retry, whose first node sleeps, has the orders of the second and the third node in doubt, although n8n makes up a run of the second', async () => {
	const { resultData } = (await retriedNodes.end()).data;
	const [madeUp, ...runs] = resultData.runData.B ?? [];
	expect(madeUp?.data?.main?.[0]?.[0]?.json).toHaveProperty('isArtificialRecoveredEventItem');
	expect(runs).toHaveLength(1);
	for (const [name, count] of [['B', 1] as const, ['C', 3] as const]) {
		const items = resultData.runData[name]?.at(-1)?.data?.main?.[0] ?? [];
		const errors = items.map(({ json }) => String(json.error));
		expect(errors).toHaveLength(count);
		expect(errors.filter((error) => error.includes('It is not known'))).toHaveLength(count);
	}
	expect([threeNodes.tasks.length, orderedBehindA()]).toEqual([1, BEHIND_A.length]);
});

test('a run that was killed before the node had begun is ordered by its retry', async () => {
	expect(statesOf(await unordered.retry())).toEqual(['SUCCESS']);
	expect(unordered.tasks).toHaveLength(1);
});

describe('a trigger', () => {
	test('whose callbacks were lost is started by the checks', async () => {
		expect(lanes.checked.tasks).toHaveLength(2);
		await expectStarted(lanes.checked);
	});

	test('starts for tasks that end after the kill, whose callbacks come twice', async () => {
		for (const taskId of lanes.pending.tasks) {
			await scene.service.deliverCallback(taskId, { copies: 2 });
		}
		await expectStarted(lanes.pending);
	});

	test('starts for nothing that it has started for before', async () => {
		await callBack(lanes.started);
		const { started, checked, pending } = lanes;
		const asleep = sleepers.flatMap(({ taskIds }) => taskIds);
		const all = [started, checked, pending].flatMap(({ tasks }) => tasks);
		await scene.expectArrived([...all, ...asleep]);
	});
});

test('a run that was killed in a turn goes on with Retry: nothing is paid twice, and what is in doubt is named', async () => {
	await goesOn;
}, 400_000);

test('with the currently saved workflow the retry lets no bare input out', async () => {
	await savedGoesOn;
}, 400_000);

describe('n8n is shut down while a run orders', () => {
	const CALM = 14;

	test(
		'n8n ends when the turn has ended, and the run comes out, each item once, and nobody does anything',
		async () => {
			const { stage } = scene;
			const run = await (await scene.startTurns('Calm', CALM)).inALaterTurn();
			const from = Date.now();
			await stage.n8n.stop(GRACE_SECONDS * 1_000 + MINUTE);
			const tookMs = Date.now() - from;
			const account = await stage.n8n.exited;
			console.log(`n8n ${account} after ${tookMs} ms`);
			expect(account).toBe('exited with 0');
			expect(tookMs).toBeLessThan(GRACE_SECONDS * 1_000);
			await stage.restart();
			await scene.client.login();
			const items = itemsOf(succeeded(await run.end(8 * MINUTE)));
			expect(items.map(({ state }) => state)).toEqual(Array(CALM).fill('SUCCESS'));
			expect(run.tasks).toHaveLength(CALM);
		},
		15 * MINUTE,
	);
});
