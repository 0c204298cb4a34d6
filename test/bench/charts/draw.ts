import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TopLevelSpec } from 'vega-lite' with { 'resolution-mode': 'import' };

export type Theme = 'light' | 'dark';

const FONT = 'system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif';

/** Text and lines by theme, what is measured in one set of colours that stands out from both backgrounds. */
export const INK: Record<Theme, { text: string; faint: string; grid: string }> = {
	light: { text: '#1f2328', faint: '#59636e', grid: '#d1d9e0' },
	dark: { text: '#f0f6fc', faint: '#9198a1', grid: '#3d444d' },
};

export const GREEN = '#2da44e';
export const GREY = '#8c959f';
export const AMBER = '#bf8700';
export const BLUE = '#54aeff';
export const PURPLE = '#8250df';
export const RED = '#cf222e';

/** What all charts have in common: their head, the room around them, how they are written. */
export function frameOf(title: string, subtitle: string, theme: Theme) {
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
