import type { Clock } from '../shared/clock';

/** Between two requests that could all go at once: 200 creates would be 200 connections in the same instant. */
const REQUEST_GAP_MS = 4;

/** Keeps requests of one run that would go together at some distance from each other. */
export class RequestGap {
	/** When the next request may be sent, or earlier; milliseconds of the clock. */
	nextAt = -Infinity;

	constructor(
		private readonly clock: Clock,
		private readonly gapMs = REQUEST_GAP_MS,
	) {}

	/** @returns when the next request may be sent, milliseconds of the clock; the one after it waits for its turn */
	take(notBefore = this.clock.now()): number {
		const at = Math.max(notBefore, this.nextAt);
		this.nextAt = at + this.gapMs;
		return at;
	}
}

/** Wide enough to tell reads apart, narrow enough that a small batch does not wait for it. */
const MAX_READ_GAP_MS = 50;

/**
 * The distance between the first reads of created tasks: all of them fit into one interval, so that the last task waits
 * no longer than that. Each further read follows the answer before by the interval, and so keeps the distance.
 *
 * @param inFlight how many tasks are read at once at most
 * @returns milliseconds
 */
export const firstReadGapMs = (pollIntervalMs: number, inFlight: number): number =>
	Math.min(MAX_READ_GAP_MS, pollIntervalMs / Math.max(1, inFlight));
