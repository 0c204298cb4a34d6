import ts from 'typescript';

import { sourceFiles, visitSource } from './repository';

/** n8n does all its work in one thread: an expression that takes the square of a text's length holds it up for seconds. */

const LENGTH = 10_000;

/** A linear expression takes less than a millisecond, a quadratic one 12 to 50. */
const MOST_MS = 5;
const TRIES = 3;

interface Found {
	where: string;
	expression: RegExp;
}

const literals: Found[] = [];
const constructed: string[] = [];

for (const file of sourceFiles) {
	visitSource(file, (node, source) => {
		const { line } = source.getLineAndCharacterOfPosition(node.pos);
		const where = `${file}:${line + 1}`;
		if (ts.isRegularExpressionLiteral(node)) {
			const [, pattern = '', flags = ''] = /^\/(.*)\/(\w*)$/s.exec(node.text) ?? [];
			// As a search and a replacement do: it is tried from each place of the text.
			const all = flags.includes('g') ? flags : `${flags}g`;
			literals.push({ where, expression: new RegExp(pattern, all) });
		}
		if (ts.isIdentifier(node) && node.text === 'RegExp' && !ts.isTypeReferenceNode(node.parent)) {
			constructed.push(where);
		}
	});
}

/** The characters that an expression names, one for each class, and its words. */
function partsOf({ source }: RegExp): string[] {
	const parts = new Set(['x', ...source]);
	const classes: Record<string, string[]> = { s: [' ', '\n'], d: ['0'], w: ['a'], p: ['\u0001'] };
	for (const [, escaped = ''] of source.matchAll(/\\(.)/g)) {
		for (const part of classes[escaped] ?? [escaped]) parts.add(part);
	}
	for (const [word] of source.replace(/\\./g, ' ').matchAll(/[a-z]{3,}/gi)) parts.add(word);
	return [...parts];
}

function* textsOf(expression: RegExp): Iterable<string> {
	const parts = partsOf(expression);
	const repeated = (text: string) => text.repeat(Math.ceil(LENGTH / text.length));
	for (const part of parts) {
		const run = repeated(part);
		yield run;
		for (const other of parts) {
			if (other === part) continue;
			yield run + other;
			yield other + run;
			yield repeated(part + other);
		}
	}
}

/** The CPU time of this process, so that other processes of the machine do not count; milliseconds. */
function cpuMs(work: () => void): number {
	const before = process.cpuUsage();
	work();
	const { user, system } = process.cpuUsage(before);
	return (user + system) / 1000;
}

/** Whether a work takes too long, however often it is tried: something else may have taken the time. */
function isSlow(work: () => void): boolean {
	for (let tries = 0; tries < TRIES; tries++) if (cpuMs(work) <= MOST_MS) return false;
	return true;
}

test('every expression is a literal, which the next test finds', () => {
	expect(literals.length).toBeGreaterThan(30);
	expect(constructed).toEqual([]);
});

test.each(literals)(
	'$where: $expression takes no longer than the text is long',
	({ expression }) => {
		for (const text of textsOf(expression)) {
			if (!isSlow(() => text.replace(expression, ''))) continue;
			throw new Error(`Slow with ${JSON.stringify([text.slice(0, 20), text.slice(-20)])}`);
		}
	},
);
