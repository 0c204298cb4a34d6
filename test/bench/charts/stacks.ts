import type { TopLevelSpec } from 'vega-lite' with { 'resolution-mode': 'import' };

import { AMBER, BLUE, facetOf, frameOf, GREEN, GREY, INK, PURPLE, type Theme } from './draw';

const WIDTH = 480;

/** A part of a bar. */
export interface Part {
	group: string;
	who: string;
	part: string;
	value: number;
}

/** Groups of bars that are put together of parts, one below the other, with its sum behind each bar. */
export function stackChart(
	{
		title,
		subtitle,
		parts,
		unit,
	}: { title: string; subtitle: string; parts: Part[]; unit: string },
	theme: Theme,
): TopLevelSpec {
	const orderOf = (key: 'who' | 'part') => [...new Set(parts.map((part) => part[key]))];
	const names = orderOf('part');
	return {
		...frameOf(title, subtitle, theme),
		data: { values: parts.map((part) => ({ ...part, order: names.indexOf(part.part) })) },
		facet: facetOf(parts.map(({ group }) => group)),
		spacing: 10,
		resolve: { scale: { y: 'independent' } },
		spec: {
			width: WIDTH,
			height: { step: 20 },
			encoding: {
				y: {
					field: 'who',
					type: 'nominal',
					sort: orderOf('who'),
					axis: { title: null, ticks: false, domain: false },
				},
			},
			layer: [
				{
					mark: { type: 'bar', height: 15 },
					encoding: {
						x: {
							field: 'value',
							type: 'quantitative',
							stack: 'zero',
							axis: { title: null, labels: false, ticks: false, domain: false, grid: false },
						},
						order: { field: 'order', type: 'quantitative' },
						color: {
							field: 'part',
							type: 'nominal',
							scale: { domain: names, range: [AMBER, BLUE, GREEN, PURPLE, GREY] },
							legend: { title: null, orient: 'bottom', symbolType: 'square', columns: 3 },
						},
					},
				},
				{
					transform: [
						{ aggregate: [{ op: 'sum', field: 'value', as: 'sum' }], groupby: ['who'] },
						{ calculate: `format(datum.sum, '.0f') + ' ${unit}'`, as: 'label' },
					],
					mark: { type: 'text', align: 'left', dx: 5, fontSize: 12, color: INK[theme].text },
					encoding: {
						x: { field: 'sum', type: 'quantitative' },
						text: { field: 'label', type: 'nominal' },
					},
				},
			],
		},
	};
}
