import type { IDataObject } from 'n8n-workflow';

import type { TaskPlan } from '../plan/planTypes';
import { ofTask, pendingJson, timedOut, taskJson } from '../report/taskItems';
import type { FailedTask, FinishedTask, TaskRecord } from '../service/taskRecord';
import type { ItemError } from '../shared/itemError';
import { settled } from '../shared/promises';
import { pollTask, type Unfinished, type WaitOptions } from '../wait/pollTask';
import type { Output, RunContext } from './runContext';

type Hooks = Pick<WaitOptions, 'firstReadAt' | 'deadline' | 'isAbandoned' | 'onUnfinished'>;

/** How a task is waited for, whose item leaves when it has ended. */
interface Wait extends Hooks {
	taskId: string;
	/** The fields of the item beside those of the task. */
	fields: IDataObject;
	/** What a task comes to that ends in `FAILURE`. */
	failureOf: (task: FailedTask) => ItemError;
}

/** @throws ServiceError where the read brings nothing */
export async function readTask({ reads, client }: RunContext, taskId: string): Promise<TaskRecord> {
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
 * @returns what makes the output items; undefined where none leaves
 * @throws ItemError where the task fails, is not finished in time, or cannot be read
 * @throws Stopped where the execution was stopped
 */
export async function waitForTask(
	run: RunContext,
	item: TaskPlan,
	wait: Wait,
): Promise<Output | undefined> {
	const { taskId, fields, deadline } = wait;
	const { pollIntervalMs, timeoutMs } = item;
	const followed = await settled(followTask(run, taskId, { ...wait, pollIntervalMs }));
	// What was not waited for to its end is no reason why the node stops: the other item is.
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
