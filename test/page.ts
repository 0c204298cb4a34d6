import { readFileSync, writeFileSync } from 'node:fs';

import { markdownTable as table } from 'markdown-table';

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
	const align = head.map((_, column) => (isFigure(column) ? 'r' : ''));
	return table([head, ...rows], { align });
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
