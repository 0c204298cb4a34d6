import type { IExecuteFunctions } from 'n8n-workflow';

import type { Journal } from '../create/journal';
import type { TaskEntry } from '../create/taskEntry';
import { costOf, executionsOf, type StoredExecution } from '../n8n/storedExecution';
import { isDelivered } from '../plan/planTypes';
import { roundUsd } from '../service/money';
import { hasEnded } from '../service/taskRecord';
import { count, writeLog } from '../shared/itemError';
import { describeDeliveries } from './deliver';
import type { RunContext } from './runContext';
import { hint } from './runHints';

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
	writeLog(
		context,
		'info',
		`${progress}; asleep until ${new Date(wakeAt).toISOString()} (execution ${execution}, turn ${journal.state.turn})`,
	);
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
	for (const text of await executionSummaries(context, journal.entries)) {
		context.addExecutionHints(hint(text));
	}
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
		const { id, unanswered, toOrder } = execution;
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
		return `Execution ${id}: ${parts.join(', ')}. ${nextLookOf(context, execution)}`.trim();
	});
}

const nextLookOf = (context: IExecuteFunctions, { wakeAt }: StoredExecution): string =>
	wakeAt === undefined ? '' : `The run sleeps, and looks again ${momentOf(context, wakeAt)}.`;
