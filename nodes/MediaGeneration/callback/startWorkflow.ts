import type { IDataObject, IExecuteFunctions, INode, INodeExecutionData } from 'n8n-workflow';

import { endWithError, modeOf, runningNode } from '../n8n/internals';
import { failedTask, isWithoutResult, missingResults, withoutResult } from '../report/taskErrors';
import { taskJson } from '../report/taskItems';
import type { TaskRecord } from '../service/taskRecord';
import { inTableOrder } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { settled } from '../shared/promises';
import { claimStart } from './ledger';

/** The settings of each trigger whose last try failed, for its next try by *Retry On Fail*. */
const asChosen = new WeakMap<INode, INode>();

/**
 * Starts the workflow for the tasks that the gate admitted, once for each task. A test run always starts, and neither asks
 * the ledger nor writes to it.
 *
 * @returns the items to go on with: none for a task that another execution starts
 * @throws the database's error, whatever *On Error* says
 */
export async function startWorkflow(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	const node = runningNode(context);
	// Otherwise n8n would start the workflow with an empty item for a task that has started it before.
	Object.assign(node, asChosen.get(node), { alwaysOutputData: false });
	const started = await settled(startAll(context));
	if ('value' in started) return [started.value];
	// Otherwise *On Error: Continue* would start the workflow with the callback as it came, although the task may have
	// started the workflow before.
	asChosen.set(node, { ...node });
	endWithError(context);
	throw started.error;
}

async function startAll(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	const isTest = modeOf(context) === 'manual';
	const output: INodeExecutionData[] = [];
	const tasks: TaskRecord[] = [];
	for (const { json } of context.getInputData()) {
		const { taskId, task: admitted, reference } = json;
		if (typeof taskId !== 'string' || !isRecord(admitted)) continue;
		const task = admitted as unknown as TaskRecord;
		const isStart = isTest || (await claimStart(context, taskId));
		if (!isStart) continue;
		tasks.push(task);
		output.push({ json: fieldsOf(task, { reference }) });
	}
	const empty = withoutResult(output.map(({ json }) => json).filter(isWithoutResult));
	for (const message of [empty, missingResults(tasks)]) {
		if (message === undefined) continue;
		context.addExecutionHints({ message, type: 'warning', location: 'outputPane' });
	}
	return output;
}

/** The output fields of a task. Of a failed task they say why and what to do, as those of the action node do. */
function fieldsOf(task: TaskRecord, sent: IDataObject): IDataObject {
	const fields = taskJson(task, sent);
	if (task.state !== 'FAILURE') return inTableOrder(fields);
	const { told: error, description: advice } = failedTask(task, sent);
	return inTableOrder({ ...fields, error, advice });
}
