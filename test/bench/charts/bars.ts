import type { TopLevelSpec } from 'vega-lite' with { 'resolution-mode': 'import' };

import { facetOf, frameOf, INK, type Theme } from './draw';

const WIDTH = 480;

/** One bar. */
export interface Bar {
	group: string;
	who: string;
	value: number;
	label: string;
}

export interface BarChart {
	title: string;
	subtitle: string;
	bars: Bar[];
	/** In the order of the bars, with the colour of each. */
	whos: Array<{ name: string; colour: string }>;
}

/** Groups of bars, one below the other, with its value behind each bar. */
export function barChart({ title, subtitle, bars, whos }: BarChart, theme: Theme): TopLevelSpec {
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
