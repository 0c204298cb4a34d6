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

/** What decides when to wake. All times are milliseconds since 1970. */
export interface Sleeper {
	startedAt: number;
	/** Milliseconds from one turn to the next; 0 lets the pause grow with the time waited. */
	intervalMs: number;
	/** Whether something is left to create: n8n wakes the run when it looks next, at most a minute later. */
	isCreating?: boolean;
	/** Whether the pause is the least: a task whose time is up could not be read, or one was delivered just now. */
	isOverdue: boolean;
	/** When something must be done: a task's time is up. */
	dueAt: readonly number[];
	/** When n8n's time limit cancels the execution; Infinity without a limit. */
	limitAt?: number;
}

/**
 * When a sleeping run is to be woken.
 *
 * @param random from 0 to 1
 * @returns milliseconds since 1970
 */
export function nextWakeAt(sleeper: Sleeper, now: number, random = Math.random()): number {
	const {
		startedAt,
		intervalMs,
		isCreating = false,
		isOverdue,
		dueAt,
		limitAt = Infinity,
	} = sleeper;
	if (isCreating && intervalMs === 0) return now;
	const growing = (now - startedAt) / PART_OF_TIME_WAITED;
	const chosen = Math.min(Math.max(growing, LEAST_SLEEP_MS), LONGEST_SLEEP_MS);
	const pauseMs = isOverdue ? LEAST_SLEEP_MS : intervalMs || chosen;
	const due = Math.min(...dueAt.filter((each) => each > now), limitAt - BEFORE_LIMIT_MS);
	return Math.max(now, Math.min(now + pauseMs * (1 + SPREAD * random), due));
}
