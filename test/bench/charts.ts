import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TopLevelSpec } from 'vega-lite' with { 'resolution-mode': 'import' };

import type { Results, Row } from './results';

export type Theme = 'light' | 'dark';

export const FONT = 'system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif';

/** Text and lines by theme, bars in one set of colours that stands out from both backgrounds. */
export const INK: Record<Theme, { text: string; faint: string; grid: string }> = {
	light: { text: '#1f2328', faint: '#59636e', grid: '#d1d9e0' },
	dark: { text: '#f0f6fc', faint: '#9198a1', grid: '#3d444d' },
};
/** How a chart of a theme is written. */
export const styleOf = (theme: Theme) => ({
	font: FONT,
	view: { stroke: null },
	title: {
		color: INK[theme].text,
		subtitleColor: INK[theme].faint,
		fontSize: 16,
		subtitleFontSize: 12,
		subtitlePadding: 6,
	},
});
const COLOURS = { ours: '#2da44e', peer: '#8c959f', other: '#bf8700', limit: '#54aeff' };

const WIDTH = 480;

const LIMIT = 'Physical limit';
const OURS = 'This package';

/** One bar. */
interface Bar {
	group: string;
	who: string;
	value: number;
	label: string;
}

interface Chart {
	title: string;
	subtitle: string;
	bars: Bar[];
	/** In the order of the bars, with the colour of each. */
	whos: Array<{ name: string; colour: string }>;
	isLogarithmic?: boolean;
}

/** Draws the charts of what has been measured, each for a light and a dark page. */
export async function drawCharts(folder: string, results: Results): Promise<void> {
	const charts = { batches: batchChart(results), callbacks: callbackChart(results) };
	for (const [name, chart] of Object.entries(charts)) {
		if (chart !== undefined) await drawChart(folder, name, (theme) => specOf(chart, theme));
	}
}

/** Draws one chart, for a light and a dark page. */
export async function drawChart(
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

function batchChart({ rows: { batch } }: Results): Chart | undefined {
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
			{ name: LIMIT, colour: COLOURS.limit },
			{ name: OURS, colour: COLOURS.ours },
			{ name: loop, colour: COLOURS.peer },
			{ name: openAi, colour: COLOURS.other },
		],
		isLogarithmic: true,
	};
}

function callbackChart({ rows: { callback } }: Results): Chart | undefined {
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
			{ name: OURS, colour: COLOURS.ours },
			{ name: least, colour: COLOURS.peer },
			{ name: webhook, colour: COLOURS.other },
		],
	};
}

function specOf({ title, subtitle, bars, whos, isLogarithmic }: Chart, theme: Theme): TopLevelSpec {
	const { text, faint, grid } = INK[theme];
	const names = whos.map(({ name }) => name);
	const scale = isLogarithmic ? { type: 'log' as const, domainMin: 1 } : { zero: true };
	return {
		$schema: 'https://vega.github.io/schema/vega-lite/v6.json',
		width: WIDTH,
		background: 'transparent',
		padding: 16,
		title: { text: title, subtitle, anchor: 'start', offset: 16 },
		data: { values: bars.map((bar) => ({ ...bar, base: isLogarithmic ? 1 : 0 })) },
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
				y: { field: 'who', type: 'nominal', sort: names, axis: null },
				x: {
					field: 'value',
					type: 'quantitative',
					scale,
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
					mark: { type: 'text', align: 'left', dx: 5, fontSize: 12, color: text },
					encoding: { text: { field: 'label', type: 'nominal' } },
				},
			],
		},
		config: {
			...styleOf(theme),
			header: { labelColor: text },
			legend: { labelColor: text, labelFontSize: 12, labelLimit: 0 },
			axis: { labelColor: faint, gridColor: grid },
		},
	};
}
