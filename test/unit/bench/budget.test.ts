import budget from '../../bench/budget.json';
import { type BudgetEntry, checkBudget, describeVerdict } from '../../bench/budget';
import type { Results, Row, Sample } from '../../bench/results';

const sample = (median: number): Sample => ({ median, least: median, most: median, count: 1 });

const row: Row = {
	id: 'batch-8-time',
	what: 'Batch of 8',
	unit: 's',
	ours: sample(9),
	peer: { name: 'another', sample: sample(180) },
	limit: { name: 'the slowest task', value: 6 },
};

const results = (...rows: Row[]): Results => ({
	machine: { cores: 2, memoryGiB: 8, platform: 'linux x64', node: 'v24', n8n: '2' },
	measured: {},
	rows: { batch: rows },
});

const entry = (changes: Partial<BudgetEntry>): BudgetEntry => ({
	row: row.id,
	of: 'limit',
	rule: 'a rule',
	...changes,
});

const verdict = (changes: Partial<BudgetEntry>) => checkBudget(results(row), [entry(changes)])[0];

describe('the budget', () => {
	it.each([
		['limit', 1.5],
		['peer', 0.05],
		['value', 9],
	] as const)('compares the median of ours with the %s', (of, quotient) => {
		expect(verdict({ of })?.quotient).toBeCloseTo(quotient, 10);
	});

	it('is kept at its bounds and not beyond them', () => {
		expect(verdict({ most: 1.5 })?.isKept).toBe(true);
		expect(verdict({ most: 1.49 })?.isKept).toBe(false);
		expect(verdict({ least: 1.5 })?.isKept).toBe(true);
		expect(verdict({ least: 1.51 })?.isKept).toBe(false);
	});

	it('is kept where its part was not measured', () => {
		expect(verdict({ row: 'callback-accepted-rate-0', most: 1 })).toMatchObject({
			quotient: undefined,
			isKept: true,
		});
	});

	it('is not kept where its part was measured without its row', () => {
		expect(verdict({ row: 'batch-9-time', most: 1 })?.isKept).toBe(false);
	});

	it('does not compare with what the row does not have', () => {
		const bare = results({ id: row.id, what: row.what, unit: 's', ours: row.ours });
		expect(() => checkBudget(bare, [entry({ of: 'peer' })])).toThrow(/batch-8-time with a peer/);
	});

	it('says what was exceeded', () => {
		const [exceeded] = checkBudget(results(row), [entry({ most: 1.2 })]);
		expect(exceeded && describeVerdict(exceeded)).toBe(
			'EXCEEDED      batch-8-time: 1.5 of the limit, at most 1.2 (a rule)',
		);
	});

	it('has a bound in each of its lines', () => {
		for (const line of budget as BudgetEntry[]) {
			expect(line.most ?? line.least).toEqual(expect.any(Number));
		}
	});
});
