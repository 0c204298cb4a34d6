import type { IDataObject } from 'n8n-workflow';

import { redeliver } from '../callback/redeliver';
import { startAgainHeader, startAgainRun } from '../callback/callbackToken';
import { type ReadPlan, referenceOf } from '../plan/planTypes';
import { taskJson, failedTask, ofTask } from '../report/taskItems';
import type { TaskRecord } from '../service/taskRecord';
import { settled } from '../shared/promises';
import { sleepUntil, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { readTask, waitForTask } from './followTask';
import type { Output, RunContext } from './runContext';

/**
 * The way of an item that names a task which exists already: the task is read, or waited for, and put out.
 *
 * @returns what makes the output items; undefined where none leaves
 * @throws ItemError, ServiceError where the item fails
 * @throws Stopped where the execution was stopped
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
 * Sends a task's callback to its trigger once more, where that is asked for and the task is finished.
 *
 * @returns the fields `delivered` and `delivery`
 * @throws ItemError where the trigger does not take it
 * @throws Stopped where the execution was stopped
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
