import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { notSent } from '../create/createTask';
import type { Journal } from '../create/journal';
import { fail, isToOrder, ownFields, type TaskEntry } from '../create/taskEntry';
import { endWithError } from '../n8n/internals';
import { sleepAndRunAgain } from '../n8n/runAgain';
import { leaveRecord } from '../n8n/subExecution';
import { nextWakeAt, type Sleeper } from '../n8n/wakes';
import { isDelivered } from '../plan/planTypes';
import { describePaidTasks } from '../report/ifSomeFail';
import { roundUsd } from '../service/money';
import { clock, Stopped } from '../shared/clock';
import { count, ItemError, messageOf } from '../shared/itemError';
import { settled } from '../shared/promises';
import { describeDeliveries } from './deliver';
import type { RunContext } from './runContext';
import { orderedBy } from './runContext';
import { hint, showHints } from './runHints';

/** What a turn knows of the next one. */
export type NextTurn = Pick<Sleeper, 'orderAt' | 'notBefore'> & {
	/** When this turn began, milliseconds of the clock. */
	turnStartedAt: number;
};

/**
 * Puts the run to sleep: n8n stores the journal, and runs the node again when the time has come.
 *
 * @returns what `execute` returns
 */
export async function goToSleep(
	context: IExecuteFunctions,
	journal: Journal,
	{ turnStartedAt, ...next }: NextTurn,
): Promise<INodeExecutionData[][]> {
	const now = clock.now();
	const waiting = journal.entries.filter(({ end }) => end === undefined);
	const isOverdue = (entry: TaskEntry) => {
		const { until = Infinity, readAt, createdAt = 0, dueAt = Infinity, deliveries } = entry;
		const triedAt = Math.max(readAt ?? createdAt, deliveries?.at ?? -Infinity);
		return until <= now || (dueAt <= now && triedAt < turnStartedAt);
	};
	const wakeAt = nextWakeAt(
		{
			...next,
			// A long batch must not wait long for its last tasks.
			startedAt: Math.max(journal.startedAt, ...waiting.map(({ createdAt = 0 }) => createdAt)),
			isOverdue: waiting.some(isOverdue),
			hasTasks: waiting.some(({ taskId }) => taskId !== undefined),
			dueAt: waiting.map(({ until = Infinity }) => until),
			limitAt: journal.settings.limitAt,
		},
		now,
	);
	journal.fallAsleep(wakeAt);
	tellProgress(context, journal, dateOf(wakeAt).getTime());
	return await suspend(context, journal, wakeAt);
}

/**
 * @param wakeAt milliseconds of the clock
 * @returns what `execute` returns
 */
export async function suspend(
	context: IExecuteFunctions,
	journal: Journal,
	wakeAt: number,
): Promise<INodeExecutionData[][]> {
	const taskIds = journal.taskIds();
	const error =
		'The run was passed over while it slept: n8n retried it with the currently saved workflow. Fetch its tasks with Task → Wait';
	return await sleepAndRunAgain(context, dateOf(wakeAt), [{ json: { error, taskIds } }]);
}

/** The time of day of a moment of the clock. */
const dateOf = (moment: number) => new Date(Date.now() + (moment - clock.now()));

/** When the next order may be sent. @param pausedUntil until when the service takes nothing */
export function nextOrderAt(journal: Journal, pausedUntil = -Infinity): number {
	const toOrder = journal.entries.filter(isToOrder);
	const first = Math.min(...toOrder.map(({ again }) => again?.at ?? -Infinity), Infinity);
	return toOrder.length === 0 ? Infinity : Math.max(first, pausedUntil);
}

/**
 * Says how far a sleeping run is: in the output panel, where the hints of a turn stand while the run sleeps, and in n8n's
 * log.
 *
 * @param wakeAt when the run is woken, milliseconds since 1970
 */
export function tellProgress(context: IExecuteFunctions, journal: Journal, wakeAt: number): void {
	const { entries } = journal;
	const created = entries.filter(({ taskId }) => taskId !== undefined);
	const finished = entries.filter(({ task }) => task?.state === 'SUCCESS').length;
	const failed = entries.filter(({ end }) => end === 'error').length;
	// Failed tasks are free.
	const paid = created.filter(({ task }) => task?.state !== 'FAILURE');
	const usd = roundUsd(paid.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0));
	const parts = [
		created.length < entries.length
			? `${created.length} of ${count(entries.length, 'task')} created`
			: `${count(created.length, 'task')} created`,
		`${finished} finished`,
		...(failed > 0 ? [`${failed} failed`] : []),
		...(usd > 0 ? [`cost so far about ${usd} USD`] : []),
	];
	const progress = describeDeliveries(entries) ?? parts.join(', ');
	const { name } = context.getNode();
	const execution = context.getExecutionId();
	context.logger.info(
		`${name}: ${progress}; asleep until ${new Date(wakeAt).toISOString()} (execution ${execution}, turn ${journal.sleeps})`,
	);
	const [trouble] = entries.flatMap(({ end, noFile, trouble }) =>
		end === undefined ? (noFile ?? trouble?.message ?? []) : [],
	);
	const told = trouble === undefined ? '' : ` The last read or download failed: ${trouble}.`;
	showHints(
		context,
		hint(
			`${progress}. The run sleeps, and looks again ${momentOf(context, wakeAt)}. You do not need to enter anything.${told}${ifStopped(execution, created)}`,
		),
	);
}

/** So few ids can be read in a hint. */
const FEW = 3;

/** What to do if somebody stops the run while it sleeps, or renames the node: n8n asks no node then. */
function ifStopped(execution: string, created: readonly TaskEntry[]): string {
	if (created.length === 0) return '';
	if (created.some(({ plan }) => isDelivered(plan))) {
		return " If you stop this run, use 'Retry execution' later: nothing else makes up for these callbacks.";
	}
	const ids = created.length > FEW ? '' : ` (${created.map(({ taskId }) => taskId).join(', ')})`;
	const them = created.length === 1 ? 'its task' : 'its tasks';
	return ` If you stop this run, get the results of ${them}${ids} with Task → Wait in a new node that is connected to nothing: enter 'execution ${execution}' as 'Task ID'. If you rename this node, its results appear when the node has its old name again, or in the same way.`;
}

/** n8n wakes a run up to a minute late. */
const SOON_MS = 90_000;

/** A moment as a person reads it in n8n's lists. @param time milliseconds since 1970 */
function momentOf(context: IExecuteFunctions, time: number): string {
	if (time - Date.now() <= SOON_MS) return 'in about a minute';
	const timeZone = context.getTimezone();
	const format = { hour: '2-digit', minute: '2-digit', timeZone } as const;
	return `at ${new Date(time).toLocaleTimeString('en-GB', format)} (${timeZone})`;
}

/** If the service takes no task for good, the items of later turns fail as those of this turn did. */
export function endUnsent({ queue: { closedBy }, journal }: RunContext): void {
	if (closedBy === undefined) return;
	for (const entry of journal.entries.filter(isToOrder)) {
		fail(entry, ItemError.from(notSent(ItemError.from(closedBy)), ownFields(entry)));
	}
}

/** Whether an item waits for a task, a file or an order. A run that stops waits for the tasks that it has created. */
export const isUnfinished = ({ journal, isStopping }: RunContext): boolean =>
	journal.entries.some(({ plan, end, taskId }) => {
		const isLeft = isStopping && (plan?.kind === 'read' || taskId === undefined);
		return plan !== undefined && end === undefined && !isLeft;
	});

/**
 * Explains why the run ended before its items: somebody stopped it, as a rule. n8n keeps neither the error nor the
 * journal of a run that is stopped in its first turn. So the tasks are written to the log, and to a short execution in
 * the list of the workflow's executions, whose items Task → Wait takes.
 */
export async function explainStop(
	{ context, journal }: RunContext,
	reason: unknown,
): Promise<Error> {
	const node = context.getNode();
	// If n8n itself has not heard of the stop, the execution would go on.
	if (reason instanceof Stopped) endWithError(context);
	const error = ItemError.from(reason);
	const list = describePaidTasks(orderedBy(journal));
	if (list === undefined) return error.toNodeError(node, undefined);
	context.logger.warn(`${node.name}: ${error.message}. ${list}`);
	const items = journal.entries.flatMap(({ taskId, task, sent, state }) => {
		if (taskId === undefined && state !== 'sent') return [];
		const known =
			taskId === undefined ? { state: 'not known' } : { taskId, state: task?.state ?? 'PENDING' };
		return [
			{ json: { ...known, resultUrls: task?.state === 'SUCCESS' ? task.resultUrls : [], ...sent } },
		];
	});
	const left = await settled(leaveRecord(context, items));
	const where =
		'value' in left
			? `Task → Wait fetches them all with 'execution ${left.value}' as 'Task ID'`
			: `The tasks stand in this log only. ${messageOf(left.error)}`;
	context.logger.warn(`${node.name}: ${where}`);
	return error.toNodeError(node, undefined, list);
}
