import type { IExecuteFunctions } from 'n8n-workflow';

import type { Journal } from '../create/journal';
import type { TaskEntry } from '../create/taskEntry';
import { roundUsd } from '../service/prices';
import { count } from '../shared/count';
import { describeDeliveries } from './deliver';
import { hint, showHints } from './runHints';

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

/** What to do if somebody stops the run while it sleeps: n8n asks no node then. */
function ifStopped(execution: string, created: readonly TaskEntry[]): string {
	if (created.length === 0) return '';
	const ids = created.length > FEW ? '' : ` (${created.map(({ taskId }) => taskId).join(', ')})`;
	const them = created.length === 1 ? 'its task' : 'its tasks';
	return ` If you stop this run or rename this node, get the results of ${them}${ids} with Task → Wait in a new node that is connected to nothing: enter 'execution ${execution}' as 'Task ID'.`;
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
