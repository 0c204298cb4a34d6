import type { INode, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { CreatedTaskList } from '../report/createdTaskList';
import { Downloader } from '../report/download';
import { describeStop, type IfSomeFail, stoppingItem } from '../report/failures';
import { withInput } from '../report/includedInput';
import { taskJson } from '../report/items';
import { NOT_KNOWN } from '../report/outcome';
import { parseTaskRecord } from '../service/taskRecord';
import { settled } from '../shared/concurrency';
import { ItemError } from '../shared/itemError';
import { doneItems, type ResultsCheck, type SuspendedItem } from './checkState';
import { giveUp } from './checkTasks';

/** The output of a suspended run as far as it is known now: each unfinished task counts as one whose time is up. */
export async function presentResults(
	context: IExecuteFunctions,
	state: ResultsCheck,
): Promise<INodeExecutionData[]> {
	// Without the files of the input: n8n makes copies of them whenever the supervisor is suspended.
	const items = giveUp(state, Infinity).items.map((item) => ({
		...item,
		...(item.input && { input: { json: item.input.json } }),
	}));
	const output = { ...state.output, download: false };
	const present = { ...state, onError: 'continueRegularOutput', output, items };
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
	const ifSomeFail: IfSomeFail = state.ifSomeFail === 'stop' ? 'stop' : 'keep';
	const ends = results.map((result) => (result instanceof ItemError ? result : [result]));
	// n8n's Retry On Fail does not try a suspended node again.
	const rule = { ifSomeFail, continues: continues(state), triesLeft: false };
	const stopping = stoppingItem(ends, rule);
	if (stopping === undefined) return doneItems(itemsOf(context, results, state));
	const created = new CreatedTaskList([]);
	const unanswered: number[] = [];
	for (const [index, { item, json, failure }] of state.items.entries()) {
		const { taskId } = json;
		for (const failed of Array.isArray(json.failedTaskIds) ? json.failedTaskIds : []) {
			created.add(String(failed));
			created.note(String(failed), 'FAILURE');
		}
		if (typeof taskId !== 'string') {
			if (failure?.message.startsWith(NOT_KNOWN)) unanswered.push(item);
			continue;
		}
		created.add(taskId);
		const result = results[index];
		const known = result instanceof ItemError ? result.task : result?.json;
		if (typeof known?.state === 'string') created.note(taskId, known.state, known.creditsConsumed);
	}
	const error = ItemError.from(results[stopping]);
	return doneItems([], {
		message: error.message,
		description: describeStop(error, created.describe(unanswered)) ?? '',
		itemIndex: state.items[stopping]?.item ?? 0,
	});
}

const continues = ({ onError }: ResultsCheck) =>
	onError === 'continueRegularOutput' || onError === 'continueErrorOutput';

type Result = INodeExecutionData | ItemError;

function itemsOf(
	context: IExecuteFunctions,
	results: readonly Result[],
	state: ResultsCheck,
): INodeExecutionData[] {
	// The node that waits decides what becomes of failed items, and not the node that checks.
	const node: INode = {
		...context.getNode(),
		name: state.nodeName,
		onError: continues(state) ? (state.onError as INode['onError']) : 'continueRegularOutput',
	};
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
	for (const item of state.items) results.push(await resultOf(downloader, item, state));
	return results;
}

async function resultOf(
	downloader: Downloader,
	{ item, json, binary, record, failure }: SuspendedItem,
	{ output }: ResultsCheck,
): Promise<Result> {
	const pairedItem = { item };
	if (failure !== undefined) return new ItemError(failure.message, { ...failure, task: json });
	if (record === undefined) return { json, ...(binary && { binary }), pairedItem };
	const task = parseTaskRecord(String(json.taskId), record);
	const fields = { ...json, ...taskJson(task) };
	const options = { ...output, split: false };
	const made = await settled(downloader.itemsOf(task, fields, options, pairedItem));
	if ('error' in made) return ItemError.from(made.error);
	return made.value[0] ?? { json: fields, pairedItem };
}
