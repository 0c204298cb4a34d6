import type { TopLevelSpec } from 'vega-lite' with { 'resolution-mode': 'import' };

import type { Results } from '../results';
import { BLUE, drawChart, frameOf, GREEN, GREY, INK, type Theme } from './draw';

const WIDTH = 480;

/** In the order of the bars, with the colour of each. */
const COLOURS: Record<string, string> = {
	'Least time, 200 at the same time': BLUE,
	'This package': GREEN,
	'Loop of HTTP Request, Wait, If': GREY,
};
const NAMES = Object.keys(COLOURS);

interface Bar {
	group: string;
	who: string | undefined;
	value: number;
	base: 0;
	label: string;
}

/** Draws the chart of the page, for light and dark. */
export async function drawCharts(folder: string, { rows: { batch = [] } }: Results): Promise<void> {
	const times = batch.filter(({ id }) => id.endsWith('-time'));
	if (times.length === 0) return;
	const bars = times.flatMap(({ what, ours, peer, limit }) =>
		[limit?.value ?? NaN, ours.median, peer?.sample.median ?? NaN].map((value, index): Bar => {
			const label = `${value.toFixed(1)} s`;
			return { group: what.split(':', 1)[0] ?? what, who: NAMES[index], value, base: 0, label };
		}),
	);
	await drawChart(folder, 'batches', (theme) => barChart(bars, theme));
}

/** Groups of bars one below the other, each under its name, with its value behind each bar. */
function barChart(bars: Bar[], theme: Theme): TopLevelSpec {
	const title = 'Until the last of a batch of tasks is done';
	const subtitle =
		'Seconds, medians. The loop has all tasks unfinished at once, this package at most 200.';
	return {
		...frameOf(title, subtitle, theme),
		width: WIDTH,
		data: { values: bars },
		facet: {
			row: {
				field: 'group',
				type: 'nominal',
				sort: [...new Set(bars.map(({ group }) => group))],
				header: {
					title: null,
					labelOrient: 'top',
					labelAnchor: 'start',
					labelPadding: 4,
					labelFontSize: 13,
				},
			},
		},
		spacing: 10,
		resolve: { scale: { y: 'independent' } },
		spec: {
			width: WIDTH,
			height: { step: 20 },
			encoding: {
				y: { field: 'who', type: 'nominal', sort: NAMES, axis: null },
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
							scale: { domain: NAMES, range: Object.values(COLOURS) },
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
