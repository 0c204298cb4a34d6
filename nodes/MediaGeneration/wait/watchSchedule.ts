import type { WatchState } from './watchState';

/** n8n looks for executions that are due once a minute. */
export const MIN_WATCH_INTERVAL_MS = 60_000;

/** The longest pause that the node chooses by itself. */
export const MAX_WATCH_INTERVAL_MS = 15 * 60_000;

/** The pause grows with the time waited, so that a result is late by a part of the time that it took. */
const PART_OF_TIME_WAITED = 4;

/**
 * When to look next for what is finished.
 *
 * @param now milliseconds since 1970
 * @param deadlines when each unfinished task is given up, milliseconds since 1970
 * @returns milliseconds since 1970
 */
export function nextLookAt(
	{ startedAt, intervalMs, woken = false }: WatchState,
	now: number,
	deadlines: readonly number[],
): number {
	const waited = Math.max(0, now - startedAt);
	const growing = Math.min(
		Math.max(waited / PART_OF_TIME_WAITED, MIN_WATCH_INTERVAL_MS),
		MAX_WATCH_INTERVAL_MS,
	);
	const interval = intervalMs > 0 ? intervalMs : growing;
	// A callback came and the record lags behind: it is about to say so, too.
	const pause = woken ? Math.min(interval, MIN_WATCH_INTERVAL_MS) : interval;
	const regular = now + pause;
	return deadlines.reduce((next, each) => (each > now ? Math.min(next, each) : next), regular);
}
