import type { Results, Row } from './results';

/** One limit: a median of ours against something of the same row. */
export interface BudgetEntry {
	/** A row's id. */
	row: string;
	/** What ours is divided by: the peer's median, the physical limit, or nothing. */
	of: 'peer' | 'limit' | 'value';
	/** The quotient may not be above this. */
	most?: number;
	/** The quotient may not be below this. */
	least?: number;
	/** The rule in words. */
	rule: string;
}

export interface Verdict {
	entry: BudgetEntry;
	/** Undefined where the row's part was not measured. */
	quotient: number | undefined;
	isKept: boolean;
}

/**
 * Holds results against the budget. Rules for parts that were not measured are kept; a rule whose row is missing
 * from a measured part is not, because a renamed row must not silence it.
 *
 * @throws where a rule asks for a peer or a limit that the row does not have
 */
export function checkBudget(results: Results, budget: readonly BudgetEntry[]): Verdict[] {
	const rows = new Map(
		Object.values(results.rows)
			.flat()
			.map((row) => [row.id, row]),
	);
	return budget.map((entry) => {
		const row = rows.get(entry.row);
		if (row === undefined) {
			const [section = ''] = entry.row.split('-', 1);
			return { entry, quotient: undefined, isKept: !(section in results.rows) };
		}
		const quotient = quotientOf(row, entry.of);
		const { most = Infinity, least = -Infinity } = entry;
		return { entry, quotient, isKept: quotient <= most && quotient >= least };
	});
}

function quotientOf({ id, ours, peer, limit }: Row, of: BudgetEntry['of']): number {
	if (of === 'value') return ours.median;
	const divisor = of === 'peer' ? peer?.sample.median : limit?.value;
	if (divisor === undefined || divisor === 0) {
		throw new Error(`The budget compares ${id} with a ${of} that it does not have.`);
	}
	return ours.median / divisor;
}

/** One line for a person. */
export function describeVerdict({ entry, quotient, isKept }: Verdict): string {
	const { row, of, most, least, rule } = entry;
	const bounds = [
		...(most === undefined ? [] : [`at most ${most}`]),
		...(least === undefined ? [] : [`at least ${least}`]),
	].join(', ');
	if (quotient === undefined) {
		return isKept ? `not measured  ${row}: ${rule}` : `MISSING       ${row}: ${rule}`;
	}
	const figure = `${Number(quotient.toPrecision(3))}${of === 'value' ? '' : ` of the ${of}`}`;
	return `${isKept ? 'kept          ' : 'EXCEEDED      '}${row}: ${figure}, ${bounds} (${rule})`;
}
