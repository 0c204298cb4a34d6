import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

const PAGE = resolve(__dirname, '../../docs/simulation.md');

/**
 * Writes a part of docs/simulation.md anew.
 *
 * @param name stands in the two comments that enclose it
 */
export function writeSection(name: string, text: string): void {
	const page = readFileSync(PAGE, 'utf8');
	const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`];
	const [from, to] = [page.indexOf(begin), page.indexOf(end)];
	if (from < 0 || to < 0) throw new Error(`${PAGE} has no part ${name}`);
	writeFileSync(PAGE, `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`);
}
