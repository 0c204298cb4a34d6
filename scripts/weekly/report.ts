/**
 * Tells what the weekly run found, in one issue: opened with the names of the jobs that failed, changed when they change,
 * closed when all pass again.
 *
 * Usage: report.ts <number of the run>
 */
import { execFileSync } from 'node:child_process';

const TITLE = 'The weekly checks';

/** A job of a run, as the forge lists it. */
export interface Job {
	name: string;
	/** Empty while the job runs. */
	conclusion: string;
	url: string;
}

/** @returns the text of the issue; undefined where no job failed */
export function report(jobs: readonly Job[]): string | undefined {
	const failed = jobs.filter(({ conclusion }) => !['', 'success', 'skipped'].includes(conclusion));
	const lines = failed.map(({ name, conclusion, url }) => `- [${name}](${url}): ${conclusion}`);
	return lines.length === 0 ? undefined : lines.join('\n');
}

const gh = (...args: string[]) => execFileSync('gh', args, { encoding: 'utf8' });

function main([run = '']: string[]): void {
	const { jobs } = JSON.parse(gh('run', 'view', run, '--json', 'jobs')) as { jobs: Job[] };
	const body = report(jobs);
	const search = ['--search', `"${TITLE}" in:title`, '--json', 'number,title'];
	const issues = JSON.parse(gh('issue', 'list', ...search)) as Array<{
		number: number;
		title: string;
	}>;
	const open = issues.find(({ title }) => title === TITLE);
	const number = String(open?.number);
	if (body === undefined) {
		if (open) gh('issue', 'close', number, '--comment', 'All checks pass again.');
	} else if (open) gh('issue', 'edit', number, '--body', body);
	else gh('issue', 'create', '--title', TITLE, '--body', body);
}

if (require.main === module) main(process.argv.slice(2));
