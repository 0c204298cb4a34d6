import type { TopLevelSpec } from 'vega-lite' with { 'resolution-mode': 'import' };

import { drawChart, INK, styleOf, type Theme } from '../bench/charts';
import { type Life, pointsOf } from './memory';
import type { Results } from './results';

export const MEMORY_CHART = 'durable-memory';

const COLOURS = ['#2da44e', '#54aeff', '#bf8700', '#8250df', '#cf222e'];

/** Draws the memory of each process over the time of the chaos; a line ends where the process was killed. */
export async function drawMemory(folder: string, { chaos }: Results): Promise<void> {
	if (chaos === undefined) return;
	await drawChart(folder, MEMORY_CHART, (theme) => specOf(chaos.memory, theme));
}

function specOf(lives: Life[], theme: Theme): TopLevelSpec {
	const { text, faint, grid } = INK[theme];
	return {
		$schema: 'https://vega.github.io/schema/vega-lite/v6.json',
		width: 640,
		height: 240,
		background: 'transparent',
		padding: 16,
		title: {
			text: 'Memory of each process of n8n',
			subtitle: 'MiB over minutes; a line ends where its process was killed',
			anchor: 'start',
			offset: 16,
		},
		data: {
			values: lives.flatMap((life) =>
				pointsOf(life, life.from).map(([at, mib]) => ({ name: life.name, pid: life.pid, at, mib })),
			),
		},
		mark: { type: 'line', strokeWidth: 1.5 },
		encoding: {
			x: { field: 'at', type: 'quantitative', title: 'minutes' },
			y: { field: 'mib', type: 'quantitative', title: 'MiB', scale: { zero: true } },
			color: {
				field: 'name',
				type: 'nominal',
				scale: { range: COLOURS },
				legend: { title: null, orient: 'bottom' },
			},
			detail: { field: 'pid', type: 'nominal' },
		},
		config: {
			...styleOf(theme),
			legend: { labelColor: text, labelFontSize: 12, labelLimit: 0 },
			axis: { labelColor: faint, titleColor: faint, gridColor: grid, domainColor: grid },
		},
	};
}
