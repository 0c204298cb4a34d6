import { join } from 'node:path';

import { runCommand } from '../commandLine';
import { markdownTable, writeSection } from '../page';
import { changes, isInTime, isQuiet, type Result, run } from './cell';
import { type Dip, DIPS, runDip } from './dips';
import { grid as first, heldOut } from './grid';

const PAGE = join(__dirname, 'README.md');

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

function dipRow(dip: Dip): string[] {
	const { ms, bestMs, refusals, refusalsInMinute } = runDip(dip);
	const figures = [minutes(ms), minutes(bestMs), (ms / bestMs).toFixed(2)];
	return [dip.name, ...figures, String(refusals), String(refusalsInMinute)];
}

const isFigure = (column: number) => column > 0;

/** Runs all cases in virtual time, and writes the tables. */
function measureLimits(): void {
	const grid = markdownTable(
		['Grid: cases', 'Number', 'In time', 'Few refusals'],
		[...shares('First', first().map(run)), ...shares('Second', heldOut().map(run))],
		isFigure,
	);
	const dips = markdownTable(
		['Places (tasks)', 'Minutes', 'Best', 'Ratio', 'Refusals', 'In a minute'],
		DIPS.map(dipRow),
		isFigure,
	);
	console.log(`${grid}\n\n${dips}`);
	writeSection(PAGE, 'grid', grid);
	writeSection(PAGE, 'dips', dips);
}

runCommand(measureLimits);
