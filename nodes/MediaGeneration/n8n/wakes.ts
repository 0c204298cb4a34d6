import { clock } from '../shared/clock';

/** n8n looks for due executions so often, from its own start, milliseconds. */
const EVERY_MS = 60_000;

/** n8n wakes an execution by its own timer within this time. One that is later was due before n8n looked. */
const LATE_MS = 1_000;

/** n8n starts what one look has found within this time, also if that is much. */
const ONE_LOOK_MS = 45_000;

/** An execution was due and was woken later: n8n has looked in between. All times are milliseconds of the clock. */
interface LateWake {
	dueAt: number;
	at: number;
}

/** The first late wake of each of the last looks, the oldest first. */
let wakes: LateWake[] = [];
const MOST_WAKES = 5;

/** When n8n has looked once, as far as this process knows. */
let lookedAt: number | undefined;

/** Who is told when this process learns when n8n looks. */
const listeners = new Set<() => void>();

/** So much may be wrong before anybody is told. */
const SAME_LOOK_MS = 1_000;

/**
 * Learns from a wake at which second of the minute n8n looks for due executions. A busy n8n starts an execution some seconds
 * after the look; so of the last wakes the one is believed that agrees with most of them.
 *
 * @param dueAt when the run was due, milliseconds of the clock
 */
export function noteWake(dueAt: number): void {
	const at = clock.now();
	const last = wakes.at(-1)?.at ?? -Infinity;
	const isOfLastLook = dueAt <= last && at - last < ONE_LOOK_MS;
	if (at - dueAt <= LATE_MS || isOfLastLook) return;
	wakes = [...wakes, { dueAt, at }].slice(-MOST_WAKES);
	let most = 0;
	let best = at;
	for (const wake of wakes) {
		const agreeing = wakes.filter((each) => mayBeLookOf(wake.at, each)).length;
		if (agreeing >= most) [most, best] = [agreeing, wake.at];
	}
	const before = nextLookAfter(best - SAME_LOOK_MS) ?? Infinity;
	lookedAt = best;
	if (Math.abs(before - best) > SAME_LOOK_MS) for (const tell of [...listeners]) tell();
}

/** Whether a late wake may come from a look at this second of the minute. */
const mayBeLookOf = (look: number, { dueAt, at }: LateWake): boolean =>
	at - dueAt >= EVERY_MS || (((look - dueAt) % EVERY_MS) + EVERY_MS) % EVERY_MS <= at - dueAt;

/** @returns ends the telling */
export function whenLookIsLearnt(tell: () => void): () => void {
	listeners.add(tell);
	return () => void listeners.delete(tell);
}

/**
 * @param moment milliseconds of the clock
 * @returns when n8n looks next after that moment; undefined while this process does not know
 */
export function nextLookAfter(moment: number): number | undefined {
	if (lookedAt === undefined) return undefined;
	return lookedAt + EVERY_MS * Math.ceil((moment - lookedAt) / EVERY_MS);
}

/** For tests: a process that has just begun. */
export function forgetLooks(): void {
	wakes = [];
	lookedAt = undefined;
	listeners.clear();
}

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
