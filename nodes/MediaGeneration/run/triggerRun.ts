import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { download } from '../report/download';
import { taskItems, taskJson } from '../report/items';
import { type OutputOptions, readOutputOptions } from '../report/outputOptions';
import { ItemParameters } from '../shared/parameters';
import { isRecord } from '../shared/json';
import { parseTaskRecord, type TaskRecord } from '../service/taskRecord';
import { ItemError } from '../shared/itemError';
import { recordOnce } from '../callback/startedTasks';

/**
 * Starts the workflow for the tasks that the gate admitted, each once.
 *
 * A test run and a retry from the list of executions are meant by whoever starts them, so they pass without a look
 * at the ledger.
 *
 * @returns the items to go on with: none for a task that has started the workflow before
 * @throws NodeOperationError where a result cannot be downloaded, unless the node's *On Error* lets it out
 */
export async function emitTasks(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	const isRepetition = ['manual', 'retry'].includes(context.getMode());
	const parameters = new ItemParameters(context, 0);
	// Read before the ledger is asked: from then on the task counts as started.
	const options = readOutputOptions((name) => parameters.option(name));
	const output: INodeExecutionData[] = [];
	for (const { json } of context.getInputData()) {
		if (typeof json.taskId !== 'string' || !isRecord(json.record)) continue;
		const task = parseTaskRecord(json.taskId, json.record);
		if (!isRepetition && !(await recordOnce(context, task.taskId))) continue;
		// Where the process is killed from here on, n8n keeps nothing of the execution that names the task.
		context.logger.info(
			`${context.getNode().name}: task ${task.taskId} starts the workflow (execution ${context.getExecutionId()})`,
		);
		output.push(...(await itemsOf(context, task, options)));
	}
	return output;
}

async function itemsOf(
	context: IExecuteFunctions,
	task: TaskRecord,
	options: OutputOptions,
): Promise<INodeExecutionData[]> {
	const json = taskJson(task);
	if (!options.download || task.state !== 'SUCCESS') {
		return taskItems(task, json, options, undefined, undefined);
	}
	try {
		const downloads = await download(context, task.resultUrls, task.taskId);
		return taskItems(task, json, options, downloads, undefined);
	} catch (error) {
		const failed = ItemError.from(error, json);
		const node = context.getNode();
		if (!context.continueOnFail()) throw failed.toNodeError(node, 0);
		return [failed.toItem(node)];
	}
}
