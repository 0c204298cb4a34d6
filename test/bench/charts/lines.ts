import type { TopLevelSpec } from 'vega-lite' with { 'resolution-mode': 'import' };

import { AMBER, BLUE, frameOf, GREEN, PURPLE, RED, type Theme } from './draw';

/** What one process of n8n had in memory at one moment. */
export interface MemoryPoint {
	name: string;
	/** A line has the points of one process. */
	pid: number;
	/** Minutes. */
	at: number;
	mib: number;
}

/** The memory of each process of n8n over time. */
export function memoryChart(
	{ title, subtitle, points }: { title: string; subtitle: string; points: MemoryPoint[] },
	theme: Theme,
): TopLevelSpec {
	return {
		...frameOf(title, subtitle, theme),
		width: 640,
		height: 240,
		data: { values: points },
		mark: { type: 'line', strokeWidth: 1.5 },
		encoding: {
			x: { field: 'at', type: 'quantitative', title: 'minutes' },
			y: { field: 'mib', type: 'quantitative', title: 'MiB', scale: { zero: true } },
			color: {
				field: 'name',
				type: 'nominal',
				scale: { range: [GREEN, BLUE, AMBER, PURPLE, RED] },
				legend: { title: null, orient: 'bottom' },
			},
			detail: { field: 'pid', type: 'nominal' },
		},
	};
}
