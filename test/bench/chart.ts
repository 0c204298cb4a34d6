import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TopLevelSpec } from 'vega-lite' with { 'resolution-mode': 'import' };

import type { Results } from './results';

type Theme = 'light' | 'dark';

const FONT = 'system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif';

/** Text and lines by theme, what is measured in one set of colours that stands out from both backgrounds. */
const INK: Record<Theme, { text: string; faint: string; grid: string }> = {
	light: { text: '#1f2328', faint: '#59636e', grid: '#d1d9e0' },
	dark: { text: '#f0f6fc', faint: '#9198a1', grid: '#3d444d' },
};

const GREEN = '#2da44e';
const GREY = '#8c959f';
const BLUE = '#54aeff';

/** What all charts have in common: their head, the room around them, how they are written. */
function frameOf(title: string, subtitle: string, theme: Theme) {
	const { text, faint, grid } = INK[theme];
	return {
		$schema: 'https://vega.github.io/schema/vega-lite/v6.json',
		background: 'transparent',
		padding: 16,
		title: { text: title, subtitle, anchor: 'start', offset: 16 },
		config: {
			font: FONT,
			view: { stroke: null },
			title: {
				color: text,
				subtitleColor: faint,
				fontSize: 16,
				subtitleFontSize: 12,
				subtitlePadding: 6,
			},
			header: { labelColor: text },
			legend: { labelColor: text, labelFontSize: 12, labelLimit: 0 },
			axis: { labelColor: faint, titleColor: faint, gridColor: grid, domainColor: grid },
		},
	} as const;
}

/** Draws one chart, for a light and a dark page. */
async function drawChart(
	folder: string,
	name: string,
	specOfTheme: (theme: Theme) => TopLevelSpec,
): Promise<void> {
	// Libraries that are ES modules only.
	const [vega, vegaLite] = await Promise.all([import('vega'), import('vega-lite')]);
	// Vega-Lite warns of each facet that its bars are not the same ones as in the next: they are not meant to be.
	const logger = vega.logger(vega.Error);
	for (const theme of ['light', 'dark'] as const) {
		const { spec } = vegaLite.compile(specOfTheme(theme), { logger });
		const view = new vega.View(vega.parse(spec), { renderer: 'none' });
		writeFileSync(join(folder, `${name}.${theme}.svg`), `${await view.toSVG()}\n`);
		view.finalize();
	}
}

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
export async function drawBatches(
	folder: string,
	{ rows: { batch = [] } }: Results,
): Promise<void> {
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
