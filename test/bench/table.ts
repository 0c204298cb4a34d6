import Table from 'cli-table3';

import { markdownTable, writeSection } from '../page';
import type { Section } from './options';
import type { Results, Row, Sample } from './results';

const HEAD = ['What', 'Ours', 'Peer', 'Limit', 'Ours : peer', 'Ours : limit'];

/** The rows that the page shows, by their ids. All others are printed only. */
const ON_PAGE: Partial<Record<Section, RegExp>> = {
	batch: /-time(-openai)?$/,
	callback: /^callback-accepted-(answer-0(-webhook)?|start-0|cpu-0)$/,
	suspended: /-(resume|cpu)$/,
	startup: /-(time|memory)$/,
};

const CHART = [
	'<picture>',
	'  <source media="(prefers-color-scheme: dark)" srcset="bench/batches.dark.svg">',
	'  <img src="bench/batches.light.svg" alt="Seconds until a batch of 1, 8, 50, 200 and 1,000 tasks is done: the least time with 200 at the same time, this package, and a loop built by hand. The table has the same figures.">',
	'</picture>',
].join('\n');

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

/** Writes the figures that most people ask for into the document, between its marks. */
export function writePage(path: string, { machine, measured, rows }: Results): void {
	const days = Object.values(measured).map(({ at }) => at.slice(0, 10));
	writeSection(
		path,
		'machine',
		`Measured on ${[...new Set(days)].sort().join(' and ')}: ${machine.platform}, ${machine.cores} cores, ${machine.memoryGiB} GiB, n8n ${machine.n8n} on Node.js ${machine.node} with SQLite. n8n, the service and the caller share these cores. Each figure is the median, with the least and the most in brackets.`,
	);
	const shown = Object.entries(ON_PAGE).flatMap(([section, ids]) =>
		(rows[section as Section] ?? []).filter(({ id }) => ids.test(id)),
	);
	const table = markdownTable(HEAD, shown.map(cellsOf), (column) => column > 0);
	writeSection(path, 'figures', [CHART, table].join('\n\n'));
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
