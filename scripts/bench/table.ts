import { markdownTable, writeSection } from '../../test/page';
import type { Results, Row, Sample } from './results';

const HEAD = ['What', 'Ours', 'Peer', 'Limit', 'Measured on'];

/** The figures as a table, which a terminal shows as well. */
export function tableOf({ rows, measured }: Results): string {
	const lines = Object.entries(rows).flatMap(([part, all]) =>
		all.map((row) => [...cellsOf(row), measured[part]?.at.slice(0, 10) ?? '']),
	);
	return markdownTable(HEAD, lines, (column) => column > 0);
}

/** Writes the figures into the document, between its marks. */
export function writePage(path: string, results: Results): void {
	const { machine } = results;
	writeSection(
		path,
		'machine',
		`The machine is ${machine?.platform} with ${machine?.cores} cores and ${machine?.memoryGiB} GiB; n8n ${machine?.n8n} runs on Node.js ${machine?.node} with SQLite. Each figure is the median, with the least and the most in brackets; a figure without brackets was measured once.`,
	);
	writeSection(path, 'figures', tableOf(results));
}

function cellsOf({ what, unit, ours, peer, limit }: Row): string[] {
	return [
		what,
		withSpread(ours, unit),
		peer ? `${withSpread(peer.sample, unit)}, ${peer.name}` : '',
		limit ? `${figure(limit.value)} ${unit}, ${limit.name}` : '',
	];
}

function withSpread({ median, least, most, count }: Sample, unit: string): string {
	const spread = count > 1 ? ` (${figure(least)}–${figure(most)})` : '';
	return `${figure(median)} ${unit}${spread}`;
}

/** Three digits, and no more decimals than two. */
function figure(value: number): string {
	const decimals = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
	return value.toFixed(decimals);
}
