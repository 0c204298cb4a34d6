import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { changes, isInTime, isQuiet, type Result, run } from './cell';
import { DIPS, type DipResult, runDip } from './dips';
import { CELLS, heldOut } from './grid';

const PAGE = join(__dirname, '../../docs/bench/limits.md');

/** As Prettier writes it. */
function table(head: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
	const widths = head.map((name, column) =>
		Math.max(3, name.length, ...rows.map((cells) => cells[column]?.length ?? 0)),
	);
	const line = (cells: readonly string[]) => {
		const padded = cells.map((cell, column) =>
			column > 0 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
		);
		return `| ${padded.join(' | ')} |`;
	};
	const rule = widths.map((width, column) =>
		column > 0 ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width),
	);
	return [line(head), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n');
}

function shares(name: string, results: readonly Result[]): string[][] {
	const kinds: ReadonlyArray<readonly [string, (cell: Result) => boolean]> = [
		['steady limits, tasks are waited for', (cell) => !cell.leaves && !changes(cell)],
		['limits that change', changes],
		['items leave at once', ({ leaves = false }) => leaves],
		['all', () => true],
	];
	return kinds.map(([kind, belongs]) => {
		const cells = results.filter(belongs);
		const share = (holds: (cell: Result) => boolean) =>
			`${((100 * cells.filter(holds).length) / cells.length).toFixed(1)} %`;
		return [`${name}: ${kind}`, String(cells.length), share(isInTime), share(isQuiet)];
	});
}

const minutes = (ms: number) => (ms / 60_000).toFixed(1);

const dipRow = ({ name, ms, bestMs, refusals, refusalsInMinute }: DipResult) => [
	name,
	minutes(ms),
	minutes(bestMs),
	(ms / bestMs).toFixed(2),
	String(refusals),
	String(refusalsInMinute),
];

function put(mark: string, content: string): void {
	const text = readFileSync(PAGE, 'utf8');
	const pattern = new RegExp(`(<!-- ${mark} -->\n)[^]*?(<!-- /${mark} -->)`);
	if (!pattern.test(text)) throw new Error(`${PAGE} has no place for "${mark}".`);
	const put = (_all: string, begin: string, end: string) => `${begin}\n${content}\n\n${end}`;
	writeFileSync(PAGE, text.replace(pattern, put));
}

/** Runs all cases in virtual time, and writes the tables. */
export function measureLimits(): void {
	const grid = table(
		['Grid: cases', 'Number', 'In time', 'Few refusals'],
		[...shares('First', CELLS.map(run)), ...shares('Second', heldOut().map(run))],
	);
	const dips = table(
		['Places (tasks)', 'Minutes', 'Best', 'Ratio', 'Refusals', 'In a minute'],
		DIPS.map((dip) => dipRow(runDip(dip))),
	);
	console.log(`${grid}\n\n${dips}`);
	put('grid', grid);
	put('dips', dips);
}
