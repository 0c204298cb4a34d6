import { AMBER, BLUE, drawChart, frameOf, GREEN, PURPLE, RED } from '../bench/chart';
import { pointsOf } from './memory';
import type { Results } from './results';

export const MEMORY_CHART = 'durable-memory';

/** Draws the memory of each process over the time of the chaos; a line ends where the process was killed. */
export async function drawMemory(folder: string, { chaos }: Results): Promise<void> {
	if (chaos === undefined) return;
	// A line has the points of one process.
	const points = chaos.memory.flatMap((life) =>
		pointsOf(life, life.from).map(([at, mib]) => ({ name: life.name, pid: life.pid, at, mib })),
	);
	const title = 'Memory of each process of n8n';
	const subtitle = 'MiB over minutes; a line ends where its process was killed';
	await drawChart(folder, MEMORY_CHART, (theme) => ({
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
	}));
}
