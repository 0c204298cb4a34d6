/** n8n resumes executions by time once a minute. */
export const MIN_PAUSE_MS = 60_000;

/** The longest pause that the node chooses by itself. */
export const MAX_PAUSE_MS = 15 * 60_000;

/** The pause is this part of the time waited, so that a result is late by a part of the time that it took. */
const PART_OF_TIME_WAITED = 4;

/** A pause is longer by up to this part, so that what begins together does not go on together. */
const SPREAD = 0.1;

/**
 * The pause before the next look, milliseconds: a minute at first, then a quarter of the time waited, at most 15 minutes;
 * and up to a tenth more.
 *
 * @param waitedMs the time waited so far, milliseconds
 * @param chosenMs the pause that the user chose, milliseconds; 0 if the node chooses
 */
export function pauseMs(waitedMs: number, chosenMs = 0, random = Math.random): number {
	const growing = Math.min(Math.max(waitedMs / PART_OF_TIME_WAITED, MIN_PAUSE_MS), MAX_PAUSE_MS);
	return Math.round((chosenMs || growing) * (1 + SPREAD * random()));
}
