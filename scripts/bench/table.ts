import { markdownTable, writeSection } from '../../test/page';
import type { Results, Row, Sample } from './results';

const HEAD = ['What', 'Ours', 'Peer', 'Limit', 'Ours : peer', 'Ours : limit', 'Measured on'];

/** The rows that the page shows, by their ids. All others are printed only. */
const ON_PAGE = /^(batch-\d+-time|callback|suspended|asleep|night|startup)/;

/** The figures as a table of a page, which a terminal shows as well: the rows with such an id. */
export async function tableOf({ rows, measured }: Results, isShown = /./): Promise<string> {
	const lines = Object.entries(rows).flatMap(([part, all]) => {
		const shown = all.filter(({ id }) => isShown.test(id));
		return shown.map((row) => [...cellsOf(row), measured[part]?.at.slice(0, 10) ?? '']);
	});
	return await markdownTable(HEAD, lines, (column) => column > 0);
}

/** Writes the figures that most people ask for into the document, between its marks. */
export async function writePage(path: string, results: Results): Promise<void> {
	const { machine } = results;
	writeSection(
		path,
		'machine',
		`The machine: ${machine?.platform}, ${machine?.cores} cores, ${machine?.memoryGiB} GiB, n8n ${machine?.n8n} on Node.js ${machine?.node} with SQLite. n8n, the service and the caller share these cores. Each figure is the median, with the least and the most in brackets.`,
	);
	writeSection(path, 'figures', await tableOf(results, ON_PAGE));
	writeSection(path, 'costs', await tableOfCosts(results));
}

/** What the table of costs shows, with the ids of its rows: with one process, and in queue mode. */
const COSTS: ReadonlyArray<readonly [what: string, alone: string, inQueueMode?: RegExp]> = [
	['Held, 1,000 tasks in one run', 'batch-1000-cpu'],
	['A trigger, one execution for each task', 'callback-accepted-cpu-0', /^cluster-\d+-callback$/],
	['Suspended, one execution for each task', 'suspended-cpu', /^cluster-\d+-suspended$/],
];

/** What one task costs n8n. */
async function tableOfCosts({ rows }: Results): Promise<string> {
	const all = Object.values(rows).flat();
	const range = (isShown: (id: string) => boolean) => {
		const medians = all.filter(({ id }) => isShown(id)).map(({ ours }) => ours.median);
		if (medians.length === 0) return '';
		const ends = [Math.min(...medians), Math.max(...medians)].map((value) => value.toFixed(0));
		return `${[...new Set(ends)].join('–')} ms`;
	};
	const lines = COSTS.map(([what, alone, inQueueMode]) => [
		what,
		range((id) => id === alone),
		range((id) => inQueueMode?.test(id) ?? false),
	]).filter(([, ...cells]) => cells.some((cell) => cell !== ''));
	const head = [
		'How the result comes',
		'One process',
		'Queue mode, 1, 2 and 4 workers: all processes',
	];
	const columns = lines.some(([, , inQueueMode]) => inQueueMode !== '') ? 3 : 2;
	const shown = lines.map((line) => line.slice(0, columns));
	return await markdownTable(head.slice(0, columns), shown, (column) => column > 0);
}

function cellsOf({ what, unit, ours, peer, limit }: Row): string[] {
	return [
		what,
		withSpread(ours, unit),
		peer ? `${withSpread(peer.sample, unit)}, ${peer.name}` : '',
		limit ? `${figure(limit.value)} ${unit}, ${limit.name}` : '',
		peer ? ratio(ours.median, peer.sample.median) : '',
		limit ? ratio(ours.median, limit.value) : '',
	];
}

function withSpread({ median, least, most, count }: Sample, unit: string): string {
	const spread = count > 1 ? ` (${figure(least)}–${figure(most)})` : '';
	return `${figure(median)}${spread} ${unit}`;
}

/** Three digits, and no more decimals than two. */
function figure(value: number): string {
	const decimals = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
	return value.toFixed(decimals);
}

function ratio(ours: number, other: number): string {
	return ours / other < 0.1 ? (ours / other).toFixed(3) : figure(ours / other);
}
