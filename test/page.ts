import { readFileSync, writeFileSync } from 'node:fs';

type Cells = readonly string[];

/**
 * A table of a page, as Prettier writes it.
 *
 * @param right which columns have figures: they stand at the right
 */
export function markdownTable(
	head: Cells,
	rows: readonly Cells[],
	right: (column: number) => boolean = () => false,
): string {
	const lines = [head, ...rows];
	const widths = head.map((_, column) =>
		Math.max(3, ...lines.map((cells) => [...(cells[column] ?? '')].length)),
	);
	const pad = (cell: string, column: number) => {
		const missing = ' '.repeat(Math.max(0, (widths[column] ?? 0) - [...cell].length));
		return right(column) ? missing + cell : cell + missing;
	};
	const line = (cells: Cells) => `| ${cells.map(pad).join(' | ')} |`;
	const rule = widths.map((width, column) =>
		right(column) ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width),
	);
	return [line(head), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n');
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
