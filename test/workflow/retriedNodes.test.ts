import type { INodeExecutionData } from 'n8n-workflow';

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
import { EPOCH } from '../virtualTime';
import { store } from './processedData';
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

/** How many pictures node B orders. */
const B = 3;

/** A workflow in which the tested node orders what its items say, and node B behind it some pictures. */
class AThenB extends WorkflowN8n {
	override get definition() {
		const { nodes, connections } = super.definition;
		const tested = nodes.find(({ name }) => name === this.tested)!;
		const additionalInput = JSON.stringify({ simulate: { latencyMs: 90 * SECOND } });
		const parameters = {
			prompt: Array.from({ length: B }, (_, index) => `B${index}`).join('\n'),
			promptPerLine: true,
			downloadResults: false,
			options: { additionalInput },
		};
		return {
			nodes: [...nodes, { ...tested, id: 'B', name: 'B', parameters, executeOnce: true }],
			connections: { ...connections, ...connect(`${this.tested} > B`) },
		};
	}
}

describe('A, and B behind A', () => {
	/** A has slept and ended, and B has ordered all in its first turn when n8n is killed. */
	async function killedInB(): Promise<StoredRun> {
		const run = new AThenB(
			on.workflow(imageNode({ suspendAfter: 1 }), prompts(item('A', { latencyMs: 4 * MINUTE }))),
		).begin();
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
});

describe('a loop', () => {});

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

it('orders in doubt count for the budget of the retries', async () => {
	// Forty items of 0.08 USD come to 3.20. An hour later the user has less.
	const maxCostUsd = `={{ Date.now() > ${EPOCH + 60 * MINUTE} ? 3.1 : 3.2 }}`;
	const options = { suspendAfter: 1, maxInFlight: 5, maxCostUsd };
	const run = await on.start(imageNode(options), prompts(...many(40, 30 * SECOND)));
	const before = on.created;
	await passUntil(() => on.created >= before + 5);
	await run.n8n.kill(run);
	const ordered = on.created;
	on.service.configure({ createStatus: 402 });
	const retry = await run.retry();
	expect((await retry.end()).error?.message).toContain('HTTP 402');
	on.service.resetSettings();
	await pass(60 * MINUTE);
	const { error } = await (await retry.retry()).end();
	expect(error?.message).toContain('USD for the tasks before, which is above the limit of 3.1 USD');
	expect(on.created).toBe(ordered);
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
