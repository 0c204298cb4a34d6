import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { isTerminal } from './n8n/database';
import { connect } from './n8n/nodes';
import { StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import {
	field,
	imageNode,
	item,
	keepsGoing,
	many,
	MINUTE,
	prompts,
	SECOND,
	stage,
	threeTries,
} from './support';
import { store } from './processedData';
import type { TestNode, TestWorkflow } from './testWorkflow';
import { pass, passUntil } from './time';

/** Retries of workflows with several nodes, of later rounds of a loop, and of retries, on n8n's own engine. */

const on = stage();
const promptsOrdered = () => on.inputs.map(({ prompt }) => String(prompt));
const ordersOf = (name: string) => promptsOrdered().filter((prompt) => prompt.startsWith(name));

/** Retries an execution, and does not wait for the end. */
const retryOf = ({ n8n, row }: StoredRun) => new StoredRun(n8n, n8n.executions.retry(row)!);

/** What a node has put out, in all its runs. */
const outputOf = ({ data }: StoredRun, name: string) =>
	(data.resultData.runData[name] ?? []).flatMap(({ data: out }) => out?.main?.[0] ?? []);

const inDoubt = (items: INodeExecutionData[]) =>
	field(items, 'error').filter((error) => String(error).startsWith('It is not known'));

/** A node behind the tested one, with the options of the node; each of its pictures takes so many seconds. */
interface Behind {
	name: string;
	pictures: number;
	seconds: number;
	options?: IDataObject;
}

/** A workflow in which the tested node orders what its items say, and the nodes behind order some pictures each. */
class InARow extends WorkflowN8n {
	/** Whether the nodes behind are listed the other way round. n8n looks in this order at what a kill took away. */
	isReversed = false;

	constructor(
		test: TestWorkflow,
		private readonly behind: readonly Behind[],
	) {
		super(test);
	}

	override get definition() {
		const { nodes, connections } = super.definition;
		const tested = nodes.find(({ name }) => name === this.tested)!;
		const added = this.behind.map(({ name, pictures, seconds, options }) => {
			const lines = Array.from({ length: pictures }, (_, index) => `${name}${index}`).join('\n');
			const additionalInput = JSON.stringify({ simulate: { latencyMs: seconds * SECOND } });
			const parameters = {
				prompt: `={{ ${JSON.stringify(lines)} }}`,
				promptPerLine: true,
				downloadResults: false,
				options: { ...options, additionalInput },
			};
			return { ...tested, id: name, name, parameters, executeOnce: true };
		});
		const names = [this.tested, ...added.map(({ name }) => name)];
		return {
			nodes: [...nodes, ...(this.isReversed ? added.toReversed() : added)],
			connections: {
				...connections,
				...connect(...names.slice(1).map((name, index) => `${names[index]} > ${name}`)),
			},
		};
	}
}

describe('A, and B behind A', () => {
	const B = 3;

	const inARow = (behind: readonly Behind[], latencyMs = 4 * MINUTE, more: TestNode = {}) =>
		new InARow(
			on.workflow(imageNode({ suspendAfter: 1 }, more), prompts(item('A', { latencyMs }))),
			behind,
		);
	const twoNodes = () => inARow([{ name: 'B', pictures: B, seconds: 90 }]);

	/** A has slept and ended, and B has ordered all in its first turn when n8n is killed. */
	async function killedInB(): Promise<StoredRun> {
		const run = twoNodes().begin();
		await passUntil(() => ordersOf('B').length === B);
		expect(run.row.sleeps).toBeGreaterThan(0);
		await run.n8n.kill(run);
		return run;
	}

	/** B has all its orders in doubt, and has ordered nothing again. */
	function expectDoubts({ ran }: StoredRun): void {
		expect(ran.error?.message).toContain('It is not known whether the task was created');
		expect([ordersOf('A').length, ordersOf('B').length]).toEqual([1, B]);
	}

	it('killed in the first turn of B: the retry has its orders in doubt', async () => {
		const run = await killedInB();
		const retry = await run.retry();
		await retry.end();
		expectDoubts(retry);
		expect(retry.ran.description).toContain('(execution 1, item 1)');
	});

	it('killed in the first turn of B when some are ordered: the retry has all of them in doubt, since nothing was stored of B', async () => {
		const options = { maxInFlight: 2 };
		const behind = [{ name: 'B', pictures: 5, seconds: 25, options }];
		const run = inARow(behind, 4 * MINUTE, keepsGoing).begin();
		await passUntil(() => ordersOf('B').length === 4);
		await run.n8n.kill(run);
		const retry = await run.retry();
		await retry.end();
		expect(ordersOf('B')).toEqual(['B0', 'B1', 'B2', 'B3']);
		expect(inDoubt(outputOf(retry, 'B'))).toHaveLength(5);
	});

	it.each([
		['and is listed before C', false, [2, 1]],
		['and is listed behind C', true, [1, 2]],
	])(
		'killed in the first turn of C, when B has ended, %s: the retry has the orders of both in doubt, although n8n makes up runs',
		async (_where, isReversed, runs) => {
			const behind = [
				{ name: 'B', pictures: B, seconds: 5 },
				{ name: 'C', pictures: 2, seconds: 90 },
			];
			const n8n = inARow(behind, 4 * MINUTE, keepsGoing);
			n8n.isReversed = isReversed;
			const run = n8n.begin();
			await passUntil(() => ordersOf('C').length === 2);
			await n8n.kill(run);
			const retry = await run.retry();
			await retry.end();
			expect(retry.row.status).toBe('success');
			const { runData } = retry.data.resultData;
			expect(['B', 'C'].map((name) => runData[name]?.length)).toEqual(runs);
			expect([ordersOf('B').length, ordersOf('C').length]).toEqual([B, 2]);
			expect(['B', 'C'].map((name) => inDoubt(outputOf(retry, name)).length)).toEqual([B, 2]);
		},
	);

	it('killed in the first turn of B, and A sleeps in the retry: n8n tells a woken retry nothing of the first execution, and B orders nothing again all the same', async () => {
		const run = await killedInB();
		// The service shows no task for a while.
		on.service.configure({ readStatus: { status: 503 } });
		const retry = retryOf(run);
		await passUntil(() => retry.row.sleeps > 0);
		on.service.resetSettings();
		await retry.end();
		expect(retry.row.wakes).toBeGreaterThan(0);
		expectDoubts(retry);
	});

	it.each(['before', 'after'])(
		'killed in the first turn of B, and the retry is killed in A %s a sleep: the retry of that orders nothing again at B',
		async (when) => {
			const run = await killedInB();
			on.service.configure({ readStatus: { status: 503 } });
			const retry = retryOf(run);
			await passUntil(() =>
				when === 'after' ? retry.row.wakes > 0 : retry.row.status === 'running',
			);
			await retry.n8n.kill(retry);
			on.service.resetSettings();
			const again = await retry.retry();
			await again.end();
			expectDoubts(again);
		},
	);

	it('killed in the first turn of A, and the retry is killed in B: the retry of that orders nothing at A', async () => {
		const behind = [{ name: 'B', pictures: B, seconds: 90 }];
		const run = inARow(behind, 4 * MINUTE, keepsGoing).begin();
		await passUntil(() => ordersOf('A').length === 1);
		await run.n8n.kill(run);
		const retry = retryOf(run);
		await passUntil(() => ordersOf('B').length === B);
		await run.n8n.kill(retry);
		await (await retry.retry()).end();
		expect(ordersOf('A')).toHaveLength(1);
	});
});

describe('a loop', () => {
	const rounds = (...latencies: number[]): INodeExecutionData[][] =>
		latencies.map((seconds, index) =>
			prompts(item(`round ${index}`, { latencyMs: seconds * SECOND })),
		);
	const loop = (...latencies: number[]) =>
		new WorkflowN8n({
			...on.workflow(imageNode({ suspendAfter: 1 })),
			rounds: rounds(...latencies),
		});

	it('killed in the first turn of a later round, and the round before sleeps in the retry: the later round orders nothing again', async () => {
		const run = loop(240, 90).begin();
		await passUntil(() => on.created === 2);
		await run.n8n.kill(run);
		on.service.configure({ readStatus: { status: 503 } });
		const retry = retryOf(run);
		await passUntil(() => retry.row.sleeps > 0);
		on.service.resetSettings();
		const { error } = await retry.end();
		expect(error?.message).toContain('It is not known whether the task was created');
		expect(on.created).toBe(2);
	});

	it('killed in a later turn of its first round: the retry goes on, and orders the later rounds', async () => {
		const run = loop(240, 10, 10).begin();
		await passUntil(() => run.row.wakes > 0);
		await run.n8n.kill(run);
		const { run: ended } = await (await run.retry()).end();
		expect(ended.status).toBe('success');
		expect(promptsOrdered()).toEqual(['round 0', 'round 1', 'round 2']);
	});
});

describe('a loop of short rounds', () => {
	const ROUNDS = 12;

	/** The loop has slept twice, and is killed so many seconds after its second wake. */
	async function killedAfter(seconds: number): Promise<StoredRun> {
		const rounds = Array.from({ length: ROUNDS }, (_, index) =>
			prompts(item(`round ${index}`, { latencyMs: 20 * SECOND })),
		);
		const node = imageNode({ suspendAfter: 1 }, keepsGoing);
		const n8n = new WorkflowN8n({ ...on.workflow(node), rounds });
		await pass(12 * SECOND);
		const run = n8n.begin();
		await passUntil(() => run.row.sleeps === 2);
		await passUntil(() => run.row.wakes === 2);
		await pass(seconds * SECOND);
		await n8n.kill(run);
		return run;
	}

	it.each([0, 21, 49])(
		'killed %d s after a wake: the retry orders each round that had not ordered, and has exactly those in doubt that had, and were not stored',
		async (seconds) => {
			const run = await killedAfter(seconds);
			const storedAt = run.sleeps.at(-1)!.from;
			const lost = on.tasks.filter(({ createdAt }) => createdAt > storedAt).length;
			const retry = retryOf(run);
			await passUntil(() => isTerminal(retry.row.status));
			expect(retry.row.status).toBe('success');
			const expected = Array.from({ length: ROUNDS }, (_, index) => `round ${index}`);
			expect(promptsOrdered()).toEqual(expected);
			const output = outputOf(retry, 'Media');
			expect(output).toHaveLength(ROUNDS);
			expect(inDoubt(output)).toHaveLength(lost);
			expect(field(output, 'state').filter((state) => state === 'SUCCESS')).toHaveLength(
				ROUNDS - lost,
			);
		},
	);

	it('killed, and its retry is killed in a later round: the retry of that orders each round once as well', async () => {
		const run = await killedAfter(28);
		const before = on.created;
		const retry = retryOf(run);
		await passUntil(() => on.created === before + 2);
		await run.n8n.kill(retry);
		const again = retryOf(retry);
		await passUntil(() => isTerminal(again.row.status));
		expect(again.row.status).toBe('success');
		expect(new Set(promptsOrdered()).size).toBe(ROUNDS);
		expect(on.created).toBe(ROUNDS);
	});
});

describe('several retries of one execution', () => {
	const refusesAll = { createStatus: { status: 401, body: { error: { message: 'no such key' } } } };

	it('a retry that has failed is the one to retry: a second retry of the execution orders nothing, and names it', async () => {
		on.service.configure(refusesAll);
		const first = await on.start(imageNode(), prompts('a', 'b', 'c'));
		expect(first.row.status).toBe('error');
		const retry = await first.retry();
		expect((await retry.end()).error?.message).toMatch(/key/i);
		on.service.resetSettings();
		const second = await (await first.retry()).end();
		expect(second.error?.message).toBe(
			'Another retry of execution 1 goes on with its tasks: execution 2',
		);
		expect(second.description).toContain('If execution 2 has failed, retry execution 2.');
		const again = await (await retry.retry()).end();
		expect(field(again.output, 'state')).toEqual(['SUCCESS', 'SUCCESS', 'SUCCESS']);
		expect(on.created).toBe(3);
	});

	it('the retry of a retry that has ordered nothing orders', async () => {
		on.service.configure(refusesAll);
		const first = await on.start(imageNode(), prompts('a', 'b', 'c'));
		const retry = await first.retry();
		await retry.end();
		on.service.resetSettings();
		const { output } = await (await retry.retry()).end();
		expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS', 'SUCCESS']);
		expect(on.created).toBe(3);
	});

	it('a retry that goes on from a retry that has ordered leaves no way past that retry', async () => {
		const node = imageNode({ suspendAfter: 1, maxInFlight: 2 }, keepsGoing);
		const first = await on.start(node, prompts(...many(40, 30 * SECOND)));
		const moreThan = async (count: number) => await passUntil(() => on.created > count);
		await moreThan(on.created);
		await first.n8n.kill(first);
		const retry = retryOf(first);
		await moreThan(on.created);
		await first.n8n.kill(retry);
		on.service.configure(refusesAll);
		await (await retry.retry()).end();
		on.service.resetSettings();
		const ordered = on.created;
		const last = await (await first.retry()).end();
		expect(on.created).toBe(ordered);
		expect(JSON.stringify(last.output)).toContain('Another retry of execution 1');
		await (await retry.retry()).end();
		expect(new Set(promptsOrdered()).size).toBe(promptsOrdered().length);
	});

	it.each(['stopped', 'killed'])(
		'a retry that was %s while it was stored goes on by a retry of it',
		async (how) => {
			on.service.configure(refusesAll);
			const first = await on.start(imageNode(), prompts('a', 'b'));
			on.service.resetSettings();
			const retry = await first.retry();
			expect(retry.isAsleep).toBe(true);
			if (how === 'killed') {
				first.n8n.processes.living('main')[0]?.die();
				await passUntil(() => first.n8n.processes.living('main').length > 0);
			}
			await retry.stop();
			expect((await (await first.retry()).end()).error?.message).toContain('execution 2');
			const { output } = await (await retry.retry()).end();
			expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS']);
			expect(on.created).toBe(2);
		},
	);
});

it('orders in doubt count for the budget of a retry', async () => {
	// Forty items of 0.08 USD come to 3.20.
	const options = { suspendAfter: 1, maxInFlight: 5, maxCostUsd: 3.2 };
	const images = prompts(...many(40, 30 * SECOND));
	const run = await on.start(imageNode(options, keepsGoing), images);
	const before = on.created;
	await passUntil(() => on.created >= before + 5);
	await run.n8n.kill(run);
	const sent = on.created - before;
	const { output } = await (await run.retry()).end();
	const doubts = inDoubt(output).length;
	expect(doubts).toBe(20);
	expect(on.created).toBe(40 - doubts + sent);
});

describe('two wakes of a turn that only reads', () => {
	const asleep = async (more = {}) => {
		const items = prompts(item('a', { latencyMs: 10 * MINUTE }));
		const run = await on.start(imageNode({ suspendAfter: 1 }, more), items);
		expect(run.isAsleep).toBe(true);
		return run;
	};
	const rows = () => [...store.rows.keys()].filter((row) => row.includes('node-under-test:'));

	it('are one turn: the other one sleeps on', async () => {
		const run = await asleep();
		const twin = await run.wakeTwice(SECOND);
		expect([twin.run.waitTill === undefined, run.isAsleep]).toEqual([false, true]);
		expect(field((await run.end()).output, 'state')).toEqual(['SUCCESS']);
		expect(on.created).toBe(1);
		await pass(SECOND);
		expect(rows()).toEqual([]);
	});

	it('order once what failed, if n8n tries a failed run again', async () => {
		const run = await asleep(threeTries);
		on.service.complete(on.taskIds[0]!, 'FAILURE');
		await run.wakeTwice(SECOND);
		await pass(MINUTE);
		expect(on.created).toBe(2);
	});
});
