import { join } from 'node:path';

import { runCommand } from '../commandLine';
import { markdownTable, writeSection } from '../page';
import { changes, isInTime, isQuiet, type Result, run } from './cell';
import { type Dip, DIPS, runDip } from './dips';
import { grid } from './grid';

const PAGE = join(__dirname, 'README.md');

function shares(results: readonly Result[]): string[][] {
	const kinds: ReadonlyArray<readonly [string, (cell: Result) => boolean]> = [
		['Steady limits, tasks are waited for', (cell) => !cell.leaves && !changes(cell)],
		['Limits that change', changes],
		['Items leave at once', ({ leaves = false }) => leaves],
		['All', () => true],
	];
	return kinds.map(([kind, belongs]) => {
		const cells = results.filter(belongs);
		const share = (holds: (cell: Result) => boolean) =>
			`${((100 * cells.filter(holds).length) / cells.length).toFixed(1)} %`;
		return [kind, String(cells.length), share(isInTime), share(isQuiet)];
	});
}

const minutes = (ms: number) => (ms / 60_000).toFixed(1);

/** What the weekly checks ask of the figures: parts of the cases, and times the best. */
const LEAST_IN_TIME = 0.97;
const LEAST_QUIET = 0.94;
const LONGEST_DIP = 1.2;

/** @throws if the limits of an account are learnt worse than they were */
function expectAsGood(results: readonly Result[]): void {
	const part = (cells: readonly Result[], holds: (cell: Result) => boolean) =>
		cells.filter(holds).length / cells.length;
	const steady = results.filter((cell) => !changes(cell));
	const slow = DIPS.filter((dip) => {
		const { ms, bestMs } = runDip(dip);
		return ms / bestMs >= LONGEST_DIP;
	});
	const found = [
		part(steady, isInTime) < LEAST_IN_TIME && 'too few cases are in time',
		part(results, isQuiet) < LEAST_QUIET && 'too few cases have few refusals',
		...slow.map(({ name }) => `too slow: ${name}`),
	];
	if (found.some(Boolean)) throw new Error(found.filter(Boolean).join('; '));
}

function dipRow(dip: Dip): string[] {
	const { ms, bestMs, refusals, refusalsInMinute } = runDip(dip);
	const figures = [minutes(ms), minutes(bestMs), (ms / bestMs).toFixed(2)];
	return [dip.name, ...figures, String(refusals), String(refusalsInMinute)];
}

const isFigure = (column: number) => column > 0;

/** Runs all cases in virtual time, and writes the tables. */
function measureLimits(): void {
	const results = grid().map(run);
	const shown = markdownTable(
		['Grid: cases', 'Number', 'In time', 'Few refusals'],
		shares(results),
		isFigure,
	);
	const dips = markdownTable(
		['Places (tasks)', 'Minutes', 'Best', 'Ratio', 'Refusals', 'In a minute'],
		DIPS.map(dipRow),
		isFigure,
	);
	console.log(`${shown}\n\n${dips}`);
	writeSection(PAGE, 'grid', shown);
	writeSection(PAGE, 'dips', dips);
	expectAsGood(results);
}

runCommand(measureLimits);
