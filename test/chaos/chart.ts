import { drawChart } from '../bench/charts/draw';
import { memoryChart } from '../bench/charts/lines';
import { pointsOf } from './memory';
import type { Results } from './results';

export const MEMORY_CHART = 'durable-memory';

/** Draws the memory of each process over the time of the chaos; a line ends where the process was killed. */
export async function drawMemory(folder: string, { chaos }: Results): Promise<void> {
	if (chaos === undefined) return;
	const chart = {
		title: 'Memory of each process of n8n',
		subtitle: 'MiB over minutes; a line ends where its process was killed',
		points: chaos.memory.flatMap((life) =>
			pointsOf(life, life.from).map(([at, mib]) => ({ name: life.name, pid: life.pid, at, mib })),
		),
	};
	await drawChart(folder, MEMORY_CHART, (theme) => memoryChart(chart, theme));
}
