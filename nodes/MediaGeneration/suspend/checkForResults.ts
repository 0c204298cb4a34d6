import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { Downloader } from '../report/download';
import { describeStop, stoppingItem } from '../report/ifSomeFail';
import { outputItems } from '../report/includeInput';
import { PaidTaskList } from '../report/paidTaskList';
import { failedInAll, failedTask, NOT_KNOWN, ofTask, timedOut } from '../report/taskErrors';
import { type ItemResult, taskJson } from '../report/taskItems';
import { MAX_UNLUCKY_ANSWERS } from '../service/client';
import { ServiceError } from '../service/serviceError';
import { parseTaskRecord, type TaskRecord } from '../service/taskRecord';
import { inTableOrder, ItemError, messageOf } from '../shared/itemError';
import { without } from '../shared/json';
import { settled } from '../shared/promises';
import { afterPause, LAST_CHECKS_MS, walk } from './checkSchedule';
import { doneItems, type ResultsCheck, type SuspendedItem } from './checkState';

/**
 * One check for the results of a suspended run. The run goes on when all tasks are finished, so an unfinished task ends
 * the check: most checks cost one read, and each task is read about once after it is finished.
 *
 * @param now when the check begins, milliseconds since 1970
 * @returns the state after the check. An item that could not be read stays as it is, even if its time is up
 * @see specification, section 4.2
 */
export async function checkResults(
	state: ResultsCheck,
	read: (taskId: string) => Promise<TaskRecord>,
	now: number,
): Promise<ResultsCheck> {
	const items = [...state.items];
	let isEnough = false;
	// Several items may name one task.
	const answers = new Map<string, Promise<TaskRecord>>();
	const readOne = async ([index, item]: [number, SuspendedItem]) => {
		const taskId = taskIdOf(item);
		const answer = answers.get(taskId) ?? read(taskId);
		answers.set(taskId, answer);
		const ended = await settled(answer);
		if ('error' in ended) {
			items[index] = afterError(item, ended.error, now);
			return ended.error;
		}
		items[index] = afterRead(without(without(item, 'missed'), 'trouble'), ended.value);
		isEnough ||= ended.value.state === 'PENDING' && !isExpired(item, now);
		return undefined;
	};
	const waiting = [...items.entries()].filter(([, { waits }]) => waits);
	// Tasks that could not be read come last: the trouble may be that of one task.
	waiting.sort(([, one], [, other]) => Number('trouble' in one) - Number('trouble' in other));
	const expired = waiting.filter(([, item]) => isExpired(item, now));
	const others = waiting.filter(([, item]) => !isExpired(item, now));
	// The time of these tasks is up, so each is read once more, even if another is unfinished.
	const lastPauseMs = await walk(expired, readOne, { isLast: true });
	const pauseMs = lastPauseMs || (await walk(others, readOne, { isEnough: () => isEnough }));
	return afterPause({ ...state, items }, pauseMs);
}

const isOfOneTask = (error: unknown) => error instanceof ServiceError && error.isOfOneTask;

function afterRead(item: SuspendedItem, task: TaskRecord): SuspendedItem {
	const { record, state } = task;
	if (state === 'PENDING') return { ...item, record };
	if (state === 'SUCCESS') return { ...without(item, 'waits'), record };
	const { json } = item;
	// Only an item that creates its task has a model. Its failed tasks were created before the run was suspended.
	const retry = json.model === undefined ? undefined : failedInAll(1 + failedTaskIds(item).length);
	return failedItem(item, ItemError.from(failedTask(task, {}, retry), json));
}

/** The tasks of an item that failed before the run was suspended. */
const failedTaskIds = ({ json }: SuspendedItem): string[] =>
	Array.isArray(json.failedTaskIds) ? json.failedTaskIds.map(String) : [];

export function failedItem(
	{ item, input }: Pick<SuspendedItem, 'item' | 'input'>,
	{ message, description, task }: ItemError,
): SuspendedItem {
	return { item, json: task, input, failure: { message, description } };
}

/**
 * A task that the service no longer knows must not delay the others until its time is up. A task whose time is up has no
 * other read to come. Any other error may pass: somebody may enter the right key.
 */
function afterError(item: SuspendedItem, error: unknown, now: number): SuspendedItem {
	if (!isOfOneTask(error)) return { ...without(item, 'missed'), trouble: messageOf(error) };
	const missed = (item.missed ?? 0) + 1;
	if (missed < MAX_UNLUCKY_ANSWERS && !isExpired(item, now)) return { ...item, missed };
	return failedItem(item, ItemError.from(ofTask(error, taskIdOf(item), item.json)));
}

const taskIdOf = ({ json }: SuspendedItem) => String(json.taskId);

const recordOf = (item: SuspendedItem) =>
	item.record && parseTaskRecord(taskIdOf(item), item.record);

const isExpired = ({ waits }: SuspendedItem, now: number) =>
	waits !== undefined && waits.until <= now;

/**
 * Gives up the tasks that could not be read since their time was up, when the last checks are over. Before that a task
 * may still be read: tasks behind a pending task have not been read before, and are finished as a rule.
 *
 * @param now milliseconds since 1970
 */
export function giveUp({ items, ...state }: ResultsCheck, now: number): ResultsCheck {
	const lostAt = Math.max(now, state.notBefore ?? Infinity) - LAST_CHECKS_MS;
	const judged = (item: SuspendedItem) => {
		const { waits } = item;
		if (waits === undefined || waits.until > now) return item;
		// n8n may have been down or asleep before this check, and may begin before its network.
		const overdueAt = Math.min(waits.overdueAt ?? now, now);
		if (overdueAt > lostAt) return { ...item, waits: { ...waits, overdueAt } };
		const known = { last: recordOf(item), trouble: item.trouble };
		return failedItem(item, timedOut(taskIdOf(item), waits.timeoutMs, known, item.json));
	};
	return { ...state, items: items.map(judged) };
}

export const isComplete = ({ items }: ResultsCheck) => !items.some(({ waits }) => waits);

/**
 * An item as far as known now. n8n puts it out if n8n does not hand on the results: after some kills, and in older
 * versions also if the node is to fail.
 */
export function presentItem(suspended: SuspendedItem): INodeExecutionData {
	const { item, json, binary, waits, failure } = suspended;
	const task = recordOf(suspended);
	const error = `n8n ended the wait for task ${taskIdOf(suspended)} early. Fetch the result with Task → Wait`;
	const fields = {
		...json,
		...(task && taskJson(task)),
		...(waits && { timedOut: true, error }),
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

async function resultOf(downloader: Downloader, suspended: SuspendedItem): Promise<ItemResult> {
	const { item, json, binary, output, failure } = suspended;
	if (failure) return new ItemError(failure.message, { ...failure, task: json });
	const task = recordOf(suspended);
	if (!task || !output) return [{ json, ...(binary && { binary }), pairedItem: { item } }];
	const fields = { ...json, ...taskJson(task) };
	const made = await settled(downloader.itemsOf(task, fields, { output, itemIndex: item }));
	return 'value' in made ? made.value : ItemError.from(made.error);
}
