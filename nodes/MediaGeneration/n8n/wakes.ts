/** n8n wakes executions once a minute. */
export const LEAST_SLEEP_MS = 60_000;

/** The longest sleep that the node chooses by itself. */
export const LONGEST_SLEEP_MS = 15 * 60_000;

/** A sleep is this part of the time waited, so that a result is late by a part of the time that it took. */
const PART_OF_TIME_WAITED = 4;

/** Sleeps are longer by up to this part, by chance, so that many runs do not wake at once. */
const SPREAD = 0.1;

/** A run wakes so long before n8n's time limit: n8n may be a minute late, and a turn takes its time. Milliseconds. */
export const BEFORE_LIMIT_MS = 90_000;

/** What decides when a sleeping run is woken. All times are milliseconds of the clock. */
export interface Sleeper {
	/** When the wait began: the run, or its last order. */
	startedAt: number;
	/** Whether tasks are waited for. */
	hasTasks?: boolean;
	/** When the next order may be sent; Infinity if nothing is to be ordered. */
	orderAt?: number;
	/** Whether something is to be tried again soon: a task whose time is up, or one that was not read in this turn. */
	isOverdue: boolean;
	/** Until when the service has asked to read nothing. */
	notBefore?: number;
	/** When something must be done: a task's time is up. */
	dueAt: readonly number[];
	/** When n8n's time limit cancels the execution; Infinity without a limit. */
	limitAt?: number;
}

/**
 * When a sleeping run is to be woken.
 *
 * @param random from 0 to 1
 * @returns milliseconds of the clock
 */
export function nextWakeAt(sleeper: Sleeper, now: number, random = Math.random()): number {
	const { startedAt, orderAt = Infinity, isOverdue, notBefore = 0, dueAt } = sleeper;
	const { limitAt = Infinity, hasTasks = true } = sleeper;
	const growing = (now - startedAt) / PART_OF_TIME_WAITED;
	const chosen = Math.min(Math.max(growing, LEAST_SLEEP_MS), LONGEST_SLEEP_MS);
	const pauseMs = (isOverdue ? LEAST_SLEEP_MS : chosen) * (1 + SPREAD * random);
	// Without a task there is nothing to see before the next order.
	const isBlind = !hasTasks && orderAt < Infinity;
	const readAt = isBlind ? Infinity : Math.max(now + pauseMs, notBefore);
	const due = Math.min(...dueAt.filter((each) => each > now), limitAt - BEFORE_LIMIT_MS);
	return Math.max(now, Math.min(readAt, orderAt, due));
}
