import { ServiceError } from '../service/serviceError';
import { without } from '../shared/json';
import type { CheckState } from './checkState';

/** n8n resumes executions by time once a minute. */
export const MIN_CHECK_INTERVAL_MS = 60_000;

/** The longest pause between two checks that the node chooses by itself. */
export const MAX_CHECK_INTERVAL_MS = 15 * 60_000;

/** For so long after its time was up a task is tried again that could not be read or delivered: that may pass. */
export const LAST_CHECKS_MS = 10 * 60_000;

/** Where n8n was down when the time was up, they begin with its start, so long after at the latest: they end in a day. */
export const LATEST_LAST_CHECKS_MS = 24 * 60 * 60_000 - LAST_CHECKS_MS;

/** The pause grows with the time waited, so that a result is late by a part of the time that it took. */
const PART_OF_TIME_WAITED = 4;

/**
 * When to check next. All times are milliseconds since 1970.
 *
 * @param deadlines when the time of each unfinished task is up, where no check has begun since
 */
export function nextCheckAt(
	{ startedAt, intervalMs, woken = false, notBefore }: CheckState,
	now: number,
	deadlines: readonly number[],
): number {
	const waited = Math.max(0, now - startedAt);
	const growing = Math.min(
		Math.max(waited / PART_OF_TIME_WAITED, MIN_CHECK_INTERVAL_MS),
		MAX_CHECK_INTERVAL_MS,
	);
	const interval = intervalMs > 0 ? intervalMs : growing;
	// After a callback the record is about to say that the task is finished, and a check that the service has cut short
	// has not read all tasks.
	const isSoon = woken || notBefore !== undefined;
	const pause = isSoon ? Math.min(interval, MIN_CHECK_INTERVAL_MS) : interval;
	const regular = Math.max(now + pause, notBefore ?? 0);
	const ahead = deadlines.toSorted((one, other) => one - other);
	const [first = Infinity] = ahead;
	// The tasks of a batch are created one after the other: one check does for all whose time is up within a minute.
	return Math.min(
		regular,
		ahead.findLast((each) => each <= first + MIN_CHECK_INTERVAL_MS) ?? first,
	);
}

/** So many reads without an answer about their task end a check: the service is in trouble. */
export const MAX_UNANSWERED = 3;

/**
 * @param isLast whether the time of the task is up: a service in trouble is left alone before the task is read again
 * @returns for how long no further read is to follow this error, milliseconds; 0 where one may
 */
export function pauseAfter(error: unknown, isLast = false): number {
	if (!(error instanceof ServiceError)) return 0;
	const pauses = error.kind === 'tooManyRequests' || (isLast && error.isTransient);
	return error.retryAfterMs || (pauses ? MIN_CHECK_INTERVAL_MS : 0);
}

/** The state after a check in which the service asked for a pause, if it did; milliseconds from now on. */
export const afterPause = <T extends CheckState>(state: T, pauseMs: number): T => ({
	...without(state, 'notBefore'),
	...(pauseMs > 0 && { notBefore: Date.now() + pauseMs }),
});
