import { readFileSync } from 'node:fs';
import type { IDataObject } from 'n8n-workflow';

import type { Collector, Report } from '../e2e/collector';
import { groupBy } from '../groupBy';
import { type Figures, figures } from './results';
import { type Load, promptOf, type StartedRun } from './load';
import type { Place } from './place';

/** What became of the runs and tasks of a campaign. */
export interface Account {
	runs: {
		suspended: number;
		/** With all items in order, each with the result of its task. */
		cameOutComplete: number;
		/** In order and once, but with items whose results were not waited for. */
		cameOutEarly: string[];
		never: string[];
		twice: string[];
	};
	triggered: { tasks: number; startedOnce: number; never: string[]; twice: number };
	tasks: {
		atService: number;
		/** Items for which the service made more than one task. */
		paidTwice: number;
		/** In no output, no log and no stored execution. */
		unnamed: string[];
	};
	/** Reads of the service for each task. */
	reads: {
		suspended: Figures;
		triggered: Figures;
		/** Triggered tasks whose callback was sent. */
		calledBack: Figures;
	};
	/** Seconds from the end of a run's last task until the node behind ours. */
	late: Figures;
	/** Runs that were later than 75 s and later than a quarter of their time. */
	tooLate: number;
	/** What became of each run that did not come out complete, and once, as n8n's database has it. */
	stories: string[];
	/** n8n's stored executions by workflow and status, those of the wait among them. */
	executions: string[];
}

const LATE_S = 75;
const LATE_PART = 0.25;

/** What a run's name stands for in the reports and at the service. */
export class Accounting {
	constructor(
		private readonly place: Place,
		private readonly load: Load,
		private readonly reports: Collector['reports'],
	) {}

	private of(run: StartedRun): Report[] {
		const prompts = new Set(run.tasks.map((_, index) => promptOf(run.name, index)));
		return this.reports.filter(({ items }) =>
			items.some(({ prompt }) => prompt !== undefined && prompts.has(prompt)),
		);
	}

	private runs(kind: StartedRun['kind']): StartedRun[] {
		return this.load.started.filter((run) => run.kind === kind);
	}

	/** Whether everything that was begun has come to an end that can be seen from outside. */
	isSettled(): boolean {
		return (
			this.runs('wait').every((run) => this.of(run).length > 0) &&
			this.triggeredTasks().every(({ prompt }) => this.startsOf(prompt) > 0)
		);
	}

	private triggeredTasks() {
		return this.runs('trigger').flatMap((run) =>
			run.tasks.map((_, index) => ({ prompt: promptOf(run.name, index) })),
		);
	}

	private startsOf(prompt: string): number {
		return this.reports.filter(({ items }) => items.some((item) => item.prompt === prompt)).length;
	}

	async account(): Promise<Account> {
		const { service } = this.place.stage;
		const suspended = this.runs('wait');
		const tasks = [...service.tasks.values()];
		const byPrompt = groupBy(tasks, ({ record }) => String(record.input.prompt));
		const tasksOf = (run: StartedRun) =>
			run.tasks.map((_, index) => byPrompt.get(promptOf(run.name, index)) ?? []);
		const came = suspended.map((run) => {
			const reports = this.of(run);
			return { run, reports, isComplete: isComplete(run, reports[0]) };
		});
		const complete = came.filter((each) => each.isComplete);
		const names = (list: typeof came) => list.map(({ run }) => run.name);
		const triggered = this.triggeredTasks().map(({ prompt }) => this.startsOf(prompt));
		const readsOf = (runs: StartedRun[], which: (simulate: IDataObject) => boolean = () => true) =>
			runs.flatMap((run) =>
				tasksOf(run)
					.filter((_, index) => which(run.tasks[index] ?? {}))
					.flatMap((made) => made.map(({ reads }) => reads)),
			);
		const late = complete.map(({ run, reports: [out] }) => {
			const ends = tasksOf(run).flatMap((made) => made.map(({ completedAt = 0 }) => completedAt));
			const lastEnd = Math.max(...ends);
			return {
				late: ((out?.at ?? NaN) - lastEnd) / 1000,
				took: (lastEnd - run.startedAt) / 1000,
			};
		});
		return {
			runs: {
				suspended: suspended.length,
				cameOutComplete: complete.filter(({ reports }) => reports.length === 1).length,
				cameOutEarly: names(came.filter((each) => each.reports.length > 0 && !each.isComplete)),
				never: names(came.filter(({ reports }) => reports.length === 0)),
				twice: names(came.filter(({ reports }) => reports.length > 1)),
			},
			triggered: {
				tasks: triggered.length,
				startedOnce: triggered.filter((starts) => starts === 1).length,
				never: this.triggeredTasks()
					.map(({ prompt }) => prompt)
					.filter((prompt) => this.startsOf(prompt) === 0),
				twice: triggered.filter((starts) => starts > 1).length,
			},
			tasks: {
				atService: tasks.length,
				paidTwice: [...byPrompt.values()].filter(({ length }) => length > 1).length,
				unnamed: await this.unnamed(tasks.map(({ taskId }) => taskId)),
			},
			reads: {
				suspended: figures(readsOf(suspended)),
				triggered: figures(readsOf(this.runs('trigger'))),
				calledBack: figures(
					readsOf(this.runs('trigger'), ({ callbackLost }) => callbackLost !== true),
				),
			},
			late: figures(late.map((each) => each.late)),
			tooLate: late.filter((each) => each.late > Math.max(LATE_S, LATE_PART * each.took)).length,
			stories: await this.stories(
				came
					.filter((each) => each.reports.length !== 1 || !each.isComplete)
					.map(({ run, reports }) => ({ run, reports, tasks: tasksOf(run).flat() })),
			),
			executions: await this.executions(),
		};
	}

	/** The tasks that nobody could find: not in what came out, not in n8n's logs, not in its stored executions. */
	private async unnamed(taskIds: string[]): Promise<string[]> {
		const texts = this.place.logFiles().map((path) => readFileSync(path, 'utf8'));
		const out = new Set(this.reports.flatMap(({ items }) => items.map(({ taskId }) => taskId)));
		const unnamed: string[] = [];
		for (const taskId of taskIds) {
			if (out.has(taskId) || texts.some((text) => text.includes(taskId))) continue;
			const stored = await this.place.query(
				`select count(*) from execution_data where data like '%${taskId}%'`,
			);
			if (stored[0] === '0') unnamed.push(taskId);
		}
		return unnamed;
	}

	/** What n8n has stored of the executions that name a task of a run. */
	private async stories(
		runs: Array<{ run: StartedRun; reports: Report[]; tasks: Array<{ taskId: string }> }>,
	): Promise<string[]> {
		const stories: string[] = [];
		for (const { run, reports, tasks } of runs) {
			const [first] = tasks;
			const rows = await this.place.query(
				`select e.id, e.mode, e.status from execution_entity e join execution_data d on d."executionId" = e.id where d.data like '%${first?.taskId ?? run.name}%' order by e.id`,
			);
			const executions = rows.map((row) => row.split('|').join(' ')).join(', ');
			const out = reports.map(
				({ items }) =>
					`${items.filter(({ timedOut }) => timedOut).length} of ${items.length} items early`,
			);
			stories.push(
				`${run.name}: ${tasks.length} of ${run.tasks.length} tasks created; out ${reports.length} times${out.length > 0 ? ` (${out.join('; ')})` : ''}; executions ${executions}`,
			);
		}
		return stories;
	}

	private async executions(): Promise<string[]> {
		const rows = await this.place.query(
			`select w.name, e.mode, e.status, count(*) from execution_entity e join workflow_entity w on w.id = e."workflowId" group by w.name, e.mode, e.status order by 1, 2, 3`,
		);
		return rows.map((row) => row.replaceAll('|', ', '));
	}
}

/** Whether a run came out with all its items, in order, each with the result of its task. */
function isComplete({ name, tasks }: StartedRun, report: Report | undefined): boolean {
	return (
		report?.items.length === tasks.length &&
		report.items.every(
			({ prompt, state, timedOut }, index) =>
				prompt === promptOf(name, index) && state === 'SUCCESS' && timedOut === undefined,
		)
	);
}
