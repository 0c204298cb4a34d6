import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import type { CreateJournal } from '../create/createJournal';
import { pendingJson } from '../report/taskErrors';
import { ItemError } from '../shared/itemError';
import { isRecord } from '../shared/json';

/** The place in the node's context, which is kept from one try of *Retry On Fail* to the next. */
const KEY = 'tries';

/** What n8n makes of *Max. Tries*. */
const DEFAULT_TRIES = 3;
const MIN_TRIES = 2;
const MAX_TRIES = 5;

/**
 * Counts n8n's tries of this run of the node.
 *
 * @returns whether n8n tries again if this try stops: *Retry On Fail* is on, and this is not the last try
 */
export function countTry(context: IExecuteFunctions): boolean {
	const { retryOnFail, maxTries } = context.getNode();
	if (retryOnFail !== true) return false;
	const store: IDataObject = context.getContext('node');
	// A loop runs the node many times, and a retry from the list of executions sees what the first one wrote.
	const run = `${context.getExecutionId()}:${String(context.getWorkflowDataProxy(0).$runIndex ?? 0)}`;
	const stored = store[KEY];
	const before = isRecord(stored) && stored.run === run ? Number(stored.count) : 0;
	store[KEY] = { run, count: before + 1 };
	const allowed = Math.min(MAX_TRIES, Math.max(MIN_TRIES, maxTries || DEFAULT_TRIES));
	return before + 1 < allowed;
}

/** An item that cannot be planned this time names the task that an earlier try created for it. */
export function withEarlierTask(
	error: ItemError,
	journal?: CreateJournal,
	itemIndex = 0,
): ItemError {
	const task = journal?.taskOf(itemIndex);
	return task ? ItemError.from(error, pendingJson(task.taskId, task.sent)) : error;
}
