import type { TopLevelSpec } from 'vega-lite' with { 'resolution-mode': 'import' };

import type { Results } from '../results';
import { BLUE, drawChart, frameOf, GREEN, GREY, INK, type Theme } from './draw';

const WIDTH = 480;

const LIMIT = 'Least time, 200 at the same time';
const OURS = 'This package';

/** Draws the chart of the page, for light and dark. */
export async function drawCharts(folder: string, results: Results): Promise<void> {
	const batches = batchChart(results);
	if (batches === undefined) return;
	await drawChart(folder, 'batches', (theme) => barChart(batches, theme));
}

function batchChart({ rows: { batch } }: Results): BarChart | undefined {
	const times = (batch ?? []).filter(({ id }) => id.endsWith('-time'));
	if (times.length === 0) return undefined;
	const loop = 'Loop of HTTP Request, Wait, If';
	return {
		title: 'Until the last of a batch of tasks is done',
		subtitle:
			'Seconds, medians. The loop has all tasks unfinished at once, this package at most 200.',
		bars: times.flatMap(({ what, ours, peer, limit }) => {
			const group = what.split(':', 1)[0] ?? what;
			const bar = (who: string, value: number): Bar => ({
				group,
				who,
				value,
				label: `${value.toFixed(1)} s`,
			});
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
		],
	};
}

/** One bar. */
interface Bar {
	group: string;
	who: string;
	value: number;
	label: string;
}

interface BarChart {
	title: string;
	subtitle: string;
	bars: Bar[];
	/** In the order of the bars, with the colour of each. */
	whos: Array<{ name: string; colour: string }>;
}

/** Groups of bars, one below the other, with its value behind each bar. */
function barChart({ title, subtitle, bars, whos }: BarChart, theme: Theme): TopLevelSpec {
	const names = whos.map(({ name }) => name);
	return {
		...frameOf(title, subtitle, theme),
		width: WIDTH,
		data: { values: bars.map((bar) => ({ ...bar, base: 0 })) },
		facet: facetOf(bars.map(({ group }) => group)),
		spacing: 10,
		resolve: { scale: { y: 'independent' } },
		spec: {
			width: WIDTH,
			height: { step: 20 },
			encoding: {
				y: { field: 'who', type: 'nominal', sort: names, axis: null },
				x: {
					field: 'value',
					type: 'quantitative',
					scale: { zero: true },
					axis: { title: null, labels: false, ticks: false, domain: false, grid: false },
				},
			},
			layer: [
				{
					mark: { type: 'bar', cornerRadiusEnd: 3, height: 15 },
					encoding: {
						x2: { field: 'base' },
						color: {
							field: 'who',
							type: 'nominal',
							scale: { domain: names, range: whos.map(({ colour }) => colour) },
							legend: { title: null, orient: 'bottom', symbolType: 'square', columns: 2 },
						},
					},
				},
				{
					mark: { type: 'text', align: 'left', dx: 5, fontSize: 12, color: INK[theme].text },
					encoding: { text: { field: 'label', type: 'nominal' } },
				},
			],
		},
	};
}

/** The groups of a chart one below the other, each under its name. */
function facetOf(groups: string[]) {
	return {
		row: {
			field: 'group',
			type: 'nominal' as const,
			sort: [...new Set(groups)],
			header: {
				title: null,
				labelOrient: 'top' as const,
				labelAnchor: 'start' as const,
				labelPadding: 4,
				labelFontSize: 13,
			},
		},
	};
}
