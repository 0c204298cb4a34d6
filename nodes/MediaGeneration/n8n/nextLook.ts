import { clock } from '../shared/clock';

/** n8n looks for due executions so often, from its own start, milliseconds. */
const EVERY_MS = 60_000;

/** n8n wakes an execution by its own timer within this time. One that is later was due before n8n looked. */
const LATE_MS = 1_000;

/** When n8n has looked last, as far as this process knows; milliseconds of the clock. */
let lookedAt: number | undefined;

/**
 * Learns from a wake at which second of the minute n8n looks for due executions. A run that was due before the look is
 * woken by the look itself.
 *
 * @param dueAt when the run was due, milliseconds of the clock
 */
export function noteWake(dueAt: number): void {
	const now = clock.now();
	if (now - dueAt > LATE_MS) lookedAt = now;
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
	lookedAt = undefined;
}
