import { readFileSync, writeFileSync } from 'node:fs';

/**
 * A table of a page.
 *
 * @param isFigure which columns have figures: they stand at the right
 */
export function markdownTable(
	head: readonly string[],
	rows: ReadonlyArray<readonly string[]>,
	isFigure: (column: number) => boolean = () => false,
): string {
	const all = [head, ...rows];
	const widths = head.map((_, column) =>
		Math.max(3, ...all.map((row) => row[column]?.length ?? 0)),
	);
	const lineOf = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
	const [first = '', ...others] = all.map((row) =>
		lineOf(
			widths.map((width, column) => {
				const cell = row[column] ?? '';
				return isFigure(column) ? cell.padStart(width) : cell.padEnd(width);
			}),
		),
	);
	const rule = widths.map((width, column) =>
		isFigure(column) ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width),
	);
	return [first, lineOf(rule), ...others].join('\n');
}

/**
 * Writes a part of a page anew.
 *
 * @param mark stands in the two comments that enclose the part
 * @throws where the page has no such part
 */
export function writeSection(path: string, mark: string, content: string): void {
	const page = readFileSync(path, 'utf8');
	const pattern = new RegExp(`(<!-- ${mark} -->\n)[^]*?(<!-- /${mark} -->)`);
	if (!pattern.test(page)) throw new Error(`${path} has no place for "${mark}".`);
	const put = (_all: string, begin: string, end: string) => `${begin}\n${content}\n\n${end}`;
	writeFileSync(path, page.replace(pattern, put));
}
