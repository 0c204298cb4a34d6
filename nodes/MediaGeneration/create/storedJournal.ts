import type { IDataObject } from 'n8n-workflow';

import type { RunSettings } from '../plan/planRun';
import type { TaskPlan } from '../plan/planTypes';
import { type TaskRecord, withoutFiles } from '../service/taskRecord';
import { clock } from '../shared/clock';
import { isSame } from '../shared/json';
import { shiftTimes, type StoredError, type TaskEntry } from './taskEntry';

/** A turn that wrote a row: its execution and its number. */
export type RowOf = [execution: string, turn: number];

/** What n8n stores of a run. All times are milliseconds of the clock. */
export interface StoredRun {
	/** The execution that wrote this last. */
	execution: string;
	startedAt: number;
	/** A killed process leaves this as n8n stored it when the run went to sleep: true. */
	isAsleep: boolean;
	/** n8n's tries of the run in this execution (*Retry On Fail*) before the present try. */
	tries: number;
	/** Whether a wake stored this that left its turn to another one. */
	isAside?: boolean;
	/** How often the run went to sleep: the number of its turn. */
	sleeps: number;
	/** When the run is to be woken. */
	wakeAt?: number;
	/** How long the run was awake since an order was taken or a task ended, if it sleeps until n8n's next look only. */
	idleMs?: number | undefined;
	/** Since when nothing was created, and no task has ended, although something is to be ordered. */
	quietSince?: number | undefined;
	/** Until when the service has asked to send nothing. */
	pausedUntil?: number | undefined;
	/** How many orders in a row have no known outcome. */
	inVain?: number | undefined;
	/** What was learnt of the account's limits. */
	limits?: IDataObject | undefined;
	/** The turns whose rows are in n8n's store. */
	rows: RowOf[];
	settings?: RunSettings | undefined;
	/** What the plans of all entries have in common. */
	common?: Partial<TaskPlan> | undefined;
	entries: TaskEntry[];
}

/** What n8n stores of a node. */
export interface Stored {
	version: number;
	/** By the index of the run. */
	runs: Record<number, StoredRun>;
	/** How far the clock of the process was behind the time of day, milliseconds. */
	clockIsBehind: number;
	/** Why this execution must not order: it retries one that may have ordered the same. */
	refusal?: StoredError | undefined;
	/** A pause that the service asks for, which the next round of a loop observes, too. */
	pausedUntil?: number | undefined;
}

/** To be raised when the stored shape changes. */
export const VERSION = 1;

/** How far the clock of this process is behind the time of day, milliseconds. */
export const clockIsBehind = (): number => Date.now() - clock.now();

/** Sets the times that another process wrote to the clock of this process. @param run if the node has stored it */
export function setClock(node: Stored, run: StoredRun | undefined): void {
	const aheadMs = clockIsBehind() - node.clockIsBehind;
	if (node.pausedUntil !== undefined) node.pausedUntil -= aheadMs;
	if (run === undefined) return;
	run.startedAt -= aheadMs;
	if (run.wakeAt !== undefined) run.wakeAt -= aheadMs;
	if (run.quietSince !== undefined) run.quietSince -= aheadMs;
	const { settings } = run;
	// JSON has no Infinity, and makes it null.
	if (settings?.limitAt) settings.limitAt -= aheadMs;
	if (settings?.endsAt) settings.endsAt -= aheadMs;
	for (const entry of run.entries) shiftTimes(entry, aheadMs);
}

/** What n8n stores of a run that is not at its end. */
export function sleepingRun(run: StoredRun, entries: readonly TaskEntry[]): StoredRun {
	const common = commonOf(entries.flatMap(({ plan }) => plan ?? []));
	const stored = entries.map((entry) => ({
		...entry,
		plan: withoutCommon(entry, common),
		task: entry.task && withoutFiles(entry.task),
	}));
	return { ...run, common, entries: stored };
}

/** What n8n stores of a run whose items have left: who asks later for its tasks needs no more. */
export function endedRun(run: StoredRun, entries: readonly TaskEntry[]): StoredRun {
	const stored = entries.map(({ itemIndex, part, state, taskId, failed, costUsd, task }) => {
		const known = { itemIndex, part, plan: undefined, state, taskId, failed, costUsd };
		return task === undefined ? known : { ...known, task: stateAlone(task) };
	});
	return { ...run, settings: undefined, limits: undefined, common: undefined, entries: stored };
}

/** The state lasts; the links perish. */
const stateAlone = ({ taskId, state }: TaskRecord): TaskRecord => {
	const known = { taskId, creditsConsumed: null, record: {} };
	if (state === 'FAILURE') return { ...known, state, reason: undefined };
	return state === 'SUCCESS' ? { ...known, state, resultUrls: [] } : { ...known, state };
};

/** The fields that all plans have alike. */
function commonOf(plans: readonly TaskPlan[]): Partial<TaskPlan> {
	const [first, ...others] = plans;
	if (first === undefined || others.length === 0) return {};
	const isAlike = ([name, value]: [string, unknown]) =>
		name !== 'input' && others.every((plan) => isSame(plan[name as keyof TaskPlan], value));
	return Object.fromEntries(Object.entries(first).filter(isAlike));
}

/** What is stored of a plan. The input that was sent stands in the entry, unless it may be sent again. */
function withoutCommon(
	{ plan, state, sent, failed = [] }: TaskEntry,
	common: Partial<TaskPlan>,
): TaskPlan | undefined {
	if (plan === undefined) return undefined;
	const isCreated = plan.kind === 'create' && state === 'created' && sent !== undefined;
	const isSent = isCreated && failed.length >= plan.retryFailed;
	const left = Object.entries(plan).filter(
		([name]) => !(name in common) && !(isSent && name === 'input'),
	);
	return Object.fromEntries(left) as unknown as TaskPlan;
}
