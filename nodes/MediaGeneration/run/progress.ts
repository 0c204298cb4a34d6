import type { IExecuteFunctions } from 'n8n-workflow';

import type { Journal } from '../create/journal';
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
	const next = new Date(wakeAt).toISOString();
	const { name } = context.getNode();
	context.logger.info(
		`${name}: ${progress}; asleep until ${next} (execution ${context.getExecutionId()}, turn ${journal.sleeps})`,
	);
	const [trouble] = entries.flatMap(({ end, noFile, trouble }) =>
		end === undefined ? (noFile ?? trouble?.message ?? []) : [],
	);
	const told = trouble === undefined ? '' : ` The last read or download failed: ${trouble}.`;
	showHints(
		context,
		hint(
			`${progress}. The run sleeps, and looks again at ${next.slice(11, 16)} UTC. You do not need to enter anything.${told}`,
		),
	);
}
