import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { Downloader, TRIGGER_TRY_MS } from '../report/download';
import { taskJson, type OutputOptions, readOutputOptions } from '../report/taskItems';
import { ItemParameters } from '../shared/parameters';
import { isRecord } from '../shared/json';
import { parseTaskRecord, type TaskRecord } from '../service/taskRecord';
import { systemClock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { mayStart } from '../callback/startOnce';
import { settled } from '../shared/promises';

/**
 * Starts the workflow for the tasks that the gate admitted, each once.
 *
 * A test run is meant by whoever starts it, so it neither asks the ledger nor leaves anything there.
 *
 * @returns the items to go on with: none for a task that another execution has started with
 * @throws NodeOperationError where a result cannot be downloaded, unless the node's *On Error* lets it out; the database's
 *   error, whatever *On Error* says
 */
export async function emitTasks(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	const { node } = context.getExecuteData();
	// n8n would start the workflow with an empty item for a task that has started it before.
	node.alwaysOutputData = false;
	const emitted = await settled(itemsToStart(context));
	if ('value' in emitted) return emitted.value;
	// n8n would start the workflow with the callback as it came, though nobody knows whether the task has started it.
	Object.assign(node, { onError: 'stopWorkflow', continueOnFail: false });
	throw emitted.error;
}

async function itemsToStart(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	const isTest = context.getMode() === 'manual';
	const parameters = new ItemParameters(context, 0);
	// Read before the ledger is asked: from then on the task counts as started.
	const options = readOutputOptions(parameters);
	const output: INodeExecutionData[] = [];
	for (const { json } of context.getInputData()) {
		if (typeof json.taskId !== 'string' || !isRecord(json.record)) continue;
		const task = parseTaskRecord(json.taskId, json.record);
		if (!isTest && !(await isToStart(context, task.taskId, json))) continue;
		// Where the process is killed from here on, n8n keeps nothing of the execution that names the task.
		context.logger.info(
			`${context.getNode().name}: task ${task.taskId} starts the workflow (execution ${context.getExecutionId()})`,
		);
		output.push(...(await itemsOf(context, task, json.reference, options)));
	}
	return output;
}

/** @param json as the gate admitted it */
async function isToStart(
	context: IExecuteFunctions,
	taskId: string,
	{ account, startAgain, callbackId }: IDataObject,
): Promise<boolean> {
	const start = { account: String(account), taskId };
	const isFirst = await mayStart(context, start, String(callbackId));
	// By now there is a row either way, so that the task's callback, should it come at last, starts nothing.
	if (typeof startAgain !== 'string') return isFirst;
	return await mayStart(context, { ...start, startAgain }, String(callbackId));
}

async function itemsOf(
	context: IExecuteFunctions,
	task: TaskRecord,
	reference: unknown,
	options: OutputOptions,
): Promise<INodeExecutionData[]> {
	const json = taskJson(task, typeof reference === 'string' ? { reference } : {});
	const downloader = new Downloader(context, systemClock, TRIGGER_TRY_MS);
	try {
		return await downloader.itemsOf(task, json, { output: options });
	} catch (error) {
		const failed = ItemError.from(error);
		const node = context.getNode();
		if (!context.continueOnFail()) throw failed.toNodeError(node, 0);
		return [failed.toItem(node)];
	}
}
