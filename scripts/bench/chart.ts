import { writeFileSync } from 'node:fs';

import type { Row } from './results';

/** Stands out from a light page and from a dark page. */
const TEXT = '#818b98';

/** In the order of the bars, with the colour of each. */
const SERIES = [
	{ name: 'Least time, 200 at the same time', colour: '#54aeff' },
	{ name: 'This package', colour: '#2da44e' },
	{ name: 'Loop of HTTP Request, Wait, If', colour: '#8c959f' },
];

/** In px. */
const WIDTH = 680;
const BARS = { left: 110, width: 480, height: 20, gap: 14, top: 72 };
const LEGEND_HEIGHT = 30;

const text = (x: number, y: number, content: string, more = '') =>
	`<text x="${x}" y="${y}" ${more}>${content}</text>`;

/** Draws the chart of the page: how long the batches take. */
export function drawBatches(path: string, rows: readonly Row[]): void {
	const groups = rows
		.filter(({ id }) => id.endsWith('-time'))
		.map(({ what, ours, peer, limit }) => ({
			name: what.split(':', 1)[0] ?? what,
			seconds: [limit?.value, ours.median, peer?.sample.median],
		}));
	if (groups.length === 0) return;
	const most = Math.max(...groups.flatMap(({ seconds }) => seconds.map((each) => each ?? 0)));
	const groupHeight = SERIES.length * BARS.height + BARS.gap;
	const bars = groups.flatMap(({ name, seconds }, group) => {
		const top = BARS.top + group * groupHeight;
		const middle = top + (SERIES.length * BARS.height) / 2 + 4;
		const title = text(BARS.left - 10, middle, name, 'text-anchor="end"');
		return [
			title,
			...seconds.flatMap((value, index) => {
				if (value === undefined) return [];
				const y = top + index * BARS.height;
				const width = Math.max(1, (value / most) * BARS.width).toFixed(1);
				const label = text(BARS.left + Number(width) + 6, y + 14, `${value.toFixed(1)} s`);
				const size = `width="${width}" height="${BARS.height - 2}" rx="3"`;
				return [`<rect x="${BARS.left}" y="${y}" ${size} fill="${SERIES[index]?.colour}"/>`, label];
			}),
		];
	});
	const below = BARS.top + groups.length * groupHeight;
	const legend = SERIES.flatMap(({ name, colour }, index) => {
		const x = 16 + index * 225;
		return [
			`<rect x="${x}" y="${below}" width="12" height="12" fill="${colour}"/>`,
			text(x + 18, below + 11, name),
		];
	});
	const lines = [
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${below + LEGEND_HEIGHT}" width="${WIDTH}" font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="12" fill="${TEXT}">`,
		text(16, 28, 'Until the last of a batch of tasks is done', 'font-size="16" font-weight="bold"'),
		text(
			16,
			48,
			'Seconds, medians. The loop has all tasks unfinished at once, this package at most 200.',
		),
		...bars,
		...legend,
		'</svg>',
	];
	writeFileSync(path, `${lines.join('\n')}\n`);
}
