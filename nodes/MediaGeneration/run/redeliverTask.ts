import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { redeliver } from '../callback/redeliver';
import { startAgainHeader, startAgainRun } from '../callback/startAgain';
import type { ReadPlan } from '../plan/itemPlan';
import { taskJson } from '../report/items';
import type { TaskRecord } from '../service/taskRecord';
import { ItemError } from '../shared/itemError';

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
	const answer = await redeliver(context, task, address, headers);
	if ('refusal' in answer) throw ItemError.from(answer.refusal, taskJson(task));
	const { delivery } = answer;
	return { delivered: true, ...(delivery && { delivery }) };
}
