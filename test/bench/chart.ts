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
				return { group, who: NAMES[index], value, label: `${value.toFixed(1)} s` };
			}),
		);
	if (bars.length === 0) return;
	// Libraries that are ES modules only.
	const [vega, vegaLite] = await Promise.all([import('vega'), import('vega-lite')]);
	const view = new vega.View(vega.parse(vegaLite.compile(specOf(bars)).spec), { renderer: 'none' });
	writeFileSync(path, `${await view.toSVG()}\n`);
	view.finalize();
}

/** Groups of bars one below the other, each with its value behind it. */
const specOf = (values: object[]): TopLevelSpec => ({
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
		axis: { labelColor: TEXT, labelFontSize: 13, labelPadding: 8, domain: false, ticks: false },
		legend: { labelColor: TEXT, labelFontSize: 12, labelLimit: 0 },
	},
	data: { values },
	width: 480,
	height: { step: 20 },
	encoding: {
		y: { field: 'group', sort: null, title: null },
		yOffset: { field: 'who', sort: NAMES },
		x: { field: 'value', type: 'quantitative', axis: null },
	},
	layer: [
		{
			mark: { type: 'bar', cornerRadiusEnd: 3 },
			encoding: {
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
});
