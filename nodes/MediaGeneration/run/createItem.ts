import type { SentTask } from '../create/createJournal';
import { type CreatePlan, isAwaited } from '../plan/planTypes';
import { failedInAll, failedTask } from '../report/taskErrors';
import { pendingJson } from '../report/taskItems';
import type { FailedTask } from '../service/taskRecord';
import { clock, sleepUntil } from '../shared/clock';
import { inTableOrder, ItemError } from '../shared/itemError';
import { settled } from '../shared/promises';
import { type AwaitedTask, followTask, waitForTask } from './readTask';
import { type Output, READ_GAP_MS, type RunContext } from './runContext';

/** How often to check whether the node will stop, milliseconds. */
const SECOND = 1000;

/** The pause before a failed task is created again, since an overloaded model needs a moment. It doubles each time. */
const FIRST_PAUSE_MS = 5_000;

/**
 * An item that creates a task: the task is created or taken up, awaited, created again if it fails, and put out.
 *
 * @returns what makes the output items; undefined if none leaves
 * @throws ItemError, ServiceError if the item fails
 * @throws Stopped if the execution was stopped
 */
export async function createItem(run: RunContext, item: CreatePlan): Promise<Output | undefined> {
	try {
		let task = takeUp(run, item) ?? (await create(run, item));
		while (task !== undefined) {
			run.paidTasks.note(task.taskId, 'PENDING');
			if (!isAwaited(item)) return leave(run, item, task);
			const ended = await settled(endOf(run, item, task));
			// This comes first, so that no other item gets the place.
			if ('error' in ended) run.stopCreating();
			run.queue.finished();
			if ('error' in ended) throw ended.error;
			if (typeof ended.value !== 'object') return ended.value;
			run.journal.failed(item);
			await pause(run, ended.value.at);
			task = await create(run, item, ended.value);
		}
		return undefined;
	} finally {
		run.suspendAfter.close(item);
	}
}

/** Takes up the task that an earlier try of n8n created, if any. */
function takeUp(run: RunContext, item: CreatePlan): AwaitedTask | undefined {
	const earlier = run.journal.find(item);
	if (typeof earlier !== 'object') return undefined;
	const deadline = clock.now() + item.timeoutMs;
	return { ...knownOf(run, item, earlier), firstReadAt: run.gap.take(), deadline };
}

/** Creates the item's task. @returns undefined if another item has failed, and the node will stop */
async function create(
	run: RunContext,
	item: CreatePlan,
	retry?: Retry,
): Promise<AwaitedTask | undefined> {
	const timeIsUpAt = Math.min(run.calledAt + item.patienceMs, retry?.deadline ?? Infinity);
	const task = await run.creator.create(item, Math.min(timeIsUpAt, retry?.until ?? Infinity));
	const createdAt = clock.now();
	if (task === undefined) {
		if (retry) throw retry.failure;
		if (createdAt < timeIsUpAt) return undefined;
		// The caller hangs up now, and would not hear of a task.
		throw new ItemError(run.queue.refusal?.message ?? 'The service took no task', {
			description: `No task was created within ${item.patienceMs / 1000} s. Try again later.`,
		});
	}
	run.suspendAfter.created();
	closeIfLast(run, item);
	const firstReadAt = run.firstReads.take(createdAt + item.pollIntervalMs);
	const deadline = Math.min(timeIsUpAt, createdAt + item.timeoutMs);
	return { ...knownOf(run, item, task), createdAt, firstReadAt, deadline };
}

/** Tells `SuspendAfter` if the item creates no further task, however its present task ends. */
function closeIfLast({ journal, suspendAfter }: RunContext, item: CreatePlan): void {
	if (journal.failedTaskIds(item).length >= item.retryFailed) suspendAfter.close(item);
}

const knownOf = (run: RunContext, item: CreatePlan, { taskId, sent, record }: SentTask) => ({
	taskId,
	// The fields that were sent win: in a second try an expression may give another value.
	fields: { ...sent, ...run.known(item, taskId), ...sent, record },
});

/** The output of an item that leaves while its task is pending. */
function leave(run: RunContext, item: CreatePlan, { taskId, fields }: AwaitedTask): Output {
	const { webhookUrl, timeoutMs, itemIndex } = item;
	void settled(freePlace(run, item, taskId));
	if (webhookUrl !== undefined) run.deliveries.add(taskId, webhookUrl, timeoutMs);
	const json = inTableOrder(pendingJson(taskId, fields));
	return async () => [{ json, pairedItem: { item: itemIndex } }];
}

/**
 * Reads a task whose item has left, so that the end of the task frees its place at the account for the next create.
 * Nothing is read before the service has refused a create, or when nothing is left to create.
 */
async function freePlace(run: RunContext, item: CreatePlan, taskId: string): Promise<void> {
	const { queue, firstReads } = run;
	const readableAt = clock.now() + item.pollIntervalMs;
	await queue.limited;
	const pollIntervalMs = Math.max(item.pollIntervalMs, READ_GAP_MS * queue.throttle.unfinished);
	const firstReadAt = firstReads.take(Math.max(clock.now(), readableAt));
	const isAbandoned = () => !queue.isCreating;
	const options = { pollIntervalMs, firstReadAt, deadline: Infinity, isAbandoned };
	await settled(followTask(run, taskId, options));
	queue.finished();
}

/** Waits for the item's task. @returns how to create the task again if it fails; otherwise as `waitForTask` */
async function endOf(
	run: RunContext,
	item: CreatePlan,
	awaited: AwaitedTask,
): Promise<Output | Retry | undefined> {
	const onUnfinished = () => {
		// From now on the task counts as a task of this try.
		awaited.createdAt ??= awaited.firstReadAt;
		closeIfLast(run, item);
	};
	const task = await waitForTask(run, item, awaited, onUnfinished);
	if (typeof task !== 'object') return task;
	const count = run.journal.failedTaskIds(item).length + 1;
	return retryOf(item, { ...awaited, task, count, failedAt: clock.now() });
}

/** Between which moments to create a task again, and when its time is up; milliseconds of the clock. */
export interface Retry {
	at: number;
	until: number;
	deadline: number;
	/** The error of the item if no other task is created after all. */
	failure: ItemError;
}

/**
 * Decides whether the item's failed task is created again (option *Retry Failed Tasks*). Each try of n8n creates at
 * least one task again.
 *
 * @param failed.count how many tasks of the item have failed, in earlier tries of n8n as well, with this task
 * @param failed.failedAt milliseconds of the clock
 * @throws ItemError with the reason why the task is not created again
 * @see specification, section 7
 */
export function retryOf(
	{ retryFailed }: CreatePlan,
	failed: Pick<AwaitedTask, 'fields' | 'createdAt' | 'deadline'> & {
		task: FailedTask;
		count: number;
		failedAt: number;
	},
): Retry {
	const { task, fields, count, createdAt, failedAt, deadline } = failed;
	const failure = (why = '') => failedTask(task, fields, why);
	if (createdAt !== undefined && count > retryFailed) throw failure(failedInAll(count));
	// A failed task is free. If the service charged for it, it may charge for the next one, too.
	if ((task.creditsConsumed ?? 0) > 0) throw failure('So it was not created again.');
	if (createdAt === undefined) {
		const notAgain = failure('It was not created again.');
		return { at: failedAt, until: Infinity, deadline: Infinity, failure: notAgain };
	}
	const at = failedAt + FIRST_PAUSE_MS * 2 ** (count - 1);
	// A task that is given up before its end is paid for in vain, so the next task needs as much time as this one took.
	const until = deadline - (failedAt - createdAt);
	if (at > until) throw failure('It was not created again, because too little time was left.');
	return { at, until, deadline, failure: failure('It was not created again in time.') };
}

/** Waits until a moment of the clock, or until the node will stop. */
async function pause(run: RunContext, until: number): Promise<void> {
	while (clock.now() < until && !run.isStopping) {
		await sleepUntil(Math.min(until, clock.now() + SECOND), run.signal);
	}
}
