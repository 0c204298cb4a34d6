import type { INode, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { PaidTaskList } from '../report/paidTaskList';
import { Downloader } from '../report/download';
import { describeStop, stoppingItem } from '../report/ifSomeFail';
import { withInput } from '../report/includeInput';
import { taskJson } from '../report/taskItems';
import { NOT_KNOWN } from '../report/failedTask';
import { parseTaskRecord } from '../service/taskRecord';
import { settled } from '../shared/promises';
import { ItemError } from '../shared/itemError';
import { doneItems, type ResultsCheck, type SuspendedItem } from './checkState';
import { failedTaskIds, giveUp } from './checkForResults';

/** The output of a suspended run as far as it is known now: each unfinished task counts as one whose time is up. */
export async function presentResults(
	context: IExecuteFunctions,
	state: ResultsCheck,
): Promise<INodeExecutionData[]> {
	// Without the files of the input: n8n makes copies of them whenever the supervisor is suspended.
	const items = giveUp(state, Infinity).items.map((item) => ({
		...item,
		...(item.input && { input: { json: item.input.json } }),
		...(item.output && { output: { ...item.output, download: false } }),
	}));
	const present: ResultsCheck = { ...state, onError: 'continueRegularOutput', items };
	return itemsOf(context, await resultsOf(context, present), present);
}

/**
 * The output of a run that was suspended: one item for each input item, in order, so that n8n links them rightly; or
 * why the node that waits is to fail.
 */
export async function finalResults(
	context: IExecuteFunctions,
	state: ResultsCheck,
): Promise<INodeExecutionData[]> {
	const results = await resultsOf(context, state);
	const ends = results.map((result) => (result instanceof ItemError ? result : [result]));
	// n8n's Retry On Fail does not try a suspended node again.
	const continues = state.onError !== 'stopWorkflow';
	const stopping = stoppingItem(ends, { ...state, continues, triesLeft: false });
	if (stopping === undefined) return doneItems(itemsOf(context, results, state));
	const error = ItemError.from(results[stopping]);
	return doneItems([], {
		message: error.message,
		description: describeStop(error, paidFor(state, results)),
		itemIndex: state.items[stopping]?.item ?? 0,
	});
}

/** What is paid for, or may be. */
function paidFor({ items }: ResultsCheck, results: readonly Result[]): string | undefined {
	const failed = items.flatMap(failedTaskIds);
	const created = new PaidTaskList(failed, failed);
	for (const result of results) {
		const { taskId, state, creditsConsumed } =
			result instanceof ItemError ? result.task : result.json;
		if (typeof taskId !== 'string') continue;
		created.add(taskId);
		created.note(taskId, String(state ?? 'PENDING'), creditsConsumed);
	}
	const unanswered = items.filter(({ failure }) => failure?.message.startsWith(NOT_KNOWN));
	return created.describe(unanswered.map(({ item }) => item));
}

type Result = INodeExecutionData | ItemError;

function itemsOf(
	context: IExecuteFunctions,
	results: readonly Result[],
	state: ResultsCheck,
): INodeExecutionData[] {
	// The node that waits decides what becomes of failed items, and not the node that checks.
	const { nodeName: name, onError } = state;
	const node: INode = { ...context.getNode(), name, onError };
	return results.map((result, item) => {
		// Nothing but what n8n stores: the item is shown to the node that waits when it comes out of the database.
		const isError = result instanceof ItemError;
		const left = isError ? { ...result.toItem(node), pairedItem: { item } } : result;
		return withInput(left, state.items[item]?.input, node.onError);
	});
}

async function resultsOf(context: IExecuteFunctions, state: ResultsCheck): Promise<Result[]> {
	const results: Result[] = [];
	// One after the other, so that no download takes another's bandwidth while n8n serves its users.
	const downloader = new Downloader(context);
	for (const item of state.items) results.push(await resultOf(downloader, item));
	return results;
}

async function resultOf(
	downloader: Downloader,
	{ item, json, binary, record, output, failure }: SuspendedItem,
): Promise<Result> {
	const pairedItem = { item };
	if (failure !== undefined) return new ItemError(failure.message, { ...failure, task: json });
	if (record === undefined || output === undefined) {
		return { json, ...(binary && { binary }), pairedItem };
	}
	const task = parseTaskRecord(String(json.taskId), record);
	const fields = { ...json, ...taskJson(task) };
	const made = await settled(downloader.itemsOf(task, fields, output, pairedItem));
	if ('error' in made) return ItemError.from(made.error);
	return made.value[0] ?? { json: fields, pairedItem };
}
