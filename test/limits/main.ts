import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { leastTime } from './bound';
import {
	describeCell,
	isWithin,
	mostMs,
	mostRefusals,
	ratioOf,
	type Result,
	run,
	UNEQUAL_TASKS,
} from './cell';
import { CELLS, heldOut } from './grid';

const ROOT = join(__dirname, '../..');

const seconds = (ms: number) => (ms / 1000).toFixed(1);

function row(
	cells: readonly string[],
	right: readonly boolean[],
	widths: readonly number[],
): string {
	const padded = cells.map((cell, column) =>
		right[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
	);
	return `| ${padded.join(' | ')} |`;
}

/** As Prettier writes it. */
function table(head: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
	const right = head.map((_, column) => column > 0);
	const widths = head.map((name, column) =>
		Math.max(3, name.length, ...rows.map((cells) => cells[column]?.length ?? 0)),
	);
	const rule = widths.map((width, column) =>
		right[column] ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width),
	);
	return [
		row(head, right, widths),
		`| ${rule.join(' | ')} |`,
		...rows.map((cells) => row(cells, right, widths)),
	].join('\n');
}

function families(results: readonly Result[]): string {
	const names = [...new Set(results.map(({ family }) => family))];
	const rows = names.map((name) => {
		const cells = results.filter(({ family }) => family === name);
		const ratios = cells.map(ratioOf).sort((a, b) => a - b);
		const refused = cells.map((cell) => cell.refusals / mostRefusals(cell));
		return [
			name,
			String(cells.length),
			String(cells.filter(isWithin).length),
			(ratios[Math.floor(ratios.length / 2)] ?? 0).toFixed(2),
			Math.max(...ratios).toFixed(2),
			`${Math.round(100 * Math.max(...refused))} %`,
		];
	});
	return table(
		[
			'What',
			'Cases',
			'Within both bounds',
			'Time : oracle, median',
			'worst',
			'Refusals : bound, worst',
		],
		rows,
	);
}

/** How many are outside: of the cases of the tables, and of those with other values. */
function shares(results: readonly Result[], others: readonly Result[]): string {
	const share = (cells: readonly Result[]) => {
		const outside = cells.filter((cell) => !isWithin(cell));
		const slow = outside.filter((cell) => cell.ms > mostMs(cell));
		const refused = outside.filter((cell) => cell.refusals > mostRefusals(cell));
		const part = ((100 * outside.length) / cells.length).toFixed(1);
		return [
			String(cells.length),
			String(outside.length),
			`${part} %`,
			String(slow.length),
			String(refused.length),
		];
	};
	const kinds: ReadonlyArray<readonly [string, (cell: Result) => boolean]> = [
		['Tasks are waited for', ({ leaves }) => !leaves],
		['of these: nothing changes', (cell) => !cell.leaves && !changes(cell)],
		['of these: a limit changes', (cell) => !cell.leaves && changes(cell)],
		['Items leave at once', ({ leaves }) => leaves === true],
	];
	return table(
		['What', 'Cases', 'Outside', 'Share', 'Too long', 'Too many refusals'],
		kinds.flatMap(([name, belongs]) => [
			[name, ...share(results.filter(belongs))],
			[`${name}, other values`, ...share(others.filter(belongs))],
		]),
	);
}

/** Where items leave at once and one task may be unfinished: what no control can do better than. */
function bounds(results: readonly Result[]): string {
	const rows = results
		.filter(({ leaves, limit, family }) => leaves && limit === '1 at once' && isUnequal(family))
		.map((cell) => [
			`${cell.items} of ${cell.tasks.name}`,
			leastTime(cell).toFixed(2),
			ratioOf(cell).toFixed(2),
			String(cell.refusals),
			String(mostRefusals(cell)),
		]);
	return table(['Tasks', 'Least : oracle', 'Ours : oracle', 'Refused', 'Allowed'], rows);
}

const isUnequal = (family: string) => family.endsWith(UNEQUAL_TASKS);

const changes = ({ rules: { concurrency, rate } }: Result) =>
	(concurrency?.length ?? 0) > 1 || (rate?.perSecond.length ?? 0) > 1;

function cases(results: readonly Result[]): string {
	const rows = results.map((cell) => [
		`${cell.limit}; ${cell.items} of ${cell.tasks.name}`,
		seconds(cell.ms),
		seconds(cell.oracleMs),
		ratioOf(cell).toFixed(2),
		String(cell.refusals),
		isWithin(cell) ? '' : 'outside',
	]);
	return table(
		['Limit; tasks', 'Ours, s', 'Oracle, s', 'Ours : oracle', 'Refused', 'Bounds'],
		rows,
	);
}

function put(path: string, mark: string, content: string): void {
	const text = readFileSync(path, 'utf8');
	const pattern = new RegExp(`(<!-- ${mark} -->\n)[^]*?(<!-- /${mark} -->)`);
	if (!pattern.test(text)) throw new Error(`${path} has no place for "${mark}".`);
	writeFileSync(
		path,
		text.replace(pattern, (_all, begin: string, end: string) => `${begin}\n${content}\n\n${end}`),
	);
}

/** Runs all cases in virtual time, and writes the tables and the list of the cases that fall short. */
export function measureLimits(): void {
	const results = CELLS.map(run);
	const names = [...new Set(results.map(({ family }) => family))];
	const details = names.map((name) => {
		const cells = results.filter(({ family }) => family === name);
		return `## ${name}: all ${cells.length} cases\n\n${cases(cells)}`;
	});
	const summary = families(results);
	console.log(summary);
	const outside = results.filter((cell) => !isWithin(cell));
	for (const cell of outside) {
		console.log(
			`outside: ${describeCell(cell)}: ${ratioOf(cell).toFixed(2)} times the oracle's time, ${cell.refusals} of ${mostRefusals(cell)} refusals`,
		);
	}
	const shortfalls = outside.map((cell) => ({
		cell: describeCell(cell),
		ratio: Number(ratioOf(cell).toFixed(2)),
		refusals: cell.refusals,
	}));
	writeFileSync(
		join(__dirname, 'shortfalls.json'),
		`${JSON.stringify(shortfalls, undefined, 2)}\n`,
	);
	const outsides = shares(results, heldOut().map(run));
	console.log(outsides);
	put(join(ROOT, 'docs/benchmarks.md'), 'limits', summary);
	put(join(ROOT, 'docs/bench/limits.md'), 'outside', outsides);
	put(join(ROOT, 'docs/bench/limits.md'), 'least', bounds(results));
	put(join(ROOT, 'docs/bench/limits.md'), 'limits', [summary, ...details].join('\n\n'));
}
