import type { INode, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { CreatedTaskList } from '../report/createdTaskList';
import { download } from '../report/download';
import { describeStop, type IfSomeFail, stoppingItem } from '../report/failures';
import { taskItems, taskJson } from '../report/items';
import { failedTask } from '../report/outcome';
import { parseTaskRecord, type TaskRecord } from '../service/taskRecord';
import { ItemError } from '../shared/itemError';
import { doneItems, type ResultsWatch, type WatchedItem } from '../wait/watchState';

/** The output of a run that was suspended, as far as it is known without reading a task. */
export async function pendingResults(
	context: IExecuteFunctions,
	state: ResultsWatch,
): Promise<INodeExecutionData[]> {
	const output = { ...state.output, download: false };
	const items = state.items.map((item) => ({ ...item, timedOut: item.waitsFor !== undefined }));
	const pending = { ...state, onError: 'continueRegularOutput', output, items };
	return itemsOf(context, await resultsOf(context, pending), pending);
}

/**
 * The output of a run that was suspended: one item for each input item, in order, so that n8n links them rightly; or
 * why the node that waits is to fail.
 */
export async function watchedResults(
	context: IExecuteFunctions,
	state: ResultsWatch,
): Promise<INodeExecutionData[]> {
	const results = await resultsOf(context, state);
	const ifSomeFail: IfSomeFail = state.ifSomeFail === 'stop' ? 'stop' : 'keep';
	const ends = results.map((result) => (result instanceof ItemError ? result : [result]));
	// n8n's Retry On Fail does not try a suspended node again.
	const rule = { ifSomeFail, continues: continues(state), triesLeft: false };
	const stopping = stoppingItem(ends, rule);
	if (stopping === undefined) return doneItems(itemsOf(context, results, state));
	const created = new CreatedTaskList([]);
	for (const [index, { taskId }] of state.items.entries()) {
		if (taskId === undefined) continue;
		created.add(taskId);
		const result = results[index];
		const known = result instanceof ItemError ? result.task : result?.json;
		if (typeof known?.state === 'string') created.note(taskId, known.state, known.creditsConsumed);
	}
	const error = ItemError.from(results[stopping]);
	return doneItems([], {
		message: error.message,
		description: describeStop(error, created.describe()) ?? '',
		itemIndex: stopping,
	});
}

const continues = ({ onError }: ResultsWatch) =>
	onError === 'continueRegularOutput' || onError === 'continueErrorOutput';

type Result = INodeExecutionData | ItemError;

function itemsOf(
	context: IExecuteFunctions,
	results: readonly Result[],
	state: ResultsWatch,
): INodeExecutionData[] {
	// The node that waits decides what becomes of failed items, and not the one that looks.
	const node: INode = {
		...context.getNode(),
		name: state.nodeName,
		onError: continues(state) ? (state.onError as INode['onError']) : 'continueRegularOutput',
	};
	return results.map((result, item) =>
		// Nothing but what n8n stores: the item is shown to the node that waits when it comes out of the database.
		result instanceof ItemError ? { ...result.toItem(node), pairedItem: { item } } : result,
	);
}

async function resultsOf(context: IExecuteFunctions, state: ResultsWatch): Promise<Result[]> {
	const results: Result[] = [];
	// One after the other, so that no download takes another's bandwidth while n8n serves its users.
	for (const item of state.items) results.push(await resultOf(context, item, state));
	return results;
}

async function resultOf(
	context: IExecuteFunctions,
	{ item, json, taskId, record, failure, timedOut }: WatchedItem,
	{ output }: ResultsWatch,
): Promise<Result> {
	const pairedItem = { item };
	if (failure !== undefined) return new ItemError(failure.message, { ...failure, task: json });
	if (taskId === undefined) return { json, pairedItem };
	if (record === undefined) return { json: { ...json, timedOut: true }, pairedItem };
	let fields = json;
	try {
		const task: TaskRecord = parseTaskRecord(taskId, record);
		fields = { ...json, ...taskJson(task), ...(timedOut && { timedOut }) };
		if (task.state === 'FAILURE') return ItemError.from(failedTask(task), fields);
		const downloads =
			output.download && task.state === 'SUCCESS'
				? await download(context, task.resultUrls, taskId)
				: undefined;
		const [result] = taskItems(task, fields, { ...output, split: false }, downloads, pairedItem);
		return result ?? { json: fields, pairedItem };
	} catch (error) {
		return ItemError.from(error, fields);
	}
}
