import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import type { CreatePlan } from '../plan/taskPlan';
import { failedInAll, failedTask } from '../report/outcome';
import type { FailedTask } from '../service/taskRecord';
import type { ItemError } from '../shared/itemError';
import { isRecord } from '../shared/json';

/** Before the first time: an overloaded model needs a moment. It doubles with each further one. */
const FIRST_PAUSE_MS = 5_000;

/** A task that failed at the service. All times are milliseconds of the clock. */
export interface Failure {
	task: FailedTask;
	/** The model and the input, as the output shows them. */
	sent: IDataObject;
	/** How many tasks of the item have failed, this one included, in earlier tries of n8n as well. */
	count: number;
	createdAt: number;
	failedAt: number;
	/** When the item's time is up. */
	deadline: number;
}

/** That another task is to be created: not before the one moment, and not after the other. */
export interface Retry {
	at: number;
	until: number;
	/** What the item comes to where none is created after all. */
	failure: ItemError;
}

/**
 * Decides whether the item's task is created anew (option *Retry Failed Tasks*).
 *
 * @returns when
 * @throws ItemError where it is not, with the reason
 */
export function retryOf({ retryFailed = 0 }: CreatePlan, failed: Failure): Retry {
	const { task, sent, count, createdAt, failedAt, deadline } = failed;
	if (count > retryFailed) throw failedTask(task, sent, failedInAll(count));
	checkFree(task, sent);
	const at = failedAt + FIRST_PAUSE_MS * 2 ** (count - 1);
	// What is given up half way is paid for, and not seen: another one gets as long as this one had.
	const until = deadline - (failedAt - createdAt);
	const late = "It was not created anew, since too little of 'Timeout' was left.";
	if (at > until) throw failedTask(task, sent, late);
	return { at, until, failure: failedTask(task, sent, 'It was not created anew in time.') };
}

/**
 * A task of an earlier try of n8n failed: each try creates at least one anew.
 *
 * @throws ItemError where the service has charged for it
 */
export function atOnce(task: FailedTask, sent: IDataObject): Retry {
	checkFree(task, sent);
	return { at: -Infinity, until: Infinity, failure: failedTask(task, sent) };
}

/** A failed task is free (specification, section 7). Where the service says otherwise, so may the next one be. */
function checkFree(task: FailedTask, sent: IDataObject): void {
	if ((task.creditsConsumed ?? 0) <= 0) return;
	throw failedTask(task, sent, 'So it was not created anew.');
}

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
