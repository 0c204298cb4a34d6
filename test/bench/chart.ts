import { writeFileSync } from 'node:fs';
import type { TopLevelSpec } from 'vega-lite' with { 'resolution-mode': 'import' };

import type { Row } from './results';

/** Stands out from a light page and from a dark page. */
const TEXT = '#818b98';

/** In the order of the bars, with the colour of each. */
const COLOURS: Record<string, string> = {
	'Least time, 200 at the same time': '#54aeff',
	'This package': '#2da44e',
	'Loop of HTTP Request, Wait, If': '#8c959f',
};
const NAMES = Object.keys(COLOURS);

/** Draws the chart of the page: how long the batches take. */
export async function drawBatches(path: string, rows: readonly Row[]): Promise<void> {
	const bars = rows
		.filter(({ id }) => id.endsWith('-time'))
		.flatMap(({ what, ours, peer, limit }) =>
			[limit?.value ?? NaN, ours.median, peer?.sample.median ?? NaN].map((value, index) => {
				const [group = what] = what.split(':', 1);
				return { group, who: NAMES[index], value, base: 0, label: `${value.toFixed(1)} s` };
			}),
		);
	if (bars.length === 0) return;
	// Libraries that are ES modules only.
	const [vega, vegaLite] = await Promise.all([import('vega'), import('vega-lite')]);
	// Vega-Lite warns of each facet that its bars are not the same ones as in the next: they are not meant to be.
	const { spec } = vegaLite.compile(specOf(bars), { logger: vega.logger(vega.Error) });
	const view = new vega.View(vega.parse(spec), { renderer: 'none' });
	writeFileSync(path, `${await view.toSVG()}\n`);
	view.finalize();
}

/** Groups of bars one below the other, each under its name, with its value behind each bar. */
const specOf = (values: Array<{ group: string }>): TopLevelSpec => ({
	background: 'transparent',
	padding: 16,
	title: {
		text: 'Until the last of a batch of tasks is done',
		subtitle:
			'Seconds, medians. The loop has all tasks unfinished at once, this package at most 200.',
		anchor: 'start',
		offset: 16,
	},
	config: {
		font: 'system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif',
		view: { stroke: null },
		title: { color: TEXT, subtitleColor: TEXT, fontSize: 16, subtitleFontSize: 12 },
		header: { labelColor: TEXT, labelFontSize: 13 },
		legend: { labelColor: TEXT, labelFontSize: 12, labelLimit: 0 },
	},
	data: { values },
	facet: {
		row: {
			field: 'group',
			sort: [...new Set(values.map(({ group }) => group))],
			header: { title: null, labelOrient: 'top', labelAnchor: 'start', labelPadding: 4 },
		},
	},
	spacing: 10,
	spec: {
		width: 480,
		height: { step: 20 },
		encoding: {
			y: { field: 'who', sort: NAMES, axis: null },
			x: { field: 'value', type: 'quantitative', axis: null },
		},
		layer: [
			{
				mark: { type: 'bar', cornerRadiusEnd: 3, height: 15 },
				encoding: {
					x2: { field: 'base' },
					color: {
						field: 'who',
						scale: { domain: NAMES, range: Object.values(COLOURS) },
						legend: { title: null, orient: 'bottom', symbolType: 'square', columns: 2 },
					},
				},
			},
			{
				mark: { type: 'text', align: 'left', dx: 5, fontSize: 12, color: TEXT },
				encoding: { text: { field: 'label' } },
			},
		],
	},
});
