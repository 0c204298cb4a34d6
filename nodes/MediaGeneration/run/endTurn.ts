import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { Journal } from '../create/journal';
import { fail, isToOrder, ownFields, type TaskEntry } from '../create/taskEntry';
import { endWithError, executionIdOf } from '../n8n/internals';
import { leaveItems } from '../n8n/subExecution';
import { describePaidTasks, type Ordered, type PaidTask } from '../report/ifSomeFail';
import { clock, settled, Stopped } from '../shared/clock';
import { ItemError, messageOf, writeLog } from '../shared/itemError';
import type { RunContext } from './runContext';
import { whyNot } from '../create/createTask';
import { sleepAndRunAgain } from '../n8n/runAgain';
import { nextWakeAt, type Sleeper } from '../read/readWindow';
import { tellProgress } from './progress';

/** What a turn knows of the next one. Times are milliseconds of the clock. */
export type NextTurn = Pick<Sleeper, 'orderAt' | 'notBefore'> & {
	/** When this turn began. */
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
