import type { IDataObject } from 'n8n-workflow';

import { redeliver } from '../callback/redeliver';
import { startAgainHeader, startAgainRun } from '../callback/startAgainHeader';
import { type ReadPlan, referenceOf } from '../plan/planTypes';
import { taskJson } from '../report/taskItems';
import { failedTask, ofTask, pendingJson } from '../report/failedTask';
import type { TaskRecord } from '../service/taskRecord';
import { settled } from '../shared/promises';
import { Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
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
	const firstReadAt = run.gap.take();
	if (item.wait) return await waitForItem(run, item, firstReadAt, firstReadAt + item.timeoutMs);
	const read = await settled(run.reader.read(taskId, firstReadAt));
	if ('error' in read) throw ofTask(read.error, taskId, { taskId });
	const fields = { ...referenceOf(item), ...(await redeliverTask(run, item, read.value)) };
	return async () => await run.reader.output(item, read.value, fields);
}

async function waitForItem(
	run: RunContext,
	item: ReadPlan,
	firstReadAt: number,
	deadline: number,
): Promise<Output | undefined> {
	const { taskId } = item;
	const fields = referenceOf(item);
	const times = { deadline, firstReadAt };
	// A task that this node did not create costs nothing more if nobody waits for it.
	const hooks = { isAbandoned: () => run.isStopping };
	const waited = await settled(run.reader.wait(item, taskId, {}, times, hooks));
	// What was not waited for to its end is no reason why the node stops: the other item is.
	if (run.isStopping) return undefined;
	if ('error' in waited) throw waited.error;
	const task = waited.value;
	if (!('taskId' in task)) {
		const json = pendingJson(taskId, fields);
		const goOn = async () => await waitForItem(run, item, run.gap.take(), deadline);
		run.handedOver.push({ item, json, last: task.last, deadline, goOn });
		return undefined;
	}
	if (task.state === 'FAILURE') throw failedTask(task);
	return async () => await run.reader.output(item, task, fields, deadline);
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
