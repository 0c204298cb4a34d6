import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { Journal } from '../create/journal';
import { isToCreate } from '../create/taskEntry';
import { sleepAndRunAgain } from '../n8n/runAgain';
import type { TaskPlan } from '../plan/planTypes';
import { nextWakeAt } from '../wait/nextWake';
import { tellProgress } from './progress';

/** So many entries at most are in doubt if a turn is killed. */
const MOST_ANNOUNCED = 50;
const LEAST_ANNOUNCED = 25;

/**
 * The tasks that the next turn may create, in order: as many as it can send, judged by the last turn that created.
 * Exactly these are in doubt if that turn is killed, so there are never more than 50.
 *
 * @param left the tasks that are to be created, in the order of the items
 * @param createdInTurn how many tasks this turn created
 */
export const nextToCreate = <T>(left: readonly T[], createdInTurn: number): T[] =>
	left.slice(0, Math.min(MOST_ANNOUNCED, Math.max(LEAST_ANNOUNCED, 2 * createdInTurn)));

/**
 * Puts the run to sleep: n8n stores the journal, and runs the node again when the time has come.
 *
 * @param next the tasks that the next turn may create
 * @returns what `execute` returns
 */
export async function goToSleep(
	context: IExecuteFunctions,
	journal: Journal,
	next: readonly TaskPlan[],
	rule = journal.sleepRule,
): Promise<INodeExecutionData[][]> {
	const now = Date.now();
	const waiting = journal.entries().filter(({ end }) => end === undefined);
	const wakeAt = nextWakeAt(
		{
			...rule,
			// The run is stored before its first create, which does not wait for the interval.
			...(journal.taskIds().length === 0 && { intervalMs: 0 }),
			startedAt: journal.startedAt,
			isCreating: waiting.some((entry) => isToCreate(entry) && entry.again === undefined),
			isOverdue: waiting.some(({ overdueAt }) => overdueAt !== undefined),
			dueAt: waiting.flatMap(({ until, again }) => [until ?? Infinity, again?.at ?? Infinity]),
		},
		now,
	);
	journal.fallAsleep(next, rule);
	tellProgress(context, journal, wakeAt);
	return await suspend(context, journal, wakeAt);
}

/** @returns what `execute` returns */
export async function suspend(
	context: IExecuteFunctions,
	journal: Journal,
	wakeAt: number,
): Promise<INodeExecutionData[][]> {
	const taskIds = journal.taskIds();
	const error =
		'The run was passed over while it slept: n8n retried it with the currently saved workflow. Fetch its tasks with Task → Wait';
	return await sleepAndRunAgain(context, new Date(wakeAt), [{ json: { error, taskIds } }]);
}
