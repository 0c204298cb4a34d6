import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { whyNot } from '../create/createTask';
import type { Journal } from '../create/journal';
import { fail, isToOrder, ownFields, type TaskEntry } from '../create/taskEntry';
import { endWithError, executionIdOf } from '../n8n/internals';
import { sleepAndRunAgain } from '../n8n/runAgain';
import { costOf, executionsOf } from '../n8n/storedExecution';
import { leaveItems } from '../n8n/subExecution';
import { isDelivered } from '../plan/planTypes';
import { nextWakeAt, type Sleeper } from '../read/readWindow';
import { describePaidTasks, type Ordered, type PaidTask } from '../report/ifSomeFail';
import { roundUsd } from '../service/money';
import { hasEnded } from '../service/taskRecord';
import { clock, settled, Stopped } from '../shared/clock';
import { count, ItemError, messageOf, writeLog } from '../shared/itemError';
import { describeDeliveries } from './deliver';
import type { RunContext } from './runContext';
import { hint } from './runHints';

/** What a turn knows of the next one. Times are milliseconds of the clock. */
type NextTurn = Pick<Sleeper, 'orderAt' | 'notBefore'> & {
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
	next: NextTurn,
): Promise<INodeExecutionData[][]> {
	const wakeAt = wakeAtOf(journal, next, clock.now());
	journal.fallAsleep(wakeAt);
	tellProgress(context, journal, dateOf(wakeAt).getTime());
	return await suspend(context, journal, wakeAt);
}

/** When a sleeping run is to be woken. What is due at once is woken by n8n's next look, within a minute. */
function wakeAtOf(journal: Journal, { turnStartedAt, ...next }: NextTurn, now: number): number {
	const waiting = journal.entries.filter(({ end }) => end === undefined);
	const isOverdue = (entry: TaskEntry) => {
		const { until = Infinity, readAt, createdAt = 0, dueAt = Infinity, deliveries } = entry;
		const triedAt = Math.max(readAt ?? createdAt, deliveries?.at ?? -Infinity);
		return until <= now || (dueAt <= now && triedAt < turnStartedAt);
	};
	return nextWakeAt(
		{
			...next,
			// A long batch must not wait long for its last tasks.
			startedAt: Math.max(
				journal.state.startedAt,
				...waiting.map(({ createdAt = 0 }) => createdAt),
			),
			isOverdue: waiting.some(isOverdue),
			hasTasks: waiting.some(({ taskId }) => taskId !== undefined),
			dueAt: waiting.map(({ until = Infinity }) => until),
			limitAt: journal.settings.limitAt,
		},
		now,
	);
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
		'The run was passed over while it slept: n8n retried it with the currently saved workflow. Fetch its tasks with Wait for Task';
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

/** If the service takes no task for good, the items of later turns fail as those of this turn did. */
export function endUnsent({ queue: { closedBy }, journal }: RunContext): void {
	if (closedBy === undefined) return;
	for (const entry of journal.entries.filter(isToOrder)) {
		fail(entry, ItemError.from(whyNot(entry, ItemError.from(closedBy)), ownFields(entry)));
	}
}

/** Whether an item waits for a task, a file or an order. A run that stops waits for the tasks that it has created. */
export const isUnfinished = ({ journal, isStopping }: RunContext): boolean =>
	journal.entries.some(({ plan, end, taskId }) => {
		const isLeft = isStopping && (plan?.kind === 'read' || taskId === undefined);
		return plan !== undefined && end === undefined && !isLeft;
	});

const NOTE =
	'## n8n made this execution by itself\nAn execution of this workflow was stopped. These are the tasks that it had created. They go on at the service, and cost money.\n\nTo get their results, copy the items into **Task ID** of a Media Generation node with **Wait for Task**.';

/** A row for each task of an entry, and for an order whose answer was lost. */
function tasksOf({ itemIndex, failed = [], sent, taskId, task, state }: TaskEntry): IDataObject[] {
	const item = itemIndex + 1;
	return [
		...failed.map((id) => ({ item, taskId: id, state: 'FAILURE' })),
		...(taskId !== undefined && sent ? [{ item, taskId, state: task?.state ?? 'PENDING' }] : []),
		...(state === 'sent' ? [{ item, taskId: null, state: 'NOT KNOWN' }] : []),
	];
}

/**
 * Explains why the run ended before its items: somebody stopped it, as a rule. n8n keeps neither the error nor the journal of
 * a turn that is stopped. So the tasks are written to the log, and left in a short execution of this workflow.
 */
export async function explainStop(
	{ context, journal }: RunContext,
	reason: unknown,
): Promise<Error> {
	const node = context.getNode();
	const isStopped = reason instanceof Stopped;
	// If n8n itself has not heard of the stop, the execution would go on.
	if (isStopped) endWithError(context);
	const error = ItemError.from(reason);
	const list = describePaidTasks(orderedBy(journal));
	if (list === undefined) return error.toNodeError(node, undefined);
	writeLog(context, 'warn', `${error.message}. ${list}`);
	if (isStopped) {
		const items = journal.entries.flatMap(tasksOf).map((json) => ({ json }));
		const title = `${node.name}: tasks of the stopped execution ${executionIdOf(context)}`;
		const left = await settled(leaveItems(context, { title, note: NOTE }, items));
		const where =
			'value' in left
				? `These tasks stand in execution ${left.value} of this workflow`
				: `These tasks stand in this log only. ${messageOf(left.error)}`;
		writeLog(context, 'warn', where);
	}
	return error.toNodeError(node, undefined, list);
}

/** What a run has ordered, for messages that name it. */
export function orderedBy(journal: Journal): Required<Ordered> {
	const tasks = journal.entries.flatMap(({ sent, taskId, failed = [], task }): PaidTask[] => [
		...failed.map((id) => ({ taskId: id, state: 'FAILURE' })),
		...(sent && taskId
			? [{ taskId, state: task?.state ?? 'PENDING', credits: task?.creditsConsumed }]
			: []),
	]);
	const unanswered = journal.entries.filter(({ state }) => state === 'sent');
	return { tasks, unanswered: unanswered.map(({ itemIndex }) => itemIndex) };
}

/** How far a run is: what is created, finished and failed, and what it has cost so far. */
export function progressOf({ entries }: Journal): string {
	const created = entries.filter(({ taskId }) => taskId !== undefined);
	const finished = entries.filter(({ task }) => task?.state === 'SUCCESS').length;
	const failed = entries.filter(({ end }) => end === 'error').length;
	const usd = roundUsd(costOf(created));
	const parts = [
		created.length < entries.length
			? `${created.length} of ${count(entries.length, 'task')} created`
			: `${count(created.length, 'task')}${entries.some(({ sent }) => sent) ? ' created' : ''}`,
		`${finished} finished`,
		...(failed > 0 ? [`${failed} failed`] : []),
		...(usd > 0 ? [`cost so far about ${usd} USD`] : []),
	];
	return describeDeliveries(entries) ?? parts.join(', ');
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
	const progress = progressOf(journal);
	const execution = context.getExecutionId();
	const asleep = `asleep until ${new Date(wakeAt).toISOString()}`;
	const where = `(execution ${execution}, turn ${journal.state.turn})`;
	writeLog(context, 'info', `${progress}; ${asleep} ${where}`);
	const [trouble] = entries.flatMap(({ end, noFile, trouble }) =>
		end === undefined ? (noFile ?? trouble?.message ?? []) : [],
	);
	const told = trouble === undefined ? '' : ` The last read or download failed: ${trouble}.`;
	context.addExecutionHints(
		hint(
			`${progress}. The run sleeps, and looks again ${momentOf(context, wakeAt)}. You do not need to enter anything.${told}${ifStopped(execution, created)}`,
		),
	);
}

/** To be called when the items of a run leave, while the execution may go on for hours. */
export async function tellEnd({ context, journal }: RunContext): Promise<void> {
	const summaries = await executionSummaries(context, journal.entries);
	context.addExecutionHints(...summaries.map((text) => hint(text)));
}

/** So few ids can be read in a hint. */
const FEW = 3;

/** What to do if somebody stops the run while it sleeps: n8n asks no node then. */
function ifStopped(execution: string, created: readonly TaskEntry[]): string {
	if (created.length === 0) return '';
	if (created.some(({ plan }) => isDelivered(plan))) {
		return " If you stop this run, use 'Retry execution' later: nothing else makes up for these callbacks.";
	}
	const ids = created.length > FEW ? '' : ` (${created.map(({ taskId }) => taskId).join(', ')})`;
	const them = created.length === 1 ? 'its task' : 'its tasks';
	return ` If you stop this run, get the results of ${them}${ids} with Wait for Task in a new node that is connected to nothing: enter 'execution ${execution}' as 'Task ID'.`;
}

/** n8n wakes a run up to a minute late. */
const SOON_MS = 90_000;

/**
 * A moment as a person reads it in n8n's lists.
 *
 * @param time milliseconds since 1970
 */
function momentOf(context: IExecuteFunctions, time: number): string {
	if (time - Date.now() < SOON_MS) return 'in about a minute';
	const timeZone = context.getTimezone();
	const format = { hour: '2-digit', minute: '2-digit', timeZone } as const;
	return `at ${new Date(time).toLocaleTimeString('en-GB', format)} (${timeZone})`;
}

/**
 * Sums up the executions whose tasks were read by `execution 123`: how far they are, what they cost, and when they look
 * again.
 *
 * @param entries what was read
 * @returns a text for each execution
 */
async function executionSummaries(
	context: IExecuteFunctions,
	entries: readonly TaskEntry[],
): Promise<string[]> {
	const tasks = new Map(entries.map(({ taskId, task }) => [taskId, task]));
	return (await executionsOf(context)).map((execution) => {
		const read = execution.tasks.map(({ taskId }) => tasks.get(taskId));
		const finished = read.filter((task) => task?.state === 'SUCCESS').length;
		const failed = read.filter((task) => task?.state === 'FAILURE').length;
		const open = read.filter((task) => !hasEnded(task)).length;
		const { id, unanswered, toOrder, wakeAt } = execution;
		const costUsd = roundUsd(execution.costUsd);
		const parts = [
			count(read.length, 'task'),
			`${finished} finished`,
			`${failed} failed`,
			`${open} open`,
			...(toOrder > 0 ? [`${toOrder} not ordered yet`] : []),
			...(unanswered > 0 ? [`${count(unanswered, 'order')} without an answer`] : []),
			...(costUsd > 0 ? [`about ${costUsd} USD`] : []),
		];
		const next =
			wakeAt === undefined ? '' : ` The run sleeps, and looks again ${momentOf(context, wakeAt)}.`;
		return `Execution ${id}: ${parts.join(', ')}.${next}`;
	});
}
