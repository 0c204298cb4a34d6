import type { IDataObject } from 'n8n-workflow';

import type { CreatePlan } from '../plan/planTypes';
import { failedInAll, failedTask } from '../report/taskItems';
import type { FailedTask } from '../service/taskRecord';
import { ItemError } from '../shared/itemError';

/** Before the first time: an overloaded model needs a moment. It doubles with each further one. */
const FIRST_PAUSE_MS = 5_000;

/** The failure of a task in whose place another one is to be created. */
export class CreateAgain extends ItemError {
	/**
	 * @param failure what the item comes to where none is created after all
	 * @param at not before that moment, milliseconds of the clock
	 * @param until not after that moment, milliseconds of the clock
	 */
	constructor(
		failure: ItemError,
		readonly at = -Infinity,
		readonly until = Infinity,
	) {
		super(failure.message, failure);
	}
}

/**
 * Decides whether the item's task is created anew (option *Retry Failed Tasks*). Each try of n8n creates at least one
 * anew.
 *
 * @param failed.sent the model and the input, as the output shows them
 * @param failed.count how many tasks of the item have failed, this one included, in earlier tries of n8n as well
 * @param failed.createdAt milliseconds of the clock, as all times; undefined where an earlier try has created it
 * @param failed.deadline when the item's time is up
 * @returns `CreateAgain` where it is; otherwise the failure with the reason why it is not
 * @see specification, section 7
 */
export function retryOf(
	{ retryFailed = 0 }: CreatePlan,
	failed: {
		task: FailedTask;
		sent: IDataObject;
		count: number;
		createdAt: number | undefined;
		failedAt: number;
		deadline: number;
	},
): ItemError {
	const { task, sent, count, createdAt, failedAt, deadline } = failed;
	const failure = (why?: string) => failedTask(task, sent, why);
	if (createdAt !== undefined && count > retryFailed) return failure(failedInAll(count));
	// A failed task is free. Where the service says otherwise, so may the next one be.
	if ((task.creditsConsumed ?? 0) > 0) return failure('So it was not created again.');
	if (createdAt === undefined) return new CreateAgain(failure());
	const at = failedAt + FIRST_PAUSE_MS * 2 ** (count - 1);
	// What is given up half way is paid for, and not seen: another one gets as long as this one had.
	const until = deadline - (failedAt - createdAt);
	const late = "It was not created again, because too little of 'Timeout' was left.";
	if (at > until) return failure(late);
	return new CreateAgain(failure('It was not created again in time.'), at, until);
}
