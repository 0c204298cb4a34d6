import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { whyNot } from '../create/createTask';
import type { Journal } from '../create/journal';
import { fail, isToOrder, ownFields, type TaskEntry } from '../create/taskEntry';
import { sleepAndRunAgain } from '../n8n/runAgain';
import { nextWakeAt, type Sleeper } from '../n8n/wakes';
import { clock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import type { RunContext } from './runContext';
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
			startedAt: Math.max(journal.startedAt, ...waiting.map(({ createdAt = 0 }) => createdAt)),
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
