import type { IDataObject } from 'n8n-workflow';

import { storedError, type TaskEntry } from '../create/taskEntry';
import type { CreatePlan } from '../plan/planTypes';
import { failedInAll, failedTask } from '../report/taskErrors';
import type { FailedTask } from '../service/taskRecord';

/** The pause before a failed task is created again, since an overloaded model needs a moment. It doubles each time. */
const FIRST_PAUSE_MS = 5_000;

/**
 * Decides whether the entry's failed task is created again (option *Retry Failed Tasks*).
 *
 * @param entry with the task that failed
 * @param known the fields of the output that the record does not have
 * @param now milliseconds since 1970
 * @returns between which moments to create a task again, milliseconds since 1970
 * @throws ItemError with the reason why the task is not created again
 * @see docs/service.md, section 7
 */
export function retryOf(
	{ retryFailed }: CreatePlan,
	entry: TaskEntry,
	task: FailedTask,
	known: IDataObject,
	now = Date.now(),
): NonNullable<TaskEntry['again']> {
	const { failed = [], createdAt = now, until: deadline = Infinity } = entry;
	const count = failed.length + 1;
	const failure = (why: string) => failedTask(task, known, why);
	if (count > retryFailed) throw failure(failedInAll(count));
	// A failed task is free. If the service charged for it, it may charge for the next one, too.
	if ((task.creditsConsumed ?? 0) > 0) throw failure('So it was not created again.');
	const at = now + FIRST_PAUSE_MS * 2 ** (count - 1);
	// A task that is given up before its end is paid for in vain, so the next task needs as much time as this one took.
	const until = deadline - (now - createdAt);
	if (at > until) throw failure('It was not created again, because too little time was left.');
	const notInTime = storedError(failure('It was not created again in time.'));
	return { at, until, deadline, failure: notInTime };
}
