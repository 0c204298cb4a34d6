import type { IDataObject, INode, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { CreatedTaskList } from '../report/createdTaskList';
import { Downloader } from '../report/download';
import { describeStop, type IfSomeFail, stoppingItem } from '../report/failures';
import { withInput } from '../report/includedInput';
import { taskItems, taskJson } from '../report/items';
import { failedInAll, failedTask, NOT_KNOWN, timedOut } from '../report/outcome';
import { parseTaskRecord, type TaskRecord } from '../service/taskRecord';
import { settled } from '../shared/concurrency';
import { ItemError } from '../shared/itemError';
import { doneItems, type ResultsCheck, type SuspendedItem } from './checkState';

/** The output of a suspended run as far as it is known now: each unfinished task counts as one whose time is up. */
export async function presentResults(
	context: IExecuteFunctions,
	state: ResultsCheck,
): Promise<INodeExecutionData[]> {
	const output = { ...state.output, download: false };
	const items = state.items.map(({ waitsFor, input, ...item }) => ({
		...item,
		// Without its files: of these n8n makes copies whenever the supervisor is suspended.
		...(input && { input: { json: input.json } }),
		...(waitsFor && { timedOutAfterMs: waitsFor.timeoutMs }),
	}));
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
	for (const [index, { item, taskId, json, failure }] of state.items.entries()) {
		for (const failed of Array.isArray(json.failedTaskIds) ? json.failedTaskIds : []) {
			created.add(String(failed));
			created.note(String(failed), 'FAILURE');
		}
		if (taskId === undefined && failure?.message.startsWith(NOT_KNOWN)) unanswered.push(item);
		if (taskId === undefined) continue;
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
	{ item, json, binary, taskId, record, failure, timedOutAfterMs }: SuspendedItem,
	{ output }: ResultsCheck,
): Promise<Result> {
	const pairedItem = { item };
	if (failure !== undefined) return new ItemError(failure.message, { ...failure, task: json });
	const read = await settled(async () =>
		taskId === undefined || record === undefined ? undefined : parseTaskRecord(taskId, record),
	);
	if ('error' in read) return ItemError.from(read.error, json);
	const task: TaskRecord | undefined = read.value;
	if (timedOutAfterMs !== undefined && task?.state !== 'SUCCESS' && task?.state !== 'FAILURE') {
		return timedOut(taskId ?? '', timedOutAfterMs, { last: task }, json);
	}
	if (task === undefined) return { json, ...(binary && { binary }), pairedItem };
	const fields = { ...json, ...taskJson(task) };
	if (task.state === 'FAILURE') return ItemError.from(failedTask(task, {}, retryOf(json)), fields);
	const made = await settled(async () => {
		const downloads =
			output.download && task.state === 'SUCCESS'
				? await downloader.download(task.resultUrls, task.taskId)
				: undefined;
		return taskItems(task, fields, { ...output, split: false }, downloads, pairedItem);
	});
	if ('error' in made) return ItemError.from(made.error, fields);
	return made.value[0] ?? { json: fields, pairedItem };
}

/** An item that creates its task has a model, and its earlier tasks were created before the run was suspended. */
function retryOf({ model, failedTaskIds }: IDataObject): string | undefined {
	if (model === undefined) return undefined;
	return failedInAll(1 + (Array.isArray(failedTaskIds) ? failedTaskIds.length : 0));
}
