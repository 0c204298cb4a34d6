import { EPOCH } from '../virtualTime';
import { connect } from './n8n/nodes';
import { type StoredRun, WorkflowN8n } from './n8n/workflowN8n';
import { store } from './processedData';
import {
	errorsOf,
	field,
	imageNode,
	images,
	inDoubt,
	item,
	keepsGoing,
	MINUTE,
	prompts,
	SECOND,
	stage,
} from './support';
import { pass, passUntil } from './time';

/** What a kill and its retries order. In any order of kills: test/simulation. */

const on = stage();

const NOT_KEPT = 'n8n has not kept what it created';

it('a kill in the first turn: the retry orders nothing and says what to do, and so does its retry', async () => {
	const run = on.begin(imageNode(), images(3, 60));
	await passUntil(() => on.created === 3);
	await run.kill();
	const retry = await run.retry();
	expect(retry.ran.error?.message).toContain(NOT_KEPT);
	expect(retry.ran.description).toContain('Wait for Task');
	expect((await retry.retry()).ran.error?.message).toContain(NOT_KEPT);
	expect(on.created).toBe(3);
});

describe('a kill in a later turn', () => {
	/** The first turn has ordered four, so the second turn may order so many. */
	const WINDOW = 10;

	/** Rows of turns, and claims of retries. */
	const rows = () => [...store.rows.keys()];

	const twoAtOnce = async (count: number) =>
		await on.start(imageNode({ suspendAfter: 1, maxInFlight: 2 }), images(count, 30));

	/** 30 items, killed when the second turn has ordered two. */
	async function killedLater() {
		const run = await twoAtOnce(30);
		await run.wake();
		const before = on.created;
		await passUntil(() => on.created === before + 2);
		await run.kill();
		return run;
	}

	it('leaves the window of the turn in doubt; the first of two retries goes on, and a retry of the second one orders nothing', async () => {
		const run = await killedLater();
		const first = await run.retry();
		expect(inDoubt((await first.end()).output)).toHaveLength(WINDOW);
		const orders = on.created;
		const second = await run.retry();
		for (const { error } of [await second.end(), await (await second.retry()).end()]) {
			expect(error?.message).toContain('Another retry of execution 1 goes on with its tasks');
		}
		expect(on.created).toBe(orders);
		await pass(SECOND);
		// The claim of the retry, with its name, stays as long as the execution can be retried, and so does the row of the killed
		// turn.
		expect(rows()).toHaveLength(3);
	});

	it('leaves the windows of both turns in doubt where the retry is killed, too', async () => {
		const run = await killedLater();
		const orders = on.created;
		const retry = run.beginRetry();
		await passUntil(() => on.created === orders + 2);
		await retry.kill();
		const { output } = await (await retry.retry()).end();
		expect(inDoubt(output)).toHaveLength(2 * WINDOW);
		expect(on.created).toBe(30 - 2 * WINDOW + 4);
	});

	it('leaves a row behind, and the end of a run none', async () => {
		const run = await twoAtOnce(12);
		expect(rows()).not.toEqual([]);
		await run.end();
		await pass(SECOND);
		expect(rows()).toEqual([]);
	});

	it('counts the orders in doubt for the budget of the retries', async () => {
		// Forty items of 0.08 USD come to 3.20. An hour later the user has less.
		const maxCostUsd = `={{ Date.now() > ${EPOCH + 60 * MINUTE} ? 3.1 : 3.2 }}`;
		const options = { suspendAfter: 1, maxInFlight: 5, maxCostUsd };
		const run = await on.start(imageNode(options), images(40, 30));
		const before = on.created;
		await passUntil(() => on.created >= before + 5);
		await run.kill();
		const ordered = on.created;
		on.service.configure({ createStatus: 402 });
		const retry = await run.retry();
		expect((await retry.end()).error?.message).toContain('HTTP 402');
		on.service.resetSettings();
		await pass(60 * MINUTE);
		const { error } = await (await retry.retry()).end();
		expect(error?.message).toContain(
			'USD for the tasks before, which is above the limit of 3.1 USD',
		);
		expect(on.created).toBe(ordered);
	});
});

describe('A, and B behind A, killed in the first turn of B', () => {
	/** How many pictures B orders. */
	const B = 3;
	const ordersOf = (name: string) => on.ordered.filter((prompt) => prompt.startsWith(name)).length;

	class AThenB extends WorkflowN8n {
		override get definition() {
			const { nodes, connections } = super.definition;
			const tested = nodes.find(({ name }) => name === this.tested)!;
			const additionalInput = JSON.stringify({ simulate: { latencyMs: 90 * SECOND } });
			const parameters = {
				prompt: Array.from({ length: B }, (_, index) => `B${index}`).join('\n'),
				...{ promptPerLine: true, downloadResults: false, options: { additionalInput } },
			};
			return {
				nodes: [...nodes, { ...tested, id: 'B', name: 'B', parameters, executeOnce: true }],
				connections: { ...connections, ...connect(`${this.tested} > B`) },
			};
		}
	}

	// The service shows no task for a while, so A sleeps in the retry: n8n tells a woken retry nothing of the first execution.
	it.each(['goes on', 'is killed, too, after A has slept'])(
		'its orders are in doubt, and none is sent again: the retry %s',
		async (what) => {
			const items = prompts(item('A', { latencyMs: 4 * MINUTE }));
			const run = new AThenB(on.workflow(imageNode({ suspendAfter: 1 }), items)).begin();
			await passUntil(() => ordersOf('B') === B);
			expect(run.row.sleeps).toBeGreaterThan(0);
			await run.kill();
			on.service.configure({ readStatus: { status: 503 } });
			let retry = run.beginRetry();
			await passUntil(() => retry.row.wakes > 0);
			if (what !== 'goes on') await retry.kill();
			on.service.resetSettings();
			if (what !== 'goes on') retry = await retry.retry();
			const { error, description } = await retry.end();
			expect(error?.message).toContain('It is not known whether the task was created');
			expect(description).toContain('(execution 1, item 1)');
			expect([ordersOf('A'), ordersOf('B')]).toEqual([1, B]);
		},
	);
});

describe('a loop of short rounds that is killed', () => {
	const ROUNDS = 12;
	const all = Array.from({ length: ROUNDS }, (_, index) => `p${index}`);

	/** The loop has slept twice, and is killed so many seconds after its second wake. */
	async function killedAfter(seconds: number): Promise<StoredRun> {
		const rounds = images(ROUNDS, 20).map((each) => [each]);
		const run = on.begin(imageNode({ suspendAfter: 1 }, keepsGoing), undefined, { rounds });
		await passUntil(() => run.row.wakes === 2);
		await pass(seconds * SECOND);
		await run.kill();
		return run;
	}

	it('orders each round by its retry that had not ordered, and has exactly those in doubt that had, and were not stored', async () => {
		const run = await killedAfter(21);
		const storedAt = run.sleeps.at(-1)!.from;
		const lost = on.tasks.filter(({ createdAt }) => createdAt > storedAt).length;
		expect(lost).toBeGreaterThan(0);
		const retry = run.beginRetry();
		await retry.end();
		expect([retry.row.status, on.ordered]).toEqual(['success', all]);
		expect([retry.itemsOf().length, inDoubt(retry.itemsOf()).length]).toEqual([ROUNDS, lost]);
		expect(errorsOf(retry.itemsOf())).toHaveLength(lost);
	});

	it('orders each round once, where its retry is killed in a later round as well', async () => {
		const run = await killedAfter(28);
		const before = on.created;
		const retry = run.beginRetry();
		await passUntil(() => on.created === before + 2);
		await retry.kill();
		const again = retry.beginRetry();
		await again.end();
		expect([again.row.status, on.ordered]).toEqual(['success', all]);
	});
});

it('a retry that has failed is the one to retry: a second retry of the execution orders nothing, and names it', async () => {
	on.service.configure({ createStatus: 401 });
	const first = await on.start(imageNode(), prompts('a', 'b', 'c'));
	const retry = await first.retry();
	expect((await retry.end()).error?.message).toMatch(/key/i);
	on.service.resetSettings();
	const second = await (await first.retry()).end();
	expect(second.error?.message).toBe(
		'Another retry of execution 1 goes on with its tasks: execution 2',
	);
	expect(second.description).toContain('If execution 2 has failed, retry execution 2.');
	const { output } = await (await retry.retry()).end();
	expect(field(output, 'state')).toEqual(['SUCCESS', 'SUCCESS', 'SUCCESS']);
	expect(on.created).toBe(3);
});

describe('what sleeps is retried', () => {
	it('n8n wakes it all the same, and it creates nothing more', async () => {
		const run = await on.start(imageNode({ suspendAfter: 1 }), images(30, 40));
		const retried = await run.retry();
		const { error, description } = await run.end();
		expect(error?.message).toContain('A retry of this execution goes on with its tasks');
		expect(description).toContain(on.taskIds[0]);
		const { output } = await retried.end();
		expect([output.length, errorsOf(output)]).toEqual([30, []]);
		expect(on.created).toBe(30);
	});

	it('with the currently saved workflow: the bare input does not leave', async () => {
		const items = prompts(item('a', { latencyMs: 30 * MINUTE }));
		const run = await on.start(imageNode({}, { alwaysOutputData: true }), items);
		const { output } = await (await run.retry('saved')).end();
		expect(on.created).toBe(1);
		for (const { json } of output) expect(json).not.toHaveProperty('prompt');
		expect(JSON.stringify(output)).toContain(on.taskIds[0]);
	});
});

describe('a turn that n8n begins twice', () => {
	it.each([
		['only reads', 1, 600, 0.5],
		// Longer than a turn lasts.
		['orders', 12, 30, 9],
	])(
		'and %s is left alone by the second wake, which sleeps on',
		async (_, count, seconds, least) => {
			const options = { suspendAfter: 1, maxInFlight: 2 };
			const run = await on.start(imageNode(options), images(count, seconds));
			const twin = await run.wakeTwice(2 * SECOND);
			expect(twin.output).toEqual([]);
			expect((twin.run.waitTill?.getTime() ?? 0) - Date.now()).toBeGreaterThan(least * MINUTE);
			const { output } = await run.end();
			expect([errorsOf(output), on.created]).toEqual([[], count]);
		},
	);

	it.each([
		['was killed', true],
		['is at work', false],
	])(
		'on another worker, in its first turn, while the first one %s, orders nothing',
		async (_how, isKilled) => {
			const n8n = new WorkflowN8n(on.workflow(imageNode(), images(5, 30)), true);
			const run = n8n.begin();
			await passUntil(() => on.created === 5);
			if (isKilled) run.row.process?.die();
			n8n.executions.runAgain(run.row);
			expect((await run.end()).error?.message).toContain(NOT_KEPT);
			await pass(5 * MINUTE);
			expect(on.created).toBe(5);
		},
	);
});
