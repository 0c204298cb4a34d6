import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { isJustTaken } from '../callback/delivery';
import type { Journal } from '../create/journal';
import { isToOrder, type TaskEntry } from '../create/taskEntry';
import { sleepAndRunAgain } from '../n8n/runAgain';
import { clock } from '../shared/clock';
import { nextWakeAt, type Sleeper } from '../wait/nextWake';
import { tellProgress } from './progress';

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
		return until <= now || isJustTaken(deliveries) || (dueAt <= now && triedAt < turnStartedAt);
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
