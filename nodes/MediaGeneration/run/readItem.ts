import { type ReadPlan, referenceOf } from '../plan/taskPlan';
import { failedTask, ofTask, pendingJson } from '../report/outcome';
import { settled } from '../shared/concurrency';
import { Stopped } from '../shared/clock';
import { leavesNothing, type Output, type RunParts } from './runParts';
import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';
import { redeliver } from '../callback/redeliver';
import { startAgainHeader, startAgainRun } from '../callback/startAgain';
import { taskJson } from '../report/items';
import type { TaskRecord } from '../service/taskRecord';
import { ItemError } from '../shared/itemError';

/**
 * The way of an item that names a task which exists already: the task is read, or waited for, and put out.
 *
 * @returns what makes the output items
 * @throws ItemError, ServiceError where the item fails
 * @throws Stopped where the execution was stopped
 */
export async function readItem(parts: RunParts, item: ReadPlan): Promise<Output> {
	const { taskId, redeliverTo } = item;
	const { reader, slots, context, apiKey } = parts;
	const firstReadAt = slots.requestSlot();
	if (item.wait) return await awaitTask(parts, item, firstReadAt, firstReadAt + item.timeoutMs);
	const read = await settled(async () => await reader.read(taskId, firstReadAt));
	if ('error' in read) throw ofTask(read.error, taskId, { taskId });
	const task = read.value;
	const fields = {
		...referenceOf(item),
		...(redeliverTo !== undefined &&
			(await redeliverTask(context, item, task, redeliverTo, apiKey))),
	};
	return async () => await reader.output(item, task, fields);
}

async function awaitTask(
	parts: RunParts,
	item: ReadPlan,
	firstReadAt: number,
	deadline: number,
): Promise<Output> {
	const { taskId } = item;
	const { reader, slots, isStopping } = parts;
	const fields = referenceOf(item);
	const times = { deadline, firstReadAt };
	const waited = await settled(
		// A task that this node did not create costs nothing more if nobody waits for it.
		async () => await reader.wait(item, taskId, {}, times, isStopping),
	);
	// What was not waited for to its end is no reason why the node stops: the other item is.
	if (isStopping()) return leavesNothing;
	if ('error' in waited) throw waited.error;
	const task = waited.value;
	if (!('taskId' in task)) {
		const json = pendingJson(taskId, fields);
		const goOn = async () => await awaitTask(parts, item, slots.requestSlot(), deadline);
		return parts.handOver({ item, json, last: task.last, deadline, goOn });
	}
	if (task.state === 'FAILURE') throw failedTask(task);
	return async () => await reader.output(item, task, fields, deadline);
}

/**
 * Sends a task's callback to its trigger once more, where the task is finished.
 *
 * @param apiKey signs the request to start again, if that is what it is
 * @returns the fields `delivered` and `delivery`
 * @throws ItemError where the trigger does not take it
 * @throws Stopped where the execution was stopped
 */
export async function redeliverTask(
	context: IExecuteFunctions,
	{ startAgain }: ReadPlan,
	task: TaskRecord,
	address: string,
	apiKey: string,
): Promise<IDataObject> {
	if (task.state === 'PENDING') return { delivered: false };
	const subject = { path: new URL(address).pathname, taskId: task.taskId, apiKey };
	const headers = startAgain ? startAgainHeader(subject, startAgainRun(context)) : {};
	const sent = await settled(async () => await redeliver(context, task, address, headers));
	if ('error' in sent) {
		throw sent.error instanceof Stopped ? sent.error : ItemError.from(sent.error, taskJson(task));
	}
	return { delivered: true, ...(sent.value && { delivery: sent.value }) };
}
