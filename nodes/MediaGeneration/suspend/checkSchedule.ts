import { ServiceError } from '../service/serviceError';
import type { CheckState } from './checkState';

/** n8n resumes executions by time once a minute. */
export const MIN_CHECK_INTERVAL_MS = 60_000;

/** The longest pause between two checks that the node chooses by itself. */
export const MAX_CHECK_INTERVAL_MS = 15 * 60_000;

/** The pause grows with the time waited, so that a result is late by a part of the time that it took. */
const PART_OF_TIME_WAITED = 4;

/**
 * When to check next.
 *
 * @param state.notBefore until when the service asked to wait, milliseconds since 1970
 * @param now milliseconds since 1970
 * @param deadlines when the time of each unfinished task is up, milliseconds since 1970
 * @returns milliseconds since 1970
 */
export function nextCheckAt(
	{ startedAt, intervalMs, woken = false, notBefore = 0 }: CheckState,
	now: number,
	deadlines: readonly number[],
): number {
	const waited = Math.max(0, now - startedAt);
	const growing = Math.min(
		Math.max(waited / PART_OF_TIME_WAITED, MIN_CHECK_INTERVAL_MS),
		MAX_CHECK_INTERVAL_MS,
	);
	const interval = intervalMs > 0 ? intervalMs : growing;
	// After a callback the record is about to say that the task is finished.
	const pause = woken ? Math.min(interval, MIN_CHECK_INTERVAL_MS) : interval;
	const regular = Math.max(now + pause, notBefore);
	return deadlines.reduce((next, each) => (each > now ? Math.min(next, each) : next), regular);
}

/** @returns for how long no further read is to be sent after this error, milliseconds; 0 where the service did not ask for a pause */
export function askedPauseMs(error: unknown): number {
	if (!(error instanceof ServiceError)) return 0;
	return error.retryAfterMs ?? (error.kind === 'tooManyRequests' ? MIN_CHECK_INTERVAL_MS : 0);
}
