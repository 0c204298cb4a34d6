import type { Clock } from '../shared/clock';

/** The least time between two requests: 200 creates at once would open 200 connections. */
const REQUEST_GAP_MS = 4;

/** Spreads the requests of a run that would go out together. */
export class RequestGap {
	/** When the next request may be sent at the earliest, milliseconds of the clock. */
	nextAt = -Infinity;

	constructor(
		private readonly clock: Clock,
		private readonly gapMs = REQUEST_GAP_MS,
	) {}

	/** @returns when the request may be sent, milliseconds of the clock; the request after it gets a later time */
	take(notBefore = this.clock.now()): number {
		const at = Math.max(notBefore, this.nextAt);
		this.nextAt = at + this.gapMs;
		return at;
	}
}

/** Wide enough to spread the reads, narrow enough for a small batch. */
const MAX_READ_GAP_MS = 50;

/**
 * The time between the first reads of created tasks. All of them fit into one poll interval, so that the last task waits
 * no longer. Later reads keep the distance, since each follows the answer before by the interval.
 *
 * @param inFlight how many tasks are read at once at most
 * @returns milliseconds
 */
export const firstReadGapMs = (pollIntervalMs: number, inFlight: number): number =>
	Math.min(MAX_READ_GAP_MS, pollIntervalMs / Math.max(1, inFlight));
