import Table from 'cli-table3';
import { readFileSync, writeFileSync } from 'node:fs';

import type { Section } from './options';
import type { Profile, Results, Row, Sample } from './results';

const HEAD = ['What', 'Ours', 'Peer', 'Limit', 'Ours : peer', 'Ours : limit'];

/** The charts, each above the table of its part. */
const PICTURES: Partial<Record<Section, { name: string; text: string }>> = {
	batch: {
		name: 'batches',
		text: "Time until a batch is done: this package, a loop built by hand, n8n's OpenAI video node, and the physical limit",
	},
	callback: {
		name: 'callbacks',
		text: "Time from a callback to its answer: this package, the least third-party trigger, n8n's Webhook node",
	},
	large: {
		name: 'large',
		text: 'Time, CPU, memory and delays of batches of 10,000 and 50,000 items: this package, the same items through Edit Fields, and the physical limit',
	},
	cluster: {
		name: 'cluster',
		text: "CPU time of each process of a cluster for a callback and for a suspended run: this package and n8n's Webhook node",
	},
	soak: {
		name: 'soak',
		text: 'Memory of each process of n8n over the minutes of the soak',
	},
};

/** Parts that measure the same of several things: a column for each, which their rows begin with. */
const SIDE_BY_SIDE: readonly Section[] = ['growth', 'ledger', 'cluster'];

/** Prints all rows for a terminal. */
export function printTable({ rows }: Results): void {
	const table = new Table({
		head: HEAD,
		colAligns: ['left', 'right', 'right', 'right', 'right', 'right'],
		style: { head: [], border: [] },
	});
	for (const section of Object.values(rows)) table.push(...section.map(cellsOf));
	if (table.length > 0) console.log(table.toString());
}

/** Writes all rows into the document, between its marks. */
export function writeTable(path: string, results: Results): void {
	const { machine, measured, rows, profile } = results;
	let text = readFileSync(path, 'utf8');
	const put = (mark: string, content: string) => {
		const pattern = new RegExp(`(<!-- ${mark} -->\n)[^]*?(<!-- /${mark} -->)`);
		if (!pattern.test(text)) throw new Error(`${path} has no place for "${mark}".`);
		text = text.replace(
			pattern,
			(_all, begin: string, end: string) => `${begin}\n${content}\n\n${end}`,
		);
	};
	const days = Object.values(measured).map(({ at }) => at.slice(0, 10));
	put(
		'machine',
		`Measured on ${[...new Set(days)].sort().join(' and ')}: ${machine.platform}, ${machine.cores} cores, ${machine.memoryGiB} GiB, n8n ${machine.n8n} on Node.js ${machine.node} with SQLite; n8n, the service and whoever calls share these cores.`,
	);
	for (const [name, present] of Object.entries(rows)) {
		const section = name as Section;
		const table = SIDE_BY_SIDE.includes(section) ? sideBySide(present) : markdown(present);
		put(section, [...pictureOf(section), table].join('\n\n'));
	}
	if (profile !== undefined) put('profile', profileTable(profile));
	writeFileSync(path, text);
}

/** The chart, as it suits the page's theme. */
function pictureOf(section: Section): string[] {
	const picture = PICTURES[section];
	if (picture === undefined) return [];
	const { name, text } = picture;
	return [
		[
			'<picture>',
			`  <source media="(prefers-color-scheme: dark)" srcset="bench/${name}.dark.svg">`,
			`  <img src="bench/${name}.light.svg" alt="${text}">`,
			'</picture>',
		].join('\n'),
	];
}

function markdown(rows: readonly Row[]): string {
	return aligned([HEAD, ...rows.map(cellsOf)], [false, true, true, true, true, true]);
}

/** The text of each row is `<column>: <line>`. */
function sideBySide(rows: readonly Row[]): string {
	const parts = rows.map(({ what, ...row }) => {
		const at = what.indexOf(': ');
		return { ...row, column: what.slice(0, at), line: what.slice(at + 2) };
	});
	const columns = [...new Set(parts.map(({ column }) => column))];
	const lines = [...new Set(parts.map(({ line }) => line))];
	const cellOf = (line: string, column: string) => {
		const found = parts.find((part) => part.line === line && part.column === column);
		return found ? withSpread(found.ours, found.unit) : '';
	};
	return aligned(
		[
			['', ...columns],
			...lines.map((line) => [line, ...columns.map((each) => cellOf(line, each))]),
		],
		[false, ...columns.map(() => true)],
	);
}

function profileTable(profiles: readonly Profile[]): string {
	const places = [
		...new Set(profiles.flatMap(({ shares }) => shares.map(({ where }) => where))),
	].sort((a, b) => most(profiles, b) - most(profiles, a));
	const head = ['Where', ...profiles.map(({ what }) => what)];
	const total = ['all, main thread', ...profiles.map(({ msEach }) => `${figure(msEach)} ms`)];
	const lines = places.map((place) => [
		place,
		...profiles.map(({ msEach, shares }) => {
			const { percent = 0 } = shares.find(({ where }) => where === place) ?? {};
			return `${figure((msEach * percent) / 100)} ms (${percent.toFixed(0)} %)`;
		}),
	]);
	return aligned([head, total, ...lines], [false, ...profiles.map(() => true)]);
}

const most = (profiles: readonly Profile[], place: string) =>
	Math.max(
		...profiles.map(({ shares }) => shares.find(({ where }) => where === place)?.percent ?? 0),
	);

/** As Prettier would write it, so that the document is left alone by it. */
function aligned(lines: string[][], right: boolean[]): string {
	const widths = right.map((_, column) =>
		Math.max(3, ...lines.map((cells) => [...(cells[column] ?? '')].length)),
	);
	const pad = (cell: string, column: number) => {
		const missing = ' '.repeat(Math.max(0, (widths[column] ?? 0) - [...cell].length));
		return right[column] ? missing + cell : cell + missing;
	};
	const line = (cells: string[]) => `| ${cells.map(pad).join(' | ')} |`;
	const rule = right.map((isRight, column) =>
		isRight ? `${'-'.repeat((widths[column] ?? 3) - 1)}:` : '-'.repeat(widths[column] ?? 3),
	);
	const [head = [], ...body] = lines;
	return [line(head), `| ${rule.join(' | ')} |`, ...body.map(line)].join('\n');
}

function cellsOf({ what, unit, ours, peer, limit }: Row): string[] {
	return [
		what,
		withSpread(ours, unit),
		peer ? `${withSpread(peer.sample, unit)}, ${peer.name}` : '',
		limit ? `${figure(limit.value)}${unitOf(unit)}, ${limit.name}` : '',
		peer ? ratio(ours.median, peer.sample.median) : '',
		limit ? ratio(ours.median, limit.value) : '',
	];
}

function withSpread({ median, least, most, count }: Sample, unit: string): string {
	const spread = count > 1 ? ` (${figure(least)}–${figure(most)})` : '';
	return `${figure(median)}${spread}${unitOf(unit)}`;
}

const unitOf = (unit: string) => (unit === '' ? '' : ` ${unit}`);

/** Three digits, and no more decimals than two. */
function figure(value: number): string {
	const decimals = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
	return value.toFixed(decimals);
}

const ratio = (ours: number, other: number) =>
	other > 0 && ours >= 0
		? ours / other < 0.1
			? (ours / other).toFixed(3)
			: figure(ours / other)
		: '–';
