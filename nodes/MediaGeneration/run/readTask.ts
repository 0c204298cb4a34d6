import type { IDataObject } from 'n8n-workflow';

import { redeliver } from '../callback/redeliver';
import { type ReadPlan, referenceOf, type TaskPlan } from '../plan/planTypes';
import { failedInAll, failedTask, ofTask, timedOut } from '../report/taskErrors';
import { pendingJson, taskJson } from '../report/taskItems';
import type { FailedTask, FinishedTask, TaskRecord } from '../service/taskRecord';
import { clock, sleepUntil } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { settled } from '../shared/promises';
import { pollTask, type Unfinished, type WaitOptions } from '../wait/pollTask';
import type { Output, RunContext } from './runContext';

/**
 * An item that names an existing task: the task is read, or awaited, and put out.
 *
 * @returns what makes the output items; undefined if none leaves
 * @throws ItemError, ServiceError if the item fails
 * @throws Stopped if the execution was stopped
 */
export async function readItem(run: RunContext, item: ReadPlan): Promise<Output | undefined> {
	const { taskId } = item;
	const fields = referenceOf(item);
	const firstReadAt = run.gap.take();
	if (item.wait) {
		const deadline = Math.min(firstReadAt, run.calledAt) + item.timeoutMs;
		return await awaitOutput(run, item, { taskId, fields, firstReadAt, deadline });
	}
	await sleepUntil(firstReadAt, run.signal);
	const read = await settled(readTask(run, taskId));
	if ('error' in read) throw ofTask(read.error, taskId, { taskId });
	const task = read.value;
	const json = taskJson(task, { ...fields, ...(await redeliverTask(run, item, task)) });
	return async () => await run.downloader.itemsOf(task, json, item);
}

/**
 * Sends the callback of a finished task to its trigger once more, if the user asked for it.
 *
 * @returns the fields `delivered` and `delivery`
 */
async function redeliverTask(
	{ context }: RunContext,
	{ redeliverTo }: ReadPlan,
	task: TaskRecord,
): Promise<IDataObject> {
	if (redeliverTo === undefined) return {};
	if (task.state === 'PENDING') return { delivered: false };
	const sent = await settled(redeliver(context, task, redeliverTo));
	if ('value' in sent) return { delivered: true, ...(sent.value && { delivery: sent.value }) };
	throw ItemError.from(sent.error, taskJson(task));
}

/** A task whose item leaves when the task has ended. All times are milliseconds of the clock. */
export interface AwaitedTask {
	taskId: string;
	/** The fields of the item that do not come from the task's record. */
	fields: IDataObject;
	/** Undefined if this try of n8n has not created the task. */
	createdAt?: number | undefined;
	firstReadAt: number;
	/** When the task's time is up. */
	deadline: number;
}

/** Waits as `waitForTask` does. @throws ItemError also if the task fails */
async function awaitOutput(
	run: RunContext,
	item: TaskPlan,
	awaited: AwaitedTask,
): Promise<Output | undefined> {
	const ended = await waitForTask(run, item, awaited);
	if (typeof ended !== 'object') return ended;
	const isCreated = item.kind === 'create';
	const why = isCreated ? failedInAll(run.journal.failedTaskIds(item).length + 1) : undefined;
	throw failedTask(ended, awaited.fields, why);
}

/**
 * Waits until a task is finished, or hands it over.
 *
 * @returns what makes the output items, undefined if none leaves; or the task if it failed
 * @throws ItemError if the task is not finished in time, cannot be read, or if the execution was stopped
 */
export async function waitForTask(
	run: RunContext,
	item: TaskPlan,
	awaited: AwaitedTask,
	onUnfinished?: () => void,
): Promise<Output | FailedTask | undefined> {
	const { taskId, fields, firstReadAt, deadline } = awaited;
	const { pollIntervalMs, timeoutMs } = item;
	// A task that this node did not create costs nothing more if nobody waits for it.
	const isAbandoned = () => item.kind === 'read' && run.isStopping;
	const options = { firstReadAt, deadline, pollIntervalMs, isAbandoned, onUnfinished };
	const followed = await settled(followTask(run, taskId, options));
	// The node stops because of another item, so this item has no error.
	if (isAbandoned()) return undefined;
	const json = pendingJson(taskId, fields);
	if ('error' in followed) throw ofTask(followed.error, taskId, json);
	const task = followed.value;
	if ('taskId' in task) {
		if (task.state === 'FAILURE') return task;
		const output = taskJson(task, fields);
		return async () => await run.downloader.itemsOf(task, output, item, deadline);
	}
	if (!task.isHandedOver) throw timedOut(taskId, timeoutMs, task, json);
	const { last, notBefore, due } = task;
	const goOn = async () =>
		await awaitOutput(run, item, { ...awaited, firstReadAt: Math.max(run.gap.take(), due) });
	run.handedOver.push({ item, json, last, deadline, notBefore, goOn });
	return undefined;
}

/** How long a read may last after the deadline: a caller that hangs up must hear of the task before. */
const LAST_READ_MS = 5_000;

/** Reads a task until it is finished, its time is up, or it is handed over; see `pollTask`. */
export async function followTask(
	run: RunContext,
	taskId: string,
	options: Omit<WaitOptions, 'signal' | 'suspendAfter' | 'isOwn' | 'read' | 'nextSlot'>,
): Promise<FinishedTask | Unfinished> {
	const { signal, suspendAfter, paidTasks, gap, calledAt } = run;
	const isOwn = paidTasks.has(taskId);
	const ended = await pollTask({
		...options,
		...{ signal, suspendAfter, isOwn },
		read: async () => {
			const lastMs = calledAt < Infinity ? LAST_READ_MS : Infinity;
			return await readTask(run, taskId, Math.max(0, options.deadline - clock.now()) + lastMs);
		},
		nextSlot: () => gap.take(),
	});
	if (isOwn && 'taskId' in ended) paidTasks.note(taskId, ended.state, ended.creditsConsumed);
	return ended;
}

/** @throws ServiceError if the read fails */
async function readTask(
	{ reads, client }: RunContext,
	taskId: string,
	limitMs?: number,
): Promise<TaskRecord> {
	const known = reads.get(taskId);
	if (known) return await known;
	const read = client.readTask(taskId, limitMs);
	reads.set(taskId, read);
	return await read;
}
