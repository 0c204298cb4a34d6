import type { INode, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { download } from '../report/download';
import { taskItems, taskJson } from '../report/items';
import { failedTask } from '../report/outcome';
import { parseTaskRecord, type TaskRecord } from '../service/taskRecord';
import { ItemError } from '../shared/itemError';
import type { ResultsWatch, WatchedItem } from '../wait/watchState';

/**
 * The output of a run that was suspended: one item for each input item, in order, so that n8n links them rightly.
 *
 * @throws NodeApiError, NodeOperationError where the node is to stop: n8n hands it to the node that waits
 */
export async function watchedResults(
	context: IExecuteFunctions,
	state: ResultsWatch,
): Promise<INodeExecutionData[]> {
	const results: Array<INodeExecutionData | ItemError> = [];
	// One after the other, so that no download takes another's bandwidth while n8n serves its users.
	for (const item of state.items) results.push(await resultOf(context, item, state));
	const goesOn =
		state.onError === 'continueRegularOutput' || state.onError === 'continueErrorOutput';
	const failed = results.filter((result) => result instanceof ItemError);
	const [first] = failed;
	const isStopped = state.ifSomeFail === 'stop' || failed.length === results.length;
	if (first !== undefined && !goesOn && isStopped) {
		const ids = state.items.flatMap(({ taskId }) => taskId ?? []);
		const description = [
			first.description,
			ids.length > 0 && `Tasks of this run: ${ids.join(', ')}.`,
		];
		throw first.toNodeError(
			context.getNode(),
			results.indexOf(first),
			description.filter(Boolean).join('\n\n'),
		);
	}
	// The node that waits decides what becomes of failed items, and not the one that looks.
	const node: INode = {
		...context.getNode(),
		name: state.nodeName,
		onError: goesOn ? (state.onError as INode['onError']) : 'continueRegularOutput',
	};
	return results.map((result, item) =>
		// Nothing but what n8n stores: the item is shown to the node that waits when it comes out of the database.
		result instanceof ItemError ? { ...result.toItem(node), pairedItem: { item } } : result,
	);
}

async function resultOf(
	context: IExecuteFunctions,
	{ item, json, taskId, record, failure, timedOut }: WatchedItem,
	{ output }: ResultsWatch,
): Promise<INodeExecutionData | ItemError> {
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
