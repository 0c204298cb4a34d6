import type { Results, Row } from '../results';
import { type BarChart, barChart, type Bar } from './bars';
import { AMBER, BLUE, drawChart, GREEN, GREY } from './draw';
import { memoryChart } from './lines';
import { type Part, stackChart } from './stacks';

const LIMIT = 'Physical limit';
const OURS = 'This package';

/** Draws the charts of what has been measured, each for a light and a dark page. */
export async function drawCharts(folder: string, results: Results): Promise<void> {
	const bars = {
		batches: batchChart(results),
		callbacks: callbackChart(results),
		large: largeChart(results),
	};
	for (const [name, chart] of Object.entries(bars)) {
		if (chart !== undefined) await drawChart(folder, name, (theme) => barChart(chart, theme));
	}
	const cluster = clusterChart(results);
	if (cluster !== undefined) {
		await drawChart(folder, 'cluster', (theme) => stackChart(cluster, theme));
	}
	const soak = soakChart(results);
	if (soak !== undefined) await drawChart(folder, 'soak', (theme) => memoryChart(soak, theme));
}

function batchChart({ rows: { batch } }: Results): BarChart | undefined {
	const times = (batch ?? []).filter(({ id }) => /-time(-openai)?$/.test(id));
	if (times.length === 0) return undefined;
	const openAi = "n8n's OpenAI video node";
	const loop = 'Loop of HTTP Request, Wait, If';
	const seconds = (value: number) => `${value >= 100 ? value.toFixed(0) : value.toFixed(1)} s`;
	return {
		title: 'Until the last of a batch of tasks is done',
		subtitle: 'Seconds on a logarithmic scale; medians, side by side on one n8n',
		bars: times.flatMap(({ id, what, ours, peer, limit }) => {
			const group = what.split(':', 1)[0] ?? what;
			const bar = (who: string, value: number): Bar => ({
				group,
				who,
				value,
				label: seconds(value),
			});
			if (id.endsWith('-openai')) return [bar(openAi, peer?.sample.median ?? NaN)];
			return [
				bar(LIMIT, limit?.value ?? NaN),
				bar(OURS, ours.median),
				bar(loop, peer?.sample.median ?? NaN),
			];
		}),
		whos: [
			{ name: LIMIT, colour: BLUE },
			{ name: OURS, colour: GREEN },
			{ name: loop, colour: GREY },
			{ name: openAi, colour: AMBER },
		],
		scale: 'logarithmic',
	};
}

function callbackChart({ rows: { callback } }: Results): BarChart | undefined {
	if (callback === undefined) return undefined;
	const find = (id: string): Row | undefined => callback.find((row) => row.id === id);
	const least = 'Least third-party trigger';
	const webhook = "n8n's Webhook node";
	const bars: Bar[] = [];
	const add = (group: string, id: string) => {
		const row = find(id);
		if (row === undefined) return;
		const bar = (who: string, value: number) =>
			bars.push({ group, who, value, label: `${value.toFixed(0)} ms` });
		bar(OURS, row.ours.median);
		bar(least, row.peer?.sample.median ?? NaN);
		const other = find(`${id}-webhook`);
		if (other?.peer) bar(webhook, other.peer.sample.median);
	};
	const most = Math.max(
		...callback.map(({ id }) => Number(/^callback-accepted-answer-(\d+)$/.exec(id)?.[1] ?? 0)),
	);
	add('Accepted', 'callback-accepted-answer-0');
	if (most > 0) {
		add(`Accepted, ${most.toLocaleString('en')} remembered`, `callback-accepted-answer-${most}`);
	}
	add('Duplicate', 'callback-duplicate-answer-0');
	add('Refused', 'callback-refused-answer-0');
	return {
		title: 'From a callback to its answer',
		subtitle: 'Milliseconds, medians, one callback after the other',
		bars,
		whos: [
			{ name: OURS, colour: GREEN },
			{ name: least, colour: GREY },
			{ name: webhook, colour: AMBER },
		],
	};
}

function largeChart({ rows: { large } }: Results): BarChart | undefined {
	if (large === undefined) return undefined;
	const peer = 'The same items through Edit Fields';
	return {
		title: 'Batches of ten thousand and more',
		subtitle: 'One run each, on one n8n; every group has a scale of its own',
		bars: large.flatMap(({ what, unit, ours, peer: other, limit }) => {
			const bar = (who: string, value: number): Bar => ({
				group: what,
				who,
				value,
				label: `${Number(value.toPrecision(3))} ${unit}`,
			});
			return [
				...(limit ? [bar(LIMIT, limit.value)] : []),
				bar(OURS, ours.median),
				...(other ? [bar(peer, other.sample.median)] : []),
			];
		}),
		whos: [
			{ name: LIMIT, colour: BLUE },
			{ name: OURS, colour: GREEN },
			{ name: peer, colour: GREY },
		],
		scale: 'own',
	};
}

function clusterChart({ rows: { cluster } }: Results) {
	if (cluster === undefined) return undefined;
	const parts = cluster.flatMap(({ what, ours }): Part[] => {
		const [, size, who, kind, part] = /^(.+), (.+): (.+), CPU of (?!all$)(.+)$/.exec(what) ?? [];
		if (size === undefined || who === undefined || kind === undefined) return [];
		const group = `${kind}, ${size} workers and webhook processors`;
		return [{ group, who, part: part ?? '', value: ours.median }];
	});
	return {
		title: "The CPU's time in a cluster",
		subtitle: 'Milliseconds of each process for one of them',
		parts,
		unit: 'ms',
	};
}

function soakChart({ soak }: Results) {
	return (
		soak && {
			title: 'Memory of each process of n8n',
			subtitle: 'MiB in use over minutes of the same load, garbage collected',
			points: soak.flatMap(({ at, memory }) =>
				Object.entries(memory).map(([name, { usedMiB }], pid) => ({ name, pid, at, mib: usedMiB })),
			),
		}
	);
}
