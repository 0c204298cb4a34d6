import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import { attempt } from '../shared/attempt';
import { without } from '../shared/json';
import type { ResultsWatch, WatchedDelivery, WatchedItem } from './watchState';

/** Reads at once at most; they are spread out besides. */
const PARALLEL_READS = 25;

type Read = (taskId: string) => Promise<TaskRecord>;

/**
 * One look for the results of a suspended run. It goes on only when all tasks are finished, so one that is not ends
 * the look: most looks cost one read, and every task is read about once after it is finished.
 *
 * @param read reads a task, and may fail
 * @param now milliseconds since 1970
 * @returns the state after the look; what could not be read is as it was
 */
export async function lookForResults(
	state: ResultsWatch,
	read: Read,
	now: number,
): Promise<ResultsWatch> {
	const items = [...state.items];
	const expired = indexesOf(items, (item) => isWaiting(item) && isExpired(item, now));
	// Their time is up, so each is read once more, whatever the others do.
	for (let at = 0; at < expired.length; at += PARALLEL_READS) {
		await readAll(items, expired.slice(at, at + PARALLEL_READS), read);
	}
	const others = indexesOf(items, (item) => isWaiting(item) && !isExpired(item, now));
	for (let at = 0, parallel = 1; at < others.length;) {
		const areFinished = await readAll(items, others.slice(at, at + parallel), read);
		if (!areFinished) break;
		at += parallel;
		parallel = Math.min(2 * parallel, PARALLEL_READS);
	}
	return { ...state, items: items.map((item) => giveUp(item, now)) };
}

function indexesOf(items: readonly WatchedItem[], is: (item: WatchedItem) => boolean): number[] {
	return items.flatMap((item, index) => (is(item) ? [index] : []));
}

/**
 * Reads tasks together and notes what is found.
 *
 * @param indexes which of the items
 * @returns whether all of them are finished
 */
async function readAll(
	items: WatchedItem[],
	indexes: readonly number[],
	read: Read,
): Promise<boolean> {
	const found = await Promise.all(
		indexes.map(async (index) => {
			const { waitsFor, ...known } = items[index] ?? { item: index, json: {} };
			if (waitsFor === undefined) return true;
			const answer = await attempt(async () => await read(waitsFor.taskId));
			if (!('value' in answer)) return false;
			const { state, record } = answer.value;
			const isFinished = state !== 'PENDING';
			items[index] = { ...known, record, ...(!isFinished && { waitsFor }) };
			return isFinished;
		}),
	);
	return found.every(Boolean);
}

const isWaiting = ({ waitsFor }: WatchedItem) => waitsFor !== undefined;

const isExpired = ({ waitsFor }: WatchedItem, now: number) =>
	waitsFor !== undefined && waitsFor.until <= now;

function giveUp(item: WatchedItem, now: number): WatchedItem {
	return isExpired(item, now) ? { ...without(item, 'waitsFor'), timedOut: true } : item;
}

/** Whether nothing is waited for any more. */
export const isComplete = ({ items }: ResultsWatch) => !items.some(isWaiting);

/** What a delivery came to: `undefined` where the trigger has the task now, else why it has not. */
type Deliver = (delivery: WatchedDelivery, task: FinishedTask) => Promise<string | undefined>;

/** Whether a trigger is known to have started for a task. */
type HasArrived = (delivery: WatchedDelivery) => Promise<boolean>;

/** What is said of a task that was read, and is not at its end. */
const NOT_FINISHED = 'not finished';

/** Whether the last look found the task not at its end. States without the field say so in words alone. */
export const isUnfinished = ({ isPending, last }: WatchedDelivery) =>
	isPending ?? last === NOT_FINISHED;

/**
 * One look for finished tasks whose callback has not been seen to arrive: each is delivered to its trigger, whose
 * ledger knows those that it had.
 *
 * @returns the deliveries that are left
 */
export async function lookForDeliveries(
	deliveries: readonly WatchedDelivery[],
	read: Read,
	deliver: Deliver,
	hasArrived: HasArrived = async () => await Promise.resolve(false),
): Promise<WatchedDelivery[]> {
	const left: WatchedDelivery[] = [];
	for (let at = 0; at < deliveries.length; at += PARALLEL_READS) {
		const batch = deliveries.slice(at, at + PARALLEL_READS);
		const states = await Promise.all(
			batch.map(async (delivery) => await lookForDelivery(delivery, read, deliver, hasArrived)),
		);
		left.push(...states.filter((state) => state !== undefined));
	}
	return left;
}

/** @returns undefined where the trigger has the task now */
async function lookForDelivery(
	delivery: WatchedDelivery,
	read: Read,
	deliver: Deliver,
	hasArrived: HasArrived,
): Promise<WatchedDelivery | undefined> {
	let isPending = false;
	const answer = await attempt(async () => {
		if (await hasArrived(delivery)) return undefined;
		const task = await read(delivery.taskId);
		isPending = task.state === 'PENDING';
		return task.state === 'PENDING' ? NOT_FINISHED : await deliver(delivery, task);
	});
	const last = 'value' in answer ? answer.value : messageOf(answer.error);
	if (last === undefined) return undefined;
	// The same object while nothing changes: n8n keeps the state of every look, and stores one object once.
	const isSame = last === delivery.last && isPending === delivery.isPending;
	return isSame ? delivery : { ...delivery, last, isPending };
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
