import type { RequestGap } from '../service/requestGap';

/** Wide enough to tell reads apart, narrow enough that a small batch does not wait for it. */
const MAX_READ_GAP_MS = 50;

/**
 * Hands out the moments at which one run sends its requests, so that they are spread out.
 *
 * Of the reads of a created task only the first needs a place of its own: each further one follows the answer
 * before by the poll interval, and so keeps the distance.
 */
export class RequestSlots {
	private nextFirstRead = -Infinity;

	private readonly readGapMs: number;

	/**
	 * @param gap keeps all requests of the run at some distance
	 * @param pollIntervalMs milliseconds between two reads of one task
	 * @param inFlight how many tasks are read at once at most
	 */
	constructor(
		private readonly gap: RequestGap,
		pollIntervalMs: number,
		inFlight: number,
	) {
		// All first reads fit into one interval, so that the last task waits no longer than that.
		this.readGapMs = Math.min(MAX_READ_GAP_MS, pollIntervalMs / Math.max(1, inFlight));
	}

	/** @returns when the next request that waits for nothing may be sent, milliseconds of the clock */
	requestSlot(): number {
		return this.gap.take();
	}

	/**
	 * @param notBefore milliseconds of the clock
	 * @returns when a created task's first read is due, milliseconds of the clock
	 */
	firstReadSlot(notBefore: number): number {
		const slot = Math.max(notBefore, this.nextFirstRead);
		this.nextFirstRead = slot + this.readGapMs;
		return slot;
	}
}
