/** What is worth a hint: so much of the time, and so many milliseconds. */
const WORTH_SHARE = 0.25;
const WORTH_MS = 15_000;

/** So many times the present value at most: how much the account allows is not known. */
const MAX_FACTOR = 4;

/** A batch that is over. */
export interface Batch {
	/** How long each task took from its creation until it was found finished, milliseconds. */
	taskMs: readonly number[];
	/** How long all of them took together, milliseconds. */
	tookMs: number;
	/** How many were under way at once at most. */
	maxInFlight: number;
}

/**
 * What a higher *Max Tasks at the Same Time* would have brought a batch of which nothing was refused.
 *
 * @returns the value to try, and how long the batch would have taken with it at best, in milliseconds; undefined where
 *   it is not worth a word
 */
export function fasterBatch({
	taskMs,
	tookMs,
	maxInFlight,
}: Batch): { maxInFlight: number; wouldTakeMs: number } | undefined {
	const higher = Math.min(taskMs.length, maxInFlight * MAX_FACTOR);
	if (higher <= maxInFlight) return undefined;
	const sum = taskMs.reduce((total, ms) => total + ms, 0);
	const longest = taskMs.reduce((most, ms) => Math.max(most, ms), 0);
	const wouldTakeMs = Math.max(longest, sum / higher);
	const savedMs = tookMs - wouldTakeMs;
	if (savedMs < WORTH_MS || savedMs < tookMs * WORTH_SHARE) return undefined;
	return { maxInFlight: higher, wouldTakeMs };
}
