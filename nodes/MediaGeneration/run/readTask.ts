import type { IDataObject } from 'n8n-workflow';

import { startAgainHeader, startAgainRun } from '../callback/callbackToken';
import { redeliver } from '../callback/redeliver';
import { type ReadPlan, referenceOf, type TaskPlan } from '../plan/planTypes';
import { failedTask, ofTask, timedOut } from '../report/taskErrors';
import { pendingJson, taskJson } from '../report/taskItems';
import type { FailedTask, FinishedTask, TaskRecord } from '../service/taskRecord';
import { sleepUntil, Stopped } from '../shared/clock';
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
		const deadline = firstReadAt + item.timeoutMs;
		return await waitForTask(run, item, {
			...{ taskId, fields, firstReadAt, deadline },
			// A task that this node did not create costs nothing more if nobody waits for it.
			isAbandoned: () => run.isStopping,
			failureOf: failedTask,
		});
	}
	await sleepUntil(firstReadAt, run.clock, run.signal);
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
 * @throws ItemError if the trigger does not take the callback
 * @throws Stopped if the execution was stopped
 */
async function redeliverTask(
	{ context, apiKey }: RunContext,
	{ redeliverTo, startAgain }: ReadPlan,
	task: TaskRecord,
): Promise<IDataObject> {
	if (redeliverTo === undefined) return {};
	if (task.state === 'PENDING') return { delivered: false };
	const subject = { path: new URL(redeliverTo).pathname, taskId: task.taskId, apiKey };
	const headers = startAgain ? startAgainHeader(subject, startAgainRun(context)) : {};
	const sent = await settled(redeliver(context, task, redeliverTo, headers));
	if ('value' in sent) return { delivered: true, ...(sent.value && { delivery: sent.value }) };
	throw sent.error instanceof Stopped ? sent.error : ItemError.from(sent.error, taskJson(task));
}

type Hooks = Pick<WaitOptions, 'firstReadAt' | 'deadline' | 'isAbandoned' | 'onUnfinished'>;

/** How to wait for a task whose item leaves when the task has ended. */
interface Wait extends Hooks {
	taskId: string;
	/** The fields of the item that do not come from the task's record. */
	fields: IDataObject;
	/** The error of the item if the task ends in `FAILURE`. */
	failureOf: (task: FailedTask) => ItemError;
}

/** @throws ServiceError if the read fails */
async function readTask({ reads, client }: RunContext, taskId: string): Promise<TaskRecord> {
	const known = reads.get(taskId);
	if (known) return await known;
	const read = client.readTask(taskId);
	reads.set(taskId, read);
	return await read;
}

/** Reads a task until it is finished, its time is up, or it is handed over; see `pollTask`. */
export async function followTask(
	run: RunContext,
	taskId: string,
	options: Hooks & Pick<WaitOptions, 'pollIntervalMs'>,
): Promise<FinishedTask | Unfinished> {
	const { clock, signal, suspendAfter, paidTasks, gap } = run;
	const isOwn = paidTasks.has(taskId);
	const ended = await pollTask({
		...options,
		...{ clock, signal, suspendAfter, isOwn },
		read: async () => await readTask(run, taskId),
		nextSlot: () => gap.take(),
	});
	if (isOwn && 'taskId' in ended) paidTasks.note(taskId, ended.state, ended.creditsConsumed);
	return ended;
}

/**
 * Waits until a task is finished, or hands it over.
 *
 * @returns what makes the output items; undefined if none leaves
 * @throws ItemError if the task fails, is not finished in time, or cannot be read
 * @throws Stopped if the execution was stopped
 */
export async function waitForTask(
	run: RunContext,
	item: TaskPlan,
	wait: Wait,
): Promise<Output | undefined> {
	const { taskId, fields, deadline } = wait;
	const { pollIntervalMs, timeoutMs } = item;
	const followed = await settled(followTask(run, taskId, { ...wait, pollIntervalMs }));
	// The node stops because of another item, so this item has no error.
	if (wait.isAbandoned?.()) return undefined;
	const json = pendingJson(taskId, fields);
	if ('error' in followed) throw ofTask(followed.error, taskId, json);
	const task = followed.value;
	if ('taskId' in task) {
		if (task.state === 'FAILURE') throw wait.failureOf(task);
		const output = taskJson(task, fields);
		return async () => await run.downloader.itemsOf(task, output, item, deadline);
	}
	if (!task.isHandedOver) throw timedOut(taskId, timeoutMs, task, json);
	const { last, notBefore, due } = task;
	const goOn = async () => {
		const firstReadAt = Math.max(run.gap.take(), due);
		return await waitForTask(run, item, { ...wait, firstReadAt });
	};
	run.handedOver.push({ item, json, last, deadline, notBefore, goOn });
	return undefined;
}
