import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';

import type { Report } from '../../test/e2e/collector';
import { groupBy } from '../../test/groupBy';
import { mean, median } from '../bench/statistics';
import type { Outcome, StartedRun } from './campaign';
import { logsOf, type Place } from './place';

/** A run is too late where it is later than this, seconds, and later than a quarter of its time. */
const LATE_S = 75;
const LATE_PART = 0.25;

type Reports = readonly Report[];

const reportsOf = (prompts: readonly string[], reports: Reports) =>
	reports.filter(({ items }) => items.some(({ prompt = '' }) => prompts.includes(prompt)));

const ofKind = (kind: StartedRun['kind'], started: readonly StartedRun[]) =>
	started.filter((run) => run.kind === kind);

const triggeredTasks = (started: readonly StartedRun[], reports: Reports) =>
	ofKind('trigger', started)
		.flatMap(({ prompts }) => prompts)
		.map((prompt) => ({ prompt, starts: reportsOf([prompt], reports).length }));

/** Whether everything that was begun has come to an end that can be seen from outside. */
export const isSettled = (started: readonly StartedRun[], reports: Reports): boolean =>
	ofKind('wait', started).every(({ prompts }) => reportsOf(prompts, reports).length > 0) &&
	triggeredTasks(started, reports).every(({ starts }) => starts > 0);

/** What became of the runs and tasks of a campaign. */
export async function account(
	place: Place,
	started: readonly StartedRun[],
	reports: Reports,
): Promise<Outcome> {
	const tasks = [...place.stage.service.tasks.values()];
	const byPrompt = groupBy(tasks, ({ record }) => String(record.input.prompt));
	const tasksOf = ({ prompts }: StartedRun) =>
		prompts.flatMap((prompt) => byPrompt.get(prompt) ?? []);
	const runs = ofKind('wait', started).map((run) => {
		const out = reportsOf(run.prompts, reports);
		return { run, out, tasks: tasksOf(run), isComplete: isComplete(run, out[0]) };
	});
	const complete = runs.filter((each) => each.isComplete);
	const late = complete.map(({ run, out, tasks: made }) => {
		const lastEnd = Math.max(...made.map(({ completedAt = 0 }) => completedAt));
		const seconds = ((out[0]?.at ?? NaN) - lastEnd) / 1000;
		return { seconds, part: seconds / ((lastEnd - run.startedAt) / 1000) };
	});
	const lateSeconds = late.map(({ seconds }) => seconds);
	const triggered = triggeredTasks(started, reports);
	const never = triggered.filter(({ starts }) => starts === 0);
	const reads = (kind: StartedRun['kind']) => {
		const counts = ofKind(kind, started)
			.flatMap(tasksOf)
			.map((task) => task.reads);
		return counts.length === 0 ? '' : `${mean(counts).toFixed(2)}, ${Math.max(...counts)}`;
	};
	const unnamed = await unnamedOf(place, [...place.stage.service.tasks.keys()], reports);
	const odd = runs.filter(({ out, isComplete: isWell }) => out.length !== 1 || !isWell);
	const early = odd.filter(({ out, isComplete: isWell }) => out.length > 0 && !isWell);
	return {
		cells: {
			'Suspended runs': runs.length,
			'… out once, complete, in order': runs.length - odd.length,
			'… out early, with what was known': early.length,
			'… never out': runs.filter(({ out }) => out.length === 0).length,
			'… out twice': runs.filter(({ out }) => out.length > 1).length,
			'Late: median and most, s':
				late.length === 0
					? ''
					: `${median(lateSeconds).toFixed(0)}, ${Math.max(...lateSeconds).toFixed(0)}`,
			'Too late': late.filter(({ seconds, part }) => seconds > LATE_S && part > LATE_PART).length,
			'Triggered tasks': triggered.length,
			'… started a workflow once': triggered.filter(({ starts }) => starts === 1).length,
			'… never': never.length,
			'… twice': triggered.filter(({ starts }) => starts > 1).length,
			'Tasks at the service': tasks.length,
			'… paid for twice': [...byPrompt.values()].filter(({ length }) => length > 1).length,
			'… named nowhere': unnamed.length,
			'Reads of a suspended task: mean, most': reads('wait'),
			'Reads of a triggered task: mean, most': reads('trigger'),
		},
		exceptions: [
			...(await Promise.all(odd.map(async (each) => await storyOf(place, each)))),
			...never.map(({ prompt }) => `${prompt} started no workflow`),
			...unnamed.map((taskId) => `${taskId} is named nowhere`),
		],
	};
}

/** The tasks that nobody could find: not in what came out, not in n8n's logs, not in its stored executions. */
async function unnamedOf(place: Place, taskIds: string[], reports: Reports): Promise<string[]> {
	const texts = logsOf(place).map((path) => readFileSync(path, 'utf8'));
	const out = new Set(reports.flatMap(({ items }) => items.map(({ taskId }) => taskId)));
	const unnamed: string[] = [];
	for (const taskId of taskIds) {
		if (out.has(taskId) || texts.some((text) => text.includes(taskId))) continue;
		const naming = `select "executionId" from execution_data where data like '%${taskId}%'`;
		if ((await place.database.rows(naming)).length === 0) unnamed.push(taskId);
	}
	return unnamed;
}

/** What became of a run that did not come out complete, and once, as n8n's database has it. */
async function storyOf(
	{ database }: Place,
	{ run, out, tasks }: { run: StartedRun; out: Report[]; tasks: Array<{ taskId: string }> },
): Promise<string> {
	const rows = await database.rows(
		`select e.id, e.mode, e.status from execution_entity e join execution_data d on d."executionId" = e.id where d.data like '%${tasks[0]?.taskId ?? run.name}%' order by e.id`,
	);
	const executions = rows.map(({ id, mode, status }) => `${id} ${mode} ${status}`).join(', ');
	const early = out.map(
		({ items }) =>
			` (${items.filter(({ timedOut }) => timedOut).length} of ${items.length} items early)`,
	);
	return `${run.name}: ${tasks.length} of ${run.prompts.length} tasks created; out ${out.length} times${early.join('')}; executions ${executions}`;
}

/** Whether a run came out with all its items, in order, each with the result of its task. */
function isComplete({ prompts }: StartedRun, report: Report | undefined): boolean {
	const results = report?.items.map(
		({ prompt, state, timedOut }) => state === 'SUCCESS' && timedOut === undefined && prompt,
	);
	return isDeepStrictEqual(results, prompts);
}
