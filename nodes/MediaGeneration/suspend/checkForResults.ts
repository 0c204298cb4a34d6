import { taskJson } from '../report/taskItems';
import { failedInAll, failedTask, ofTask, timedOut } from '../report/failedTask';
import { MAX_UNLUCKY_ANSWERS } from '../service/client';
import { ServiceError } from '../service/serviceError';
import { parseTaskRecord, type TaskRecord } from '../service/taskRecord';
import { settled, inGrowingGroups } from '../shared/promises';
import { ItemError, messageOf } from '../shared/itemError';
import { without } from '../shared/json';
import type { ResultsCheck, SuspendedItem } from './checkState';
import { afterPause, askedPauseMs, LAST_CHECKS_MS } from './checkSchedule';

/** So many reads without an answer about their task end a check: the service is in trouble. */
const MAX_UNANSWERED = 3;

/**
 * One check for the results of a suspended run. The run goes on only when all tasks are finished, so an unfinished task
 * ends the check: most checks cost one read, and every task is read about once after it is finished.
 *
 * @param now milliseconds since 1970
 * @returns the state after the check; what could not be read is as it was, be its time up or not
 * @see specification, section 4.2
 */
export async function checkResults(
	state: ResultsCheck,
	read: (taskId: string) => Promise<TaskRecord>,
	now: number,
): Promise<ResultsCheck> {
	const items = [...state.items];
	let pauseMs = 0;
	let patience = MAX_UNANSWERED;
	const readOne = async ([index, item]: [number, SuspendedItem]) => {
		const answer = await settled(read(taskIdOf(item)));
		if ('value' in answer) {
			items[index] = afterRead(without(without(item, 'missed'), 'trouble'), answer.value, now);
			if (answer.value.state === 'PENDING') patience = 0;
			return;
		}
		items[index] = afterError(item, answer.error, now);
		pauseMs = Math.max(pauseMs, askedPauseMs(answer.error));
		if (!isOfOneTask(answer.error)) patience--;
	};
	const waiting = [...items.entries()].filter(([, { waits }]) => waits);
	const expired = waiting.filter(([, item]) => isExpired(item, now));
	const others = waiting.filter(([, item]) => !isExpired(item, now));
	// Their time is up, so each is read once more, whatever the others do.
	await inGrowingGroups(expired, readOne, () => pauseMs > 0);
	patience = MAX_UNANSWERED;
	await inGrowingGroups(others, readOne, () => patience <= 0 || pauseMs > 0);
	return afterPause({ ...state, items }, pauseMs, now);
}

const isOfOneTask = (error: unknown) => error instanceof ServiceError && error.isOfOneTask;

function afterRead(item: SuspendedItem, task: TaskRecord, now: number): SuspendedItem {
	const { record, state } = task;
	if (state === 'PENDING' && isExpired(item, now)) return late({ ...item, record });
	if (state === 'PENDING') return { ...item, record };
	if (state === 'SUCCESS') return { ...without(item, 'waits'), record };
	const { json } = item;
	// An item that creates its task has a model, and its earlier tasks were created before the run was suspended.
	const retry = json.model === undefined ? undefined : failedInAll(1 + failedTaskIds(item).length);
	const fields = { ...json, ...taskJson(task) };
	return failedItem(item, ItemError.from(failedTask(task, {}, retry), fields));
}

/** The tasks of an item that failed before the run was suspended. */
export const failedTaskIds = ({ json }: SuspendedItem): string[] =>
	Array.isArray(json.failedTaskIds) ? json.failedTaskIds.map(String) : [];

export function failedItem(
	{ item, input }: Pick<SuspendedItem, 'item' | 'input'>,
	{ message, description, statusCode, task }: ItemError,
): SuspendedItem {
	const failure = { message, description, statusCode };
	return { item, json: task, ...(input && { input }), failure };
}

/**
 * A task that the service has forgotten must not hold the others back until its time is up. Behind a pending task it is
 * read for the first time then, and no other read follows. Other errors may pass: a key can be entered anew.
 */
function afterError(item: SuspendedItem, error: unknown, now: number): SuspendedItem {
	if (!isOfOneTask(error)) return { ...without(item, 'missed'), trouble: messageOf(error) };
	const missed = (item.missed ?? 0) + 1;
	if (missed < MAX_UNLUCKY_ANSWERS && !isExpired(item, now)) return { ...item, missed };
	return failedItem(item, ItemError.from(ofTask(error, taskIdOf(item), item.json)));
}

const taskIdOf = ({ json }: SuspendedItem) => String(json.taskId);

/** The item of a task whose time is up. */
function late({ json, waits, record, trouble, ...item }: SuspendedItem): SuspendedItem {
	const taskId = String(json.taskId);
	const last = record && parseTaskRecord(taskId, record);
	return failedItem(item, timedOut(taskId, waits?.timeoutMs ?? 0, { last, trouble }, json));
}

const isExpired = ({ waits }: SuspendedItem, now: number) =>
	waits !== undefined && waits.until <= now;

/**
 * Gives up what could not be read when its time was up. Only where the service asks to wait there is time for that: behind
 * a pending task the others have not been read before, and are finished as a rule.
 *
 * @param now milliseconds since 1970
 */
export function giveUp({ items, ...state }: ResultsCheck, now: number): ResultsCheck {
	const readableAt = Math.max(now, state.notBefore ?? Infinity);
	const isLost = (item: SuspendedItem) =>
		isExpired(item, now) && isExpired(item, readableAt - LAST_CHECKS_MS);
	return { ...state, items: items.map((item) => (isLost(item) ? late(item) : item)) };
}

export const isComplete = ({ items }: ResultsCheck) => !items.some(({ waits }) => waits);
