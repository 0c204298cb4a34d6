import type { IExecuteFunctions } from 'n8n-workflow';

import type { Journal } from '../create/journal';
import type { TaskEntry } from '../create/taskEntry';
import { endWithError, isOnWorker, settingsOf } from '../n8n/internals';
import { highlight } from '../n8n/highlight';
import { type FiledTask, fileTasks, forgetFile } from '../n8n/taskFile';
import { describePaidTasks } from '../report/ifSomeFail';
import { clock, Stopped } from '../shared/clock';
import { ItemError, messageOf } from '../shared/itemError';
import { settled } from '../shared/promises';
import { executionSummaries, progressOf } from './progress';
import { orderedBy, type RunContext } from './runContext';
import { hint, showHints } from './runHints';

/** What is left of the tasks of a run where n8n keeps nothing: of a stopped turn, and of a killed worker's execution. */

/** What of an entry is written down beside the execution. */
const filed = ({
	itemIndex,
	taskId,
	costUsd,
	failed = [],
	sent,
	state,
}: TaskEntry): FiledTask[] => [
	...failed.map((id) => ({ itemIndex, taskId: id })),
	...(taskId !== undefined && sent ? [{ itemIndex, taskId, costUsd }] : []),
	...(state === 'sent' ? [{ itemIndex }] : []),
];

/** @param since when this turn began, milliseconds of the clock. @returns whether the tasks are written down */
async function writeDown(
	context: IExecuteFunctions,
	{ entries }: Journal,
	since: number,
): Promise<boolean> {
	const added = entries.filter(({ createdAt = Infinity }) => createdAt >= since);
	return await fileTasks(context, added.flatMap(filed), entries.flatMap(filed));
}

/**
 * Writes the tasks that a turn has created down beside the execution, if a worker runs it: if the worker is killed later,
 * n8n erases what it has stored of the execution.
 *
 * @param turnStartedAt milliseconds of the clock
 */
export async function keepOnWorker(
	context: IExecuteFunctions,
	journal: Journal,
	turnStartedAt: number,
): Promise<void> {
	const isNew = ({ createdAt = -Infinity }: TaskEntry) => createdAt >= turnStartedAt;
	if (!isOnWorker(context) || !journal.entries.some(isNew)) return;
	const kept = await settled(writeDown(context, journal, turnStartedAt));
	if ('value' in kept) return;
	const { name } = context.getNode();
	context.logger.warn(`${name}: the tasks stand in this log only. ${messageOf(kept.error)}`);
}

/** To be called when the items of a run leave, while the execution may go on for hours. */
export async function keepToTheEnd({ context, journal, turn }: RunContext): Promise<void> {
	highlight(context, progressOf(journal));
	for (const text of await executionSummaries(context, journal.entries)) {
		showHints(context, hint(text));
	}
	await keepOnWorker(context, journal, turn.startedAt);
	forgetFile(context);
}

/**
 * Explains why the run ended before its items: somebody stopped it, as a rule. n8n keeps neither the error nor the
 * journal of a turn that is stopped. So the tasks are written to the log, and beside the execution, where Task → Wait
 * finds them by its number.
 */
export async function explainStop(
	{ context, journal, turn }: RunContext,
	reason: unknown,
): Promise<Error> {
	const node = context.getNode();
	// If n8n itself has not heard of the stop, the execution would go on.
	if (reason instanceof Stopped) endWithError(context);
	const error = ItemError.from(reason);
	const list = describePaidTasks(orderedBy(journal));
	if (list === undefined) return error.toNodeError(node, undefined);
	context.logger.warn(`${node.name}: ${error.message}. ${list}`);
	const left = await settled(leaveTasks(context, journal, turn.startedAt));
	const why = 'value' in left ? left.value : messageOf(left.error);
	const where =
		why === undefined
			? `Task → Wait fetches them all with 'execution ${context.getExecutionId()}' as 'Task ID'`
			: `The tasks stand in this log only. ${why}`;
	context.logger.warn(`${node.name}: ${where}`);
	return error.toNodeError(node, undefined, list);
}

const NOT_SAVED = "n8n saves nothing of this execution, by the workflow's settings or its own.";
const IN_MEMORY = 'n8n keeps files in memory.';

/** How often n8n is asked for a stopped execution, and the pause in between, milliseconds. */
const MOST_QUESTIONS = 5;
const QUESTION_GAP_MS = 1_000;

/** Whether n8n keeps the execution: of a run by hand it stores nothing before its end. */
async function isStored(context: IExecuteFunctions): Promise<boolean> {
	for (let questions = 1; ; questions++) {
		if ((await context.getExecutionDataById(context.getExecutionId())) !== undefined) return true;
		if (questions === MOST_QUESTIONS) return false;
		await clock.sleep(QUESTION_GAP_MS, undefined);
	}
}

/** @returns why the tasks of a stopped run could not be written down; undefined if they are */
async function leaveTasks(
	context: IExecuteFunctions,
	journal: Journal,
	since: number,
): Promise<string | undefined> {
	if (settingsOf(context).saveDataErrorExecution === 'none' || !(await isStored(context))) {
		return NOT_SAVED;
	}
	return (await writeDown(context, journal, since)) ? undefined : IN_MEMORY;
}
