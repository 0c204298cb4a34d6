import { endWithError } from '../n8n/internals';
import { leaveRecord } from '../n8n/stopRecord';
import { Stopped } from '../shared/clock';
import { ItemError, messageOf } from '../shared/itemError';
import { settled } from '../shared/promises';
import { describePaid, type RunContext } from './runContext';

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
	const list = describePaid(journal);
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
