import assert from 'node:assert/strict';

import { LedgerRow } from '../../../nodes/MediaGeneration/n8n/ledgerRow';
import { TurnRow } from '../../../nodes/MediaGeneration/n8n/turnRow';
import { clock, Stopped } from '../../../nodes/MediaGeneration/shared/clock';
import { settled } from '../../../nodes/MediaGeneration/shared/promises';
import { SECOND } from '../../durations';
import { executeContext } from '../../workflow/engine';
import { store, useProcessedData } from '../../workflow/processedData';
import { pass, passTime, virtualTime } from '../../workflow/time';

useProcessedData();
virtualTime();

/** The row of a turn, as one process has it. */
interface Given {
	/** The execution that asks. */
	by?: string;
	runIndex?: number;
	signal?: AbortSignal;
}

function rowOf(turn = 1, execution = '1', { by, runIndex = 0, signal }: Given = {}) {
	const context = executeContext({}, signal);
	Object.assign(context, { runIndex }, by && { getExecutionId: () => by });
	return new TurnRow(context, turn, execution);
}

/** How often n8n's store was asked to write. */
const writes = () => jest.spyOn(store, 'checkProcessedAndRecord');
afterEach(() => jest.restoreAllMocks());

/** The store fails for so many seconds from now on. */
function failsFor(seconds: number): void {
	jest.restoreAllMocks();
	const until = clock.now() + seconds * SECOND;
	const ways = ['checkProcessedAndRecord', 'getProcessedDataCount'] as const;
	for (const way of ways) {
		const real = store[way].bind(store) as (...given: unknown[]) => Promise<never>;
		jest.spyOn(store, way).mockImplementation(async (...given: unknown[]) => {
			if (clock.now() < until) throw new Error('No database');
			return await real(...given);
		});
	}
}

it("without a store, as in a program around n8n's engine, a turn orders at once, and nothing is noted", async () => {
	const ways = ['checkProcessedAndRecord', 'getProcessedDataCount', 'removeProcessed'] as const;
	for (const way of ways) jest.spyOn(store, way).mockImplementation(async () => assert.fail());
	const row = rowOf();
	const claimed = await row.claim('7', '1');
	expect([await row.begin(), await row.isBegun(), claimed]).toEqual([true, false, true]);
	await row.note('0.0');
	expect([await row.notesOf(['0.0']), row.isTaken]).toEqual([[], false]);
	await row.giveWay();
	await row.clear();
});

describe('one process begins a turn', () => {
	it('of two that come together', async () => {
		const begun = await Promise.all([rowOf().begin(), rowOf().begin()]);
		expect(begun.sort()).toEqual([false, true]);
	});

	it('but the first turn of an execution is one, whatever the index of the run: n8n gives a retry another index', async () => {
		await rowOf(0).begin();
		expect(await rowOf(0, '1', { runIndex: 1 }).isBegun()).toBe(true);
	});

	it('although the answer of the database is lost', async () => {
		store.answerIsLost = true;
		expect(await passTime(rowOf().begin())).toBe(true);
		expect(await rowOf().begin()).toBe(false);
	});
});

describe('an order is noted', () => {
	it('and exactly what was noted is found, by another process, which leaves the row as it is', async () => {
		const row = rowOf();
		await row.begin();
		await row.note('0.0');
		await row.note('2.1');
		const positions = ['0.0', '1.0', '2.1', '3.0'];
		for (let times = 0; times < 2; times++) {
			expect(await rowOf().notesOf(positions)).toEqual(['0.0', '2.1']);
		}
	});

	it('once, however often it is sent', async () => {
		const row = rowOf();
		await row.begin();
		const written = writes();
		await row.note('0.0');
		await row.note('0.0');
		expect(written).toHaveBeenCalledTimes(1);
	});

	it('with those that come together: they share a write', async () => {
		const row = rowOf();
		await row.begin();
		const written = writes();
		const positions = Array.from({ length: 50 }, (_, item) => `${item}.0`);
		await Promise.all(positions.map(async (position) => await row.note(position)));
		expect(written.mock.calls.length).toBeLessThanOrEqual(2);
		expect(await rowOf().notesOf(positions)).toEqual(positions);
	});

	it('until it is withdrawn, and again if it is sent again', async () => {
		const row = rowOf();
		await row.begin();
		for (const position of ['0.0', '1.0']) await row.note(position);
		await row.withdraw('0.0');
		await row.withdraw('2.0');
		expect(await rowOf().notesOf(['0.0', '1.0', '2.0'])).toEqual(['1.0']);
		await row.note('0.0');
		expect(await rowOf().notesOf(['0.0', '1.0'])).toEqual(['0.0', '1.0']);
	});

	it('although others are withdrawn in the same moment', async () => {
		const row = rowOf();
		await row.begin();
		const positions = Array.from({ length: 20 }, (_, item) => `${item}.0`);
		for (const position of positions.slice(0, 10)) await row.note(position);
		await Promise.all(
			positions.map(async (position, index) =>
				index < 5 ? await row.withdraw(position) : await row.note(position),
			),
		);
		expect(await rowOf().notesOf(positions)).toEqual(positions.slice(5));
	});

	it('and stays where the store fails: an order too many is in doubt', async () => {
		const row = rowOf();
		await row.begin();
		await row.note('0.0');
		jest.spyOn(store, 'removeProcessed').mockRejectedValueOnce(new Error('No database'));
		await row.withdraw('0.0');
		expect(await rowOf().notesOf(['0.0'])).toEqual(['0.0']);
	});

	it('not in the first turn, of which nothing is left after a kill', async () => {
		const row = rowOf(0);
		await row.begin();
		const written = writes();
		await row.note('0.0');
		expect(written).not.toHaveBeenCalled();
	});

	it('although the answer of the database is lost', async () => {
		const row = rowOf();
		await row.begin();
		store.answerIsLost = true;
		await passTime(row.note('0.0'));
		expect(await rowOf().notesOf(['0.0'])).toEqual(['0.0']);
	});
});

describe("while n8n's store fails", () => {
	it('for half a minute, everything waits for it', async () => {
		failsFor(30);
		const row = rowOf();
		expect(await passTime(row.begin())).toBe(true);
		failsFor(30);
		await passTime(row.note('0.0'));
		expect(await passTime(rowOf().notesOf(['0.0']))).toEqual(['0.0']);
	});

	it('for a minute, no order of the turn is noted any more, and each says so', async () => {
		const row = rowOf();
		await row.begin();
		failsFor(60);
		const [first, second] = await passTime(
			Promise.all(['0.0', '1.0'].map(async (position) => await settled(row.note(position)))),
		);
		expect(first).toHaveProperty('error.message', 'No database');
		expect(second).toEqual(first);
		expect(await passTime(rowOf().notesOf(['0.0', '1.0']))).toEqual([]);
	});

	it('a stop is heard', async () => {
		const stop = new AbortController();
		failsFor(60);
		const begun = settled(rowOf(1, '1', { signal: stop.signal }).begin());
		await pass(SECOND);
		stop.abort();
		expect(await passTime(begun)).toHaveProperty('error', expect.any(Stopped));
	});
});

describe('of several retries one claims the orders of the execution', () => {
	const claim = async (by: string, claimant = by) =>
		await rowOf(1, by, { by }).claim('1', claimant);
	const noted = async (turn: number) => {
		const row = rowOf(turn);
		await row.begin();
		return [await settled(row.note('0.0')), row.isTaken];
	};

	it('and the execution finds so after each note, in each turn', async () => {
		expect(await noted(1)).toEqual([{ value: undefined }, false]);
		expect([await claim('2'), await claim('3'), await claim('2')]).toEqual([true, false, true]);
		const message = 'A retry of this execution goes on with its tasks';
		for (const turn of [2, 3]) {
			const [note, isTaken] = await noted(turn);
			expect(note).toMatchObject({ error: { message } });
			expect(isTaken).toBe(true);
		}
	});

	it('and its own retry has the claim in its name', async () => {
		await claim('2');
		expect([await claim('4', '3'), await claim('5', '2')]).toEqual([false, true]);
	});

	it('and no other, if the answer of the database was lost when the other asked', async () => {
		await claim('2');
		jest
			.spyOn(store, 'removeProcessed')
			.mockRejectedValueOnce(new Error('Connection terminated unexpectedly'));
		expect([await claim('3'), await claim('3')]).toEqual([false, false]);
	});

	it('and keeps the claim, also if the question of another retry has left its trace', async () => {
		await claim('3');
		jest
			.spyOn(store, 'removeProcessed')
			.mockRejectedValueOnce(new Error('Connection terminated unexpectedly'));
		expect(await claim('6', '2')).toBe(false);
		expect([await claim('5', '3'), await claim('7', '2')]).toEqual([true, false]);
	});

	it('and gives the claim back also if the store fails before the claimant is written', async () => {
		const second = rowOf(1, '2', { by: '2' });
		const insert = jest.spyOn(LedgerRow.prototype, 'insert');
		insert.mockImplementationOnce(async () => await Promise.resolve(true));
		for (let tries = 1; tries <= 10; tries++)
			insert.mockRejectedValueOnce(new Error('No database'));
		expect(await passTime(settled(second.claim('1', '2')))).toHaveProperty('error');
		const clear = jest.spyOn(LedgerRow.prototype, 'clear');
		await second.giveWay();
		expect(clear).toHaveBeenCalledTimes(2);
	});

	it('and leaves the way, unless its own retry relies on the claim', async () => {
		const second = rowOf(1, '2', { by: '2' });
		await second.claim('1', '2');
		await second.giveWay();
		const third = rowOf(1, '3', { by: '3' });
		expect(await third.claim('1', '3')).toBe(true);
		await rowOf(1, '4', { by: '4' }).claim('3', '4');
		await third.giveWay();
		expect(await claim('5')).toBe(false);
	});
});

describe('where there is no execution to retry', () => {
	it.each<[string, object]>([
		['an agent of n8n', { getExecutionId: () => undefined }],
		['a tool that n8n has supplied', { isToolExecution: () => true }],
		['a workflow that was never saved', { getWorkflow: () => ({}) }],
	])('nothing is written: %s', async (_what, ways) => {
		const context = Object.assign(executeContext(), ways);
		const written = writes();
		const row = new TurnRow(context, 1);
		expect(await row.begin()).toBe(true);
		await row.note('0.0');
		await row.clear();
		expect(await row.isBegun()).toBe(false);
		expect(written).not.toHaveBeenCalled();
	});
});

describe('a row', () => {
	it('is gone when it is cleared, and only that one', async () => {
		await rowOf(1).begin();
		await rowOf(2).begin();
		await rowOf(1).clear();
		expect([await rowOf(1).isBegun(), await rowOf(2).isBegun()]).toEqual([false, true]);
		expect(store.rows.size).toBe(1);
		await rowOf(1).clear();
		expect(store.rows.size).toBe(1);
	});

	it('has a size, and is found by its name alone', async () => {
		const context = executeContext();
		const row = new LedgerRow(context, 'a');
		expect(await row.size()).toBe(0);
		await row.insert(['b']);
		expect([await row.size(), await new LedgerRow(context, 'c').size()]).toEqual([2, 0]);
		expect(await row.which([])).toEqual([]);
	});

	it('adds entries, and says whether it had all of them', async () => {
		const row = new LedgerRow(executeContext(), 'a');
		await row.insert();
		expect([await row.add('b'), await row.add('b', 'c'), await row.add('b', 'c')]).toEqual([
			false,
			false,
			true,
		]);
	});

	it('that somebody else has written is left as it is', async () => {
		const row = new LedgerRow(executeContext(), 'a');
		await row.insert(['b']);
		expect(await new LedgerRow(executeContext(), 'a').insert(['c'])).toBe(false);
		expect(await row.which(['b', 'c'])).toEqual(['b']);
	});
});
