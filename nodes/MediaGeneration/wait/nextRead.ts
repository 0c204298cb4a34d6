import { MIN_READ_INTERVAL_MS } from '../service/client';
import { ServiceError } from '../service/serviceError';
import { type FinishedTask, hasEnded, type TaskRecord } from '../service/taskRecord';

/** The longest pause between two reads of a task while its reads fail. */
const LONGEST_PAUSE_MS = 30_000;

/** How long the service must say that it does not know a task before the wait for a foreign id ends. */
const LASTING_MS = 10_000;

/** How long a success without a usable link is read again: the links may come a little later. */
const LINKLESS_MS = 20_000;

/** What is known of a task that is read. All times are milliseconds of the clock. */
export interface Known {
	/** When the task is to be read next. */
	dueAt: number;
	/** When the last answer came. */
	answeredAt?: number;
	/** The last record that was read. */
	last?: TaskRecord | undefined;
	/** Whether an earlier turn has read the task. */
	wasRead?: boolean;
	/** Why the last read failed; undefined if it brought a record. */
	trouble?: ServiceError | undefined;
	/** How many reads in a row failed. */
	failures: number;
	/** Since when the service does not know the task, or refuses the key; and since when a success has no link. */
	unknownSince?: number | undefined;
	linklessSince?: number | undefined;
}

/** How a task is to be read. */
export interface ReadRule {
	/** The least time between two reads, milliseconds. */
	pollIntervalMs: number;
	/** When the task's time is up, milliseconds of the clock. */
	deadline: number;
	/** Whether this node has created the task: it certainly exists, and it is paid for. */
	isOwn: boolean;
	/** Whether any record ends the reading, also one of a task that is not finished. */
	isOnce?: boolean;
}

/** What follows from what is known. `timeIsUp` and `noSuchTask` have no finished task. */
type NextRead =
	| { kind: 'read'; at: number }
	| { kind: 'finished'; task: FinishedTask }
	| { kind: 'found'; task: TaskRecord }
	| { kind: 'timeIsUp' }
	| { kind: 'noSuchTask'; error: ServiceError };

/**
 * Decides what to do with a task: when to read it next, or how its reading ends. A task is read until its time is up,
 * whatever single answers say; only for an id that this node has not created the service's lasting word that there is no
 * such task is final. The last read comes at the deadline itself.
 *
 * @param now milliseconds of the clock
 * @see docs/service.md, sections 3, 4.2 and 8
 */
export function nextRead(
	known: Known,
	{ deadline, isOwn, isOnce }: ReadRule,
	now: number,
): NextRead {
	const { last, trouble, dueAt, answeredAt, unknownSince, linklessSince } = known;
	if (trouble === undefined && last !== undefined) {
		if (isOnce) return { kind: 'found', task: last };
		const isLinkless = linklessSince !== undefined && now - linklessSince >= LINKLESS_MS;
		// Without links a success is finished when no link comes in time.
		if (last.state !== 'PENDING' && (hasEnded(last) || isLinkless || now >= deadline)) {
			return { kind: 'finished', task: last };
		}
	}
	const isLasting = unknownSince !== undefined && now - unknownSince >= LASTING_MS;
	if (trouble && isLasting && !isOwn) return { kind: 'noSuchTask', error: trouble };
	if (now >= deadline && (last !== undefined || trouble !== undefined)) return { kind: 'timeIsUp' };
	if (dueAt <= deadline - MIN_READ_INTERVAL_MS) return { kind: 'read', at: dueAt };
	// The last read comes at the deadline, unless the task was read a moment before.
	const isTooSoon = answeredAt !== undefined && deadline - answeredAt < MIN_READ_INTERVAL_MS;
	return isTooSoon ? { kind: 'timeIsUp' } : { kind: 'read', at: deadline };
}

/**
 * What is known after a read.
 *
 * @param answer the record, or why the read failed
 * @param now milliseconds of the clock
 */
export function afterRead(
	known: Known,
	answer: TaskRecord | ServiceError,
	{ pollIntervalMs }: ReadRule,
	now: number,
): Known {
	if (!(answer instanceof ServiceError)) {
		const linklessSince = answer.state === 'SUCCESS' ? (known.linklessSince ?? now) : undefined;
		const dueAt = now + pollIntervalMs;
		return { dueAt, answeredAt: now, last: answer, failures: 0, linklessSince };
	}
	// The service speaks of the task: such an answer is no trouble of the service.
	const pauseMs = answer.isNotYet
		? pollIntervalMs
		: Math.min(pollIntervalMs * 2 ** known.failures, LONGEST_PAUSE_MS);
	const neverRead = known.last === undefined && known.wasRead !== true;
	const isUnknown = answer.isNoSuchTask || (neverRead && answer.isOfKey);
	return {
		...known,
		answeredAt: now,
		dueAt: now + Math.max(pauseMs, answer.retryAfterMs ?? 0, MIN_READ_INTERVAL_MS),
		trouble: answer,
		failures: known.failures + 1,
		unknownSince: isUnknown ? (known.unknownSince ?? now) : undefined,
	};
}
