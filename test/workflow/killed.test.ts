import type { INodeType } from 'n8n-workflow';

import type { Loaded } from './n8n/process';
import { nodeType } from './n8n/nodes';
import { isTerminal } from './n8n/database';
import { StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import { store } from './processedData';
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
} from './support';
import { pass, passUntil } from './time';

/** What a kill, a stop and their retries order, on n8n's own engine and in virtual time. */

const on = stage();
const images = (count: number, seconds = 30) => prompts(...many(count, seconds * SECOND));

const pauseOf = async (ms: number) =>
	await new Promise<void>((resolve) => void setTimeout(resolve, ms));

const rows = () => [...store.rows.keys()].filter((row) => row.includes('node-under-test:'));

const NOT_KEPT = 'n8n has not kept what it created';

it('a kill in the first turn: the retry orders nothing and says what to do, and so does its retry', async () => {
	const n8n = new WorkflowN8n(on.workflow(imageNode(), images(3, 60)));
	const run = n8n.begin();
	await passUntil(() => on.created === 3);
	await run.n8n.kill(run);
	const retry = await run.retry();
	expect(retry.ran.error?.message).toContain(NOT_KEPT);
	expect(retry.ran.description).toContain('Wait for Task');
	expect((await retry.retry()).ran.error?.message).toContain(NOT_KEPT);
	expect(on.created).toBe(3);
});

/** An n8n whose workflow goes on behind the node under test for a minute. */
class LongWorkflow extends WorkflowN8n {
	override load(): Loaded {
		const loaded = super.load();
		const waits: INodeType = nodeType(async (context) => {
			await pauseOf(MINUTE);
			return [context.getInputData()];
		});
		return { ...loaded, nodes: { ...loaded.nodes, testWaits: waits } };
	}

	override get definition() {
		const { nodes, connections } = super.definition;
		const [source] = nodes;
		const behind = { ...source!, id: 'behind', name: 'Behind', type: 'testWaits', parameters: {} };
		const to = [[{ node: 'Behind', type: 'main' as const, index: 0 }]];
		return {
			nodes: [...nodes, behind],
			connections: { ...connections, [this.tested]: { main: to } },
		};
	}
}

it.each([
	['held', {}, 3, 10],
	['that has slept', { suspendAfter: 0 }, 3, 40],
	['whose last turn has ordered', { suspendAfter: 1, maxInFlight: 2 }, 6, 30],
])(
	'a kill in a node behind a run %s: the retry pays for nothing twice',
	async (_what, options, count, seconds) => {
		const n8n = new LongWorkflow(
			on.workflow(imageNode(options, keepsGoing), images(count, seconds)),
		);
		const run = n8n.begin();
		await passUntil(() => run.row.events.get('Behind') === 'started');
		expect(on.created).toBe(count);
		await run.n8n.kill(run);
		const retry = await run.retry();
		if (retry.isAsleep) await retry.end();
		expect(on.created).toBe(count);
	},
);

it('a kill in a node before: the retry orders', async () => {
	const n8n = new WorkflowN8n(on.workflow(imageNode(), images(3, 1)));
	const run = n8n.begin();
	await n8n.kill(run);
	const { output } = (await run.retry()).ran;
	expect(field(output, 'taskId')).toEqual(on.taskIds);
	expect(on.created).toBe(3);
});

describe('a run that was killed in a later turn', () => {
	/** The first turn has ordered four, so the second turn may order so many. */
	const WINDOW = 10;

	/** 30 items at two places, killed when the second turn has ordered two. */
	async function killedLater(more = {}) {
		const run = await on.start(imageNode({ suspendAfter: 1, maxInFlight: 2 }, more), images(30));
		await run.wake();
		const before = on.created;
		await passUntil(() => on.created === before + 2);
		await run.n8n.kill(run);
		return run;
	}
	const inDoubt = (items: ReturnType<typeof prompts>) =>
		field(items, 'error').filter((error) => String(error).startsWith('It is not known'));

	it('is ordered by one of two retries at once', async () => {
		const run = await killedLater();
		const retries = [0, 1].map(() => new StoredRun(run.n8n, run.n8n.executions.retry(run.row)!));
		await passUntil(() => retries.every(({ row }) => isTerminal(row.status)));
		const errors = retries.flatMap(({ ran }) => ran.error?.message ?? []);
		expect(errors).toEqual([
			expect.stringMatching(
				/^Another retry of execution 1 goes on with its tasks: execution [23]$/,
			),
		]);
		expect(on.created).toBe(30 - WINDOW + 2);
	});

	it('is ordered by the first of two retries one after the other, and a retry of the second one orders nothing', async () => {
		const run = await killedLater();
		const first = await run.retry();
		await first.end();
		const orders = on.created;
		const second = await run.retry();
		const refused = [await second.end(), await (await second.retry()).end()];
		for (const { error } of refused) {
			expect(error?.message).toContain('Another retry of execution 1 goes on with its tasks');
		}
		expect(on.created).toBe(orders);
		expect(inDoubt(first.ran.output)).toHaveLength(WINDOW);
	});

	it('leaves the windows of both turns in doubt where its retry is killed, too', async () => {
		const run = await killedLater();
		const orders = on.created;
		const retry = new StoredRun(run.n8n, run.n8n.executions.retry(run.row)!);
		await passUntil(() => on.created === orders + 2);
		await retry.n8n.kill(retry);
		const again = await retry.retry();
		const { output } = again.isAsleep ? await again.end() : again.ran;
		expect(inDoubt(output)).toHaveLength(2 * WINDOW);
		expect(on.created).toBe(30 - 2 * WINDOW + 4);
	});

	it('leaves no row when its retry has ended', async () => {
		const run = await killedLater();
		const retry = await run.retry();
		await retry.end();
		await pass(SECOND);
		// The claim of the retry stays as long as the execution can be retried, and so does the row of the killed turn.
		expect(rows()).toHaveLength(2);
	});
});

it('the rows of a run are gone when the execution has ended', async () => {
	const run = await on.start(imageNode({ suspendAfter: 1, maxInFlight: 2 }), images(12));
	expect(rows()).not.toEqual([]);
	await run.end();
	await pass(SECOND);
	expect(rows()).toEqual([]);
});

it('the retry of a failed run that is killed before n8n stores it: its retry orders nothing twice, and names what is in doubt', async () => {
	const stops = { ifSomeFail: 'stop' };
	const items = prompts(
		item('a', { latencyMs: SECOND, outcome: 'FAILURE' }),
		item('b', { latencyMs: SECOND, outcome: 'FAILURE' }),
		item('c', { latencyMs: SECOND }),
	);
	const n8n = new WorkflowN8n(on.workflow(imageNode(stops), items));
	const run = n8n.begin();
	await passUntil(() => run.row.status === 'error');
	const before = on.created;
	const retry = new StoredRun(n8n, n8n.executions.retry(run.row)!);
	await passUntil(() => on.created === before + 1);
	await retry.n8n.kill(retry);
	const { error } = await (await retry.retry()).end();
	expect(error?.message).toContain('It is not known');
	const ordered = [...on.service.tasks.values()].map(({ record }) => record.input.prompt);
	// What has failed costs nothing, and was ordered once more.
	const times = ['a', 'b', 'c'].map((prompt) => ordered.filter((each) => each === prompt).length);
	expect(times).toEqual([2, expect.any(Number), 1]);
	expect(times[1]).toBeLessThanOrEqual(2);
});
