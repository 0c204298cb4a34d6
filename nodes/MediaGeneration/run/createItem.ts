import type { IDataObject } from 'n8n-workflow';

import type { SentTask } from '../create/createJournal';
import { type CreatePlan, isAwaited } from '../plan/planTypes';
import { failedInAll, failedTask } from '../report/taskErrors';
import { pendingJson } from '../report/taskItems';
import type { FailedTask } from '../service/taskRecord';
import { sleepUntil } from '../shared/clock';
import { inTableOrder, ItemError } from '../shared/itemError';
import { settled } from '../shared/promises';
import { followTask, waitForTask } from './readTask';
import { type Output, READ_GAP_MS, type RunContext } from './runContext';

/** How often to check whether the node will stop, milliseconds. */
const SECOND = 1000;

/** The pause before a failed task is created again, since an overloaded model needs a moment. It doubles each time. */
const FIRST_PAUSE_MS = 5_000;

/** The failure of a task that is to be created again. */
export class CreateAgain extends ItemError {
	/**
	 * @param failure the error of the item if the task is not created again after all
	 * @param at not before this moment, milliseconds of the clock
	 * @param until not after this moment, milliseconds of the clock
	 */
	constructor(
		failure: ItemError,
		readonly at = -Infinity,
		readonly until = Infinity,
	) {
		super(failure.message, failure);
	}
}

/** An item that creates a task: the task is created or taken up, awaited, and put out. */
export class CreateItem {
	/** When it is too late to create a task, milliseconds of the clock. */
	private deadline: number;

	/** When the present task was created, milliseconds of the clock; undefined if an earlier try of n8n created it. */
	private createdAt: number | undefined;

	constructor(
		private readonly run: RunContext,
		private readonly item: CreatePlan,
	) {
		this.deadline = run.calledAt + item.timeoutMs;
	}

	/**
	 * Takes up or creates the item's task, and follows it.
	 *
	 * @returns what makes the output items; undefined if none leaves
	 * @throws ItemError, ServiceError if the item fails
	 * @throws Stopped if the execution was stopped
	 */
	async output(): Promise<Output | undefined> {
		const { run, item } = this;
		const earlier = run.journal.find(item);
		try {
			if (typeof earlier !== 'object') return await this.create();
			const firstReadAt = run.gap.take();
			return await this.follow(earlier, firstReadAt, run.clock.now() + item.timeoutMs);
		} finally {
			run.suspendAfter.close(item);
		}
	}

	private async create(failed?: CreateAgain): Promise<Output | undefined> {
		const { item, run } = this;
		run.journal.failed(item);
		if (failed) await this.pause(failed.at);
		const until = Math.min(failed?.until ?? Infinity, this.deadline);
		const task = await run.creator.create(item, until);
		const now = run.clock.now();
		if (task === undefined) {
			// Another item has failed, and the node will stop; or it is too late for another task.
			if (failed) throw ItemError.from(failed);
			if (now < this.deadline) return undefined;
			// The caller hangs up now, and would not hear of a task.
			throw new ItemError(run.queue.refusal?.message ?? 'The service took no task', {
				description: `No task was created within ${item.timeoutMs / 1000} s. Try again later.`,
			});
		}
		this.createdAt = now;
		this.deadline = Math.min(this.deadline, now + item.timeoutMs);
		run.suspendAfter.created();
		this.closeIfLast();
		const firstReadAt = run.firstReads.take(now + item.pollIntervalMs);
		return await this.follow(task, firstReadAt, this.deadline);
	}

	/** Tells `SuspendAfter` if the item creates no further task, however this task ends. */
	private closeIfLast(): void {
		const { item, run } = this;
		const isLast = run.journal.failedTaskIds(item).length >= item.retryFailed;
		if (isLast) run.suspendAfter.close(item);
	}

	/**
	 * Follows a created task until it ends at the service, or until its item leaves the node, and gives back its place. If
	 * the task fails, it is created again as often as the item allows.
	 *
	 * @param deadline when the task's time is up; milliseconds of the clock, as `firstReadAt`
	 */
	private async follow(
		{ taskId, record, sent }: SentTask,
		firstReadAt: number,
		deadline: number,
	): Promise<Output | undefined> {
		const { item, run } = this;
		run.paidTasks.note(taskId, 'PENDING');
		// The fields that were sent win: in a second try an expression may give another value.
		const fields = { ...sent, ...run.known(item, taskId), ...sent, record };
		if (!isAwaited(item)) {
			const { webhookUrl, timeoutMs, itemIndex } = item;
			void settled(this.freePlace(taskId));
			if (webhookUrl !== undefined) run.deliveries.add(taskId, webhookUrl, timeoutMs);
			const json = inTableOrder(pendingJson(taskId, fields));
			return async () => [{ json, pairedItem: { item: itemIndex } }];
		}
		const onUnfinished = () => {
			// From now on the task counts as a task of this try.
			this.createdAt ??= firstReadAt;
			this.closeIfLast();
		};
		const failureOf = (task: FailedTask) => {
			const count = run.journal.failedTaskIds(item).length + 1;
			const { createdAt } = this;
			const failedAt = run.clock.now();
			return retryOf(item, { task, sent, count, createdAt, failedAt, deadline });
		};
		const wait = { taskId, fields, firstReadAt, deadline, onUnfinished, failureOf };
		const ended = await settled(waitForTask(run, item, wait));
		const again = 'error' in ended && ended.error instanceof CreateAgain ? ended.error : undefined;
		// This comes first, so that no other item gets the place.
		if ('error' in ended && !again) run.stopCreating();
		run.queue.finished();
		if (again) return await this.create(again);
		if ('error' in ended) throw ended.error;
		return ended.value;
	}

	/**
	 * Reads a task whose item has left, so that the end of the task frees its place at the account for the next create.
	 * Nothing is read before the service has refused a create, or when nothing is left to create.
	 */
	private async freePlace(taskId: string): Promise<void> {
		const { item, run } = this;
		const { queue, firstReads, clock } = run;
		const readableAt = clock.now() + item.pollIntervalMs;
		await queue.limited;
		const pollIntervalMs = Math.max(item.pollIntervalMs, READ_GAP_MS * queue.throttle.unfinished);
		const firstReadAt = firstReads.take(Math.max(clock.now(), readableAt));
		const isAbandoned = () => !queue.isCreating;
		const options = { pollIntervalMs, firstReadAt, deadline: Infinity, isAbandoned };
		await settled(followTask(run, taskId, options));
		queue.finished();
	}

	/** Waits until a moment of the clock, or until the node will stop. */
	private async pause(until: number): Promise<void> {
		const { run } = this;
		const { clock } = run;
		while (clock.now() < until && !run.isStopping) {
			await sleepUntil(Math.min(until, clock.now() + SECOND), clock, run.signal);
		}
	}
}

/**
 * Decides whether the item's failed task is created again (option *Retry Failed Tasks*). Each try of n8n creates at
 * least one task again.
 *
 * @param failed.sent the model and the input, as the output shows them
 * @param failed.count how many tasks of the item have failed, in earlier tries of n8n as well, with this task
 * @param failed.createdAt milliseconds of the clock, as all times; undefined if an earlier try created the task
 * @param failed.deadline when the item's time is up
 * @returns `CreateAgain`, or the failure with the reason why the task is not created again
 * @see specification, section 7
 */
export function retryOf(
	{ retryFailed }: CreatePlan,
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
	// A failed task is free. If the service charged for it, it may charge for the next one, too.
	if ((task.creditsConsumed ?? 0) > 0) return failure('So it was not created again.');
	if (createdAt === undefined) return new CreateAgain(failure());
	const at = failedAt + FIRST_PAUSE_MS * 2 ** (count - 1);
	// A task that is given up before its end is paid for in vain, so the next task needs as much time as this one took.
	const until = deadline - (failedAt - createdAt);
	const late = "It was not created again, because too little of 'Timeout' was left.";
	if (at > until) return failure(late);
	return new CreateAgain(failure('It was not created again in time.'), at, until);
}
