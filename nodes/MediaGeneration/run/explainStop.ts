import type { IDataObject } from 'n8n-workflow';

import type { Journal } from '../create/journal';
import type { TaskEntry } from '../create/taskEntry';
import { endWithError, executionIdOf } from '../n8n/internals';
import { leaveItems } from '../n8n/subExecution';
import { describePaidTasks, type Ordered, type PaidTask } from '../report/ifSomeFail';
import { Stopped } from '../shared/clock';
import { ItemError, messageOf } from '../shared/itemError';
import { writeLog } from '../shared/log';
import { settled } from '../shared/promises';
import type { RunContext } from './runContext';

const NOTE =
	'## n8n made this execution by itself\nAn execution of this workflow was stopped, and n8n keeps nothing of what it did since its last sleep. These are the tasks that it had created by then. They go on at the service, and cost money.\n\nTo get their results, copy the items into **Task ID** of a Media Generation node with **Wait for Task**.';

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
