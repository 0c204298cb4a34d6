import { taskJson } from '../report/items';
import { failedInAll, failedTask, ofTask, timedOut } from '../report/outcome';
import { ServiceError } from '../service/serviceError';
import { parseTaskRecord, type TaskRecord } from '../service/taskRecord';
import { settled } from '../shared/concurrency';
import { ItemError } from '../shared/itemError';
import { without } from '../shared/json';
import { failedItem, type ResultsCheck, type SuspendedItem } from './checkState';
import { askedPauseMs } from './checkSchedule';

/** Reads at once at most; they are spread out besides. */
const PARALLEL_READS = 25;

/** A task that the service does not know in so many checks in a row is gone. */
const MAX_MISSED = 3;

type Read = (taskId: string) => Promise<TaskRecord>;

/** So many reads without an answer about their task end a check: the service is in trouble. */
const MAX_UNANSWERED = 3;

/** What the reads of one check came to. */
interface Found {
	/** Whether a task is unfinished, or the service lets nobody read: further reads are of no use now. */
	isEnough: boolean;
	/** How many reads brought no answer about their task. */
	unanswered: number;
	/** For how long the service wants no further read, milliseconds. */
	pauseMs: number;
}

/**
 * One check for the results of a suspended run. The run goes on only when all tasks are finished, so an unfinished task
 * ends the check: most checks cost one read, and every task is read about once after it is finished.
 *
 * @param read reads a task, and may fail
 * @param now milliseconds since 1970
 * @returns the state after the check; what could not be read is as it was, be its time up or not
 * @see specification, section 4.2
 */
export async function checkTasks(
	state: ResultsCheck,
	read: Read,
	now: number,
): Promise<ResultsCheck> {
	const items = [...state.items];
	const found: Found = { isEnough: false, unanswered: 0, pauseMs: 0 };
	// Their time is up, so each is read once more, whatever the others do.
	const expired = indexesOf(items, (item) => isExpired(item, now));
	for (let at = 0; at < expired.length && found.pauseMs === 0; at += PARALLEL_READS) {
		await readAll(items, expired.slice(at, at + PARALLEL_READS), read, found);
	}
	found.isEnough = found.pauseMs > 0;
	const others = indexesOf(items, (item) => isWaiting(item) && !isExpired(item, now));
	for (let at = 0, parallel = 1; at < others.length && !found.isEnough;) {
		await readAll(items, others.slice(at, at + parallel), read, found);
		at += parallel;
		parallel = Math.min(2 * parallel, PARALLEL_READS);
	}
	const notBefore = Math.max(state.notBefore ?? 0, now + found.pauseMs);
	return {
		...without(state, 'notBefore'),
		items,
		...(notBefore > now && { notBefore }),
	};
}

function indexesOf(
	items: readonly SuspendedItem[],
	is: (item: SuspendedItem) => boolean,
): number[] {
	return items.flatMap((item, index) => (is(item) ? [index] : []));
}

/** Reads tasks together, and writes what is found into their items. */
async function readAll(
	items: SuspendedItem[],
	indexes: readonly number[],
	read: Read,
	found: Found,
): Promise<void> {
	await Promise.all(
		indexes.map(async (index) => {
			const item = items[index];
			if (item?.waits === undefined) return;
			const answer = await settled(read(taskIdOf(item)));
			if ('error' in answer) {
				items[index] = afterError(item, answer.error);
				noteError(found, answer.error);
				return;
			}
			items[index] = afterRead(without(item, 'missed'), answer.value);
			if (isWaiting(items[index])) found.isEnough = true;
		}),
	);
}

/** An answer about the one task says nothing of the others: they are read all the same. */
function noteError(found: Found, error: unknown): void {
	const isUnusable = error instanceof ServiceError && error.kind === 'unusableRecord';
	if (!isMissing(error) && !isUnusable) found.unanswered++;
	found.pauseMs = Math.max(found.pauseMs, askedPauseMs(error));
	if (found.pauseMs > 0 || found.unanswered >= MAX_UNANSWERED) found.isEnough = true;
}

const isMissing = (error: unknown) =>
	error instanceof ServiceError && error.kind === 'notFound' && !error.isForeign;

function afterRead(item: SuspendedItem, task: TaskRecord): SuspendedItem {
	const { record, state } = task;
	if (state === 'PENDING') return { ...item, record };
	if (state === 'SUCCESS') return { ...without(item, 'waits'), record };
	const { json } = item;
	const { failedTaskIds } = json;
	// An item that creates its task has a model, and its earlier tasks were created before the run was suspended.
	const earlier = Array.isArray(failedTaskIds) ? failedTaskIds.length : 0;
	const retry = json.model === undefined ? undefined : failedInAll(1 + earlier);
	const fields = { ...json, ...taskJson(task) };
	return failedItem(item, ItemError.from(failedTask(task, {}, retry), fields));
}

/** A task that the service has forgotten must not hold the others back until its time is up. */
function afterError(item: SuspendedItem, error: unknown): SuspendedItem {
	if (!isMissing(error)) return without(item, 'missed');
	const missed = (item.missed ?? 0) + 1;
	if (missed < MAX_MISSED) return { ...item, missed };
	return failedItem(item, ItemError.from(ofTask(error, taskIdOf(item), item.json)));
}

const taskIdOf = ({ json }: SuspendedItem) => String(json.taskId);

const isWaiting = ({ waits }: SuspendedItem) => waits !== undefined;

const isExpired = ({ waits }: SuspendedItem, now: number) =>
	waits !== undefined && waits.until <= now;

/**
 * Gives up what is not finished when its time is up.
 *
 * @param now milliseconds since 1970
 */
export function giveUp({ items, ...state }: ResultsCheck, now: number): ResultsCheck {
	return {
		...state,
		items: items.map((item) => {
			const { record, json, waits } = item;
			if (waits === undefined || !isExpired(item, now)) return item;
			const taskId = taskIdOf(item);
			const last = record && parseTaskRecord(taskId, record);
			return failedItem(item, timedOut(taskId, waits.timeoutMs, { last }, json));
		}),
	};
}

/** Whether nothing is waited for any more. */
export const isComplete = ({ items }: ResultsCheck) => !items.some(isWaiting);
