/**
 * Tells what the weekly run found, in one issue: opened with the names of the failing tests, changed when they change,
 * closed when none fails any more.
 *
 * Usage: weekly.ts <folder with results-<version>/e2e-results.json> <versions that were to run …>
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const TITLE = 'The weekly end-to-end tests';

/** What jest writes with `--json`. */
export interface JestResults {
	testResults: Array<{
		name: string;
		status: string;
		assertionResults: Array<{ status: string; fullName: string }>;
	}>;
}

/** @returns the names of the tests that failed; a file that did not get as far as its tests counts as one */
function failingTests({ testResults }: JestResults): string[] {
	return testResults.flatMap(({ name, status, assertionResults }) => {
		const failed = assertionResults.filter((test) => test.status === 'failed');
		const isBroken = status === 'failed' && failed.length === 0;
		const names = isBroken ? ['did not run'] : failed.map(({ fullName }) => fullName);
		return names.map((each) => `${basename(name)}: ${each}`);
	});
}

/**
 * @param results by version of n8n; undefined where a version left none
 * @returns the text of the issue; undefined where all is well
 */
export function report(results: Record<string, JestResults | undefined>): string | undefined {
	const parts = Object.entries(results).flatMap(([version, result]) => {
		const failing = result ? failingTests(result) : ['left no results'];
		const list = failing.map((name) => `- ${name}`).join('\n');
		return list === '' ? [] : [`### n8n ${version}\n\n${list}`];
	});
	return parts.join('\n\n') || undefined;
}

function readResults(folder: string, version: string): JestResults | undefined {
	const file = join(folder, `results-${version}`, 'e2e-results.json');
	if (!existsSync(file)) return undefined;
	return JSON.parse(readFileSync(file, 'utf8')) as JestResults;
}

const gh = (...args: string[]) => execFileSync('gh', args, { encoding: 'utf8' });

function main([folder = '', ...versions]: string[]): void {
	const results = versions.map((version) => [version, readResults(folder, version)]);
	const body = report(Object.fromEntries(results));
	const search = ['--search', `"${TITLE}" in:title`, '--json', 'number,title,body'];
	const list = gh('issue', 'list', ...search);
	const issues = JSON.parse(list) as Array<{ number: number; title: string; body: string }>;
	const open = issues.find(({ title }) => title === TITLE);
	const number = String(open?.number);
	if (body === undefined) {
		if (open) gh('issue', 'close', number, '--comment', 'All tests pass again.');
	} else if (!open) gh('issue', 'create', '--title', TITLE, '--body', body);
	else if (open.body.trim() !== body) gh('issue', 'edit', number, '--body', body);
}

if (require.main === module) main(process.argv.slice(2));
