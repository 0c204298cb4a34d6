import { readFileSync, writeFileSync } from 'node:fs';

/**
 * A table of a page.
 *
 * @param isFigure which columns have figures: they stand at the right
 */
export async function markdownTable(
	head: readonly string[],
	rows: ReadonlyArray<readonly string[]>,
	isFigure: (column: number) => boolean = () => false,
): Promise<string> {
	const rule = head.map((_, column) => (isFigure(column) ? '--:' : '---'));
	// Loaded where it is needed: while Prettier loads, it draws from `Math.random`, which a simulated history counts on.
	const { format } = await import('prettier');
	const lines = [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
	return (await format(lines.join('\n'), { parser: 'markdown' })).trimEnd();
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
