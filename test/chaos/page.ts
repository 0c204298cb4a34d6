import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'prettier';

import { markdownTable } from '../page';
import type { Account } from './account';
import type { CampaignResult } from './campaign';
import type { Results, Stored } from './results';

/** Writes what was measured so far into a page. */
export async function writePage(folder: string, results: Results): Promise<void> {
	const { silent, kills, held, queue, lost, chaos } = results;
	const campaigns: Array<[string, Stored<CampaignResult> | undefined]> = [
		['No callback ever', silent],
		['No callback ever, n8n killed', kills],
		['Suspended after a minute, n8n killed', held],
		['Queue mode, all down in turn', queue],
		['A fifth of the callbacks lost', lost],
		['Queue mode, random kills', chaos],
	];
	const sections = [
		'# Waits that survive: what was measured',
		"Written by `npm run chaos`, which starts real n8n's, has workflows create tasks at the simulated service, kills processes, restarts servers, and counts in the end what came out. A seed decides which tasks there are, how long they take, which callbacks are lost, doubled or late, and what is killed when. n8n decides the rest, so a seed repeats the plan and not every millisecond. `npm run chaos -- --help` shows the parts.",
		'## What came out',
		campaignTable(campaigns.flatMap(([name, result]) => (result ? [[name, result]] : []))),
		NOTES,
		...(results.tests ? ['## At length, and in a storm', testTable(results.tests)] : []),
		...remarks(campaigns),
		...exceptions(campaigns),
	];
	const text = await format(sections.join('\n\n'), { parser: 'markdown', useTabs: false });
	writeFileSync(join(folder, 'durable.md'), text);
}

function testTable(tests: NonNullable<Results['tests']>): string {
	const command =
		'By `LONG_TESTS=1 npm run test:e2e -- longWait storm overnight`; the last row by hand:';
	const rows = tests.map(({ what, came, on }) => [what, came, on]);
	return [command, markdownTable(['What', 'What came', 'Measured on'], rows)].join('\n\n');
}

const NOTES = [
	'- **No callback ever**: one process on SQLite, whose `WEBHOOK_URL` no service reaches. 50 runs of 1 to 20 tasks of 5 s to 4 min. In the second row n8n is killed with `kill -9` at five random moments of these four minutes.',
	'- **Suspended after a minute, n8n killed**: one process; **Suspend After (Minutes)** is 1. 200 runs of 1 to 3 tasks of 3 to 8 min, while callbacks of 200 triggered tasks come: a quarter is lost, one doubled, one up to a minute late. When all runs are suspended n8n is killed with `kill -9` twice, and stays down for two minutes once.',
	'- **Queue mode, all down in turn**: two workers and two webhook processors on PostgreSQL; a quarter of the callbacks is lost, one doubled, one up to a minute late. When everything is suspended a worker, a webhook processor and the main process are killed and Redis and PostgreSQL restarted, one after the other, twice.',
	'- **A fifth of the callbacks lost**: one process, 500 triggered tasks.',
	'- **Queue mode, random kills**: runs begin all the time, also while a process is down, and whatever is killed is in the middle of something.',
	'- **Late** is the time from the end of the last task of a run until the node behind has its items. **Too late** is more than 75 s and more than a quarter of the time that the run took. The time in which n8n is down counts.',
	'- **Named**: in an output, in a log of n8n or in a stored execution.',
].join('\n');

function campaignTable(campaigns: Array<[string, Stored<CampaignResult>]>): string {
	const rows: Array<[string, (account: Account, result: Stored<CampaignResult>) => unknown]> = [
		['Measured on', (_, { on }) => on],
		['Seed', (_, { seed }) => seed],
		['Minutes', (_, { minutes }) => minutes.toFixed(1)],
		['Killed or restarted', (_, { faults }) => faultList(faults)],
		['Suspended runs', ({ runs }) => runs.suspended],
		['… out once, complete, in order', ({ runs }) => runs.cameOutComplete],
		['… out early, with what was known', ({ runs }) => runs.cameOutEarly.length],
		['… never out', ({ runs }) => runs.never.length],
		['… out twice', ({ runs }) => runs.twice.length],
		['Late: median and most, s', ({ late }) => `${seconds(late.median)}, ${seconds(late.most)}`],
		['Too late', ({ tooLate }) => tooLate],
		['Triggered tasks', ({ triggered }) => triggered.tasks],
		['… started a workflow once', ({ triggered }) => triggered.startedOnce],
		['… never', ({ triggered }) => triggered.never.length],
		['… twice', ({ triggered }) => triggered.twice],
		['Tasks at the service', ({ tasks }) => tasks.atService],
		['… paid for twice', ({ tasks }) => tasks.paidTwice],
		['… named nowhere', ({ tasks }) => tasks.unnamed.length],
		['Reads of a suspended task: mean, most', ({ reads: { suspended } }) => reads(suspended)],
		['Reads of a triggered task: mean, most', ({ reads: { triggered } }) => reads(triggered)],
		[
			'… whose callback was sent',
			({ reads: { calledBack } }) => (calledBack ? reads(calledBack) : ''),
		],
	];
	return markdownTable(
		['', ...campaigns.map(([name]) => name)],
		rows.map(([name, cell]) => [
			name,
			...campaigns.map(([, result]) => String(cell(result.account, result) ?? '')),
		]),
	);
}

const seconds = (value: number) => value.toFixed(0);

const reads = ({ mean, most }: { mean: number; most: number }) => `${mean.toFixed(2)}, ${most}`;

const faultList = (faults: Record<string, number>) =>
	Object.entries(faults)
		.map(([name, count]) => `${count} × ${name}`)
		.join(', ');

function remarks(campaigns: Array<[string, Stored<CampaignResult> | undefined]>): string[] {
	const lines = campaigns.flatMap(([name, result]) =>
		result?.remark ? [`- ${name}: ${result.remark}`] : [],
	);
	return lines.length === 0 ? [] : ['## Under which circumstances', lines.join('\n')];
}

/** What did not come out as it should, one by one, and what n8n's list of executions says. */
function exceptions(campaigns: Array<[string, Stored<CampaignResult> | undefined]>): string[] {
	const lines = campaigns.flatMap(([name, result]) =>
		(result?.account.stories ?? []).map((story) => `- ${name}: ${story}`),
	);
	return lines.length === 0 ? [] : ['## What did not', lines.join('\n')];
}
