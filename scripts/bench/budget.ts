import type { Results } from './results';

/** What the median of a row may be at most, as a part of the peer's or of the limit. */
const BUDGET: Array<[row: string, of: 'peer' | 'limit', most: number, rule: string]> = [
	['batch-8-time', 'limit', 1.467, 'the slowest of 8 tasks, a tenth more, and one poll interval'],
	['batch-8-time-openai', 'peer', 0.05, "20 times faster than n8n's OpenAI video node"],
	['batch-200-time', 'limit', 1.5, '4 s more than the slowest task, which takes 8 s'],
	['batch-200-cpu', 'peer', 1, "no more of n8n's CPU for a task than a loop built by hand"],
	['batch-1000-time', 'limit', 1.5, 'half as much again as 200 tasks at a time need at best'],
	['callback-accepted-answer-0', 'peer', 1.5, "1.5 times the least third-party trigger's time"],
	['startup-time', 'peer', 1.15, "n8n's start is hardly longer with the package"],
];

/**
 * Holds results against the budget, and says how each rule fares. Parts that were not measured are passed over.
 *
 * @throws where a part was measured without a row that the budget names, or a row has nothing to compare with
 */
export function holdsBudget({ rows }: Results): boolean {
	const all = Object.values(rows).flat();
	const rules = BUDGET.filter(([id]) => (id.split('-', 1)[0] ?? '') in rows);
	return rules
		.map(([id, of, most, rule]) => {
			const row = all.find((each) => each.id === id);
			const divisor = { peer: row?.peer?.sample.median, limit: row?.limit?.value }[of];
			if (row === undefined || !divisor) throw new Error(`There is no ${of} of ${id}.`);
			const figure = row.ours.median / divisor;
			const verdict = figure <= most ? 'kept' : 'EXCEEDED';
			console.log(`${verdict}: ${id}, ${figure.toPrecision(3)}, at most ${most} (${rule})`);
			return figure <= most;
		})
		.every(Boolean);
}
