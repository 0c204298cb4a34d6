import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { PaidTaskList } from '../report/paidTaskList';
import { Downloader } from '../report/download';
import { describeStop, stoppingItem } from '../report/ifSomeFail';
import { outputItems } from '../report/includeInput';
import { taskJson } from '../report/taskItems';
import { type ItemResult, NOT_KNOWN } from '../report/failedTask';
import { parseTaskRecord } from '../service/taskRecord';
import { settled } from '../shared/promises';
import { inTableOrder, ItemError } from '../shared/itemError';
import { doneItems, type ResultsCheck, type SuspendedItem } from './checkState';
import { failedTaskIds } from './checkForResults';

/** An item as far as it is known now: an unfinished task counts as one whose time is up. */
export function presentItem(suspended: SuspendedItem): INodeExecutionData {
	const { item, json, binary, record, waits, failure } = suspended;
	const fields = {
		...json,
		...(record && taskJson(parseTaskRecord(String(json.taskId), record))),
		...(waits && { timedOut: true }),
		...(failure && { error: failure.message }),
	};
	return { json: inTableOrder(fields), ...(binary && { binary }), pairedItem: { item } };
}

/**
 * The output of a run that was suspended: one item for each input item, in order, so that n8n links them rightly; or
 * why the node that waits is to fail.
 */
export async function finalResults(
	context: IExecuteFunctions,
	state: ResultsCheck,
): Promise<INodeExecutionData[]> {
	const results: ItemResult[] = [];
	// One after the other, so that no download takes another's bandwidth while n8n serves its users.
	const downloader = new Downloader(context);
	for (const item of state.items) results.push(await resultOf(downloader, item));
	// n8n's Retry On Fail does not try a suspended node again.
	const continues = state.onError !== 'stopWorkflow';
	const stopping = stoppingItem(results, { ...state, continues, triesLeft: false });
	if (stopping === undefined) {
		// The node that waits decides what becomes of failed items, and not the node that checks.
		const node = { ...context.getNode(), name: state.nodeName, onError: state.onError };
		// Copies have nothing but what n8n stores: of an `error` beside `json` n8n would make the item.
		return doneItems(outputItems(node, results, state.items).map((item) => ({ ...item })));
	}
	const error = ItemError.from(results[stopping]);
	const description = describeStop(error, paidFor(state, results));
	const itemIndex = state.items[stopping]?.item ?? 0;
	return doneItems([], { message: error.message, description, itemIndex });
}

/** What is paid for, or may be. */
function paidFor({ items }: ResultsCheck, results: readonly ItemResult[]): string | undefined {
	const failed = items.flatMap(failedTaskIds);
	const created = new PaidTaskList(failed, failed);
	for (const result of results) {
		const known = result instanceof ItemError ? result.task : result[0]?.json;
		if (typeof known?.taskId !== 'string') continue;
		created.note(known.taskId, String(known.state ?? 'PENDING'), known.creditsConsumed);
	}
	const unanswered = items.filter(({ failure }) => failure?.message.startsWith(NOT_KNOWN));
	return created.describe(unanswered.map(({ item }) => item));
}

async function resultOf(
	downloader: Downloader,
	{ item, json, binary, record, output, failure }: SuspendedItem,
): Promise<ItemResult> {
	const pairedItem = { item };
	if (failure) return new ItemError(failure.message, { ...failure, task: json });
	if (!record || !output) return [{ json, ...(binary && { binary }), pairedItem }];
	const task = parseTaskRecord(String(json.taskId), record);
	const fields = { ...json, ...taskJson(task) };
	const made = await settled(downloader.itemsOf(task, fields, { output, itemIndex: item }));
	return 'value' in made ? made.value : ItemError.from(made.error);
}
