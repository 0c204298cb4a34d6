/**
 * Tells what the weekly run found, in one issue: opened with the names of the failing tests, changed when they change,
 * closed when none fails any more.
 *
 * Usage: weekly.ts <folder with results-<version>/e2e-results.json> <versions that were to run …>
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const TITLE = 'The weekly end-to-end tests';

/** The part of what jest writes with `--json` that is read here. */
export interface JestResults {
	numPassedTests: number;
	testResults: Array<{
		name: string;
		status: string;
		assertionResults: Array<{ status: string; fullName: string }>;
	}>;
}

/** @returns the names of the tests that failed; a file that did not get as far as its tests counts as one */
export function failingTests({ testResults }: JestResults): string[] {
	return testResults.flatMap(({ name, status, assertionResults }) => {
		const failed = assertionResults.filter((test) => test.status === 'failed');
		const file = name.split('/').pop() ?? name;
		if (status === 'failed' && failed.length === 0) return [`${file}: did not run`];
		return failed.map(({ fullName }) => `${file}: ${fullName}`);
	});
}

/**
 * @param results by version of n8n; undefined where a version left none
 * @returns the text of the issue; undefined where all is well
 */
export function report(results: Record<string, JestResults | undefined>): string | undefined {
	const parts = Object.entries(results).flatMap(([version, result]) => {
		if (result === undefined) return [`### n8n ${version}\n\n- left no results`];
		const failing = failingTests(result);
		if (failing.length === 0) return [];
		return [`### n8n ${version}\n\n${failing.map((name) => `- ${name}`).join('\n')}`];
	});
	return parts.length === 0 ? undefined : parts.join('\n\n');
}

function readResults(folder: string, version: string): JestResults | undefined {
	const file = join(folder, `results-${version}`, 'e2e-results.json');
	if (!existsSync(file)) return undefined;
	return JSON.parse(readFileSync(file, 'utf8')) as JestResults;
}

const gh = (...args: string[]) => execFileSync('gh', args, { encoding: 'utf8' });

function main([folder = '', ...versions]: string[]): void {
	const body = report(
		Object.fromEntries(versions.map((version) => [version, readResults(folder, version)])),
	);
	const [open] = (
		JSON.parse(
			gh('issue', 'list', '--search', `"${TITLE}" in:title`, '--json', 'number,title,body'),
		) as Array<{ number: number; title: string; body: string }>
	).filter(({ title }) => title === TITLE);
	if (body === undefined) {
		if (open) gh('issue', 'close', String(open.number), '--comment', 'All tests pass again.');
		return;
	}
	if (!open) gh('issue', 'create', '--title', TITLE, '--body', body);
	else if (open.body.trim() !== body) gh('issue', 'edit', String(open.number), '--body', body);
}

if (require.main === module) main(process.argv.slice(2));
