import type { Results } from '../results';
import { type BarChart, barChart, type Bar } from './bars';
import { BLUE, drawChart, GREEN, GREY } from './draw';

const LIMIT = 'Least time, 200 at the same time';
const OURS = 'This package';

/** Draws the chart of the page, for light and dark. */
export async function drawCharts(folder: string, results: Results): Promise<void> {
	const batches = batchChart(results);
	if (batches === undefined) return;
	await drawChart(folder, 'batches', (theme) => barChart(batches, theme));
}

function batchChart({ rows: { batch } }: Results): BarChart | undefined {
	const times = (batch ?? []).filter(({ id }) => id.endsWith('-time'));
	if (times.length === 0) return undefined;
	const loop = 'Loop of HTTP Request, Wait, If';
	return {
		title: 'Until the last of a batch of tasks is done',
		subtitle:
			'Seconds, medians. The loop has all tasks unfinished at once, this package at most 200.',
		bars: times.flatMap(({ what, ours, peer, limit }) => {
			const group = what.split(':', 1)[0] ?? what;
			const bar = (who: string, value: number): Bar => ({
				group,
				who,
				value,
				label: `${value.toFixed(1)} s`,
			});
			return [
				bar(LIMIT, limit?.value ?? NaN),
				bar(OURS, ours.median),
				bar(loop, peer?.sample.median ?? NaN),
			];
		}),
		whos: [
			{ name: LIMIT, colour: BLUE },
			{ name: OURS, colour: GREEN },
			{ name: loop, colour: GREY },
		],
	};
}
