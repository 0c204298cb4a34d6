import type { Clock } from '../shared/clock';

/** Between two requests that could all go at once: 200 creates would be 200 connections in the same instant. */
const REQUEST_GAP_MS = 4;

/** Spreads out all requests of one run that wait for nothing else: creates, and reads of tasks that exist already. */
export class RequestGap {
	private next = -Infinity;

	constructor(private readonly clock: Clock) {}

	/** When the next request may be sent, or earlier; milliseconds of the clock. */
	get nextAt(): number {
		return this.next;
	}

	/** @returns when the next request may be sent, milliseconds of the clock; the one after it waits for its turn */
	take(): number {
		const slot = Math.max(this.clock.now(), this.next);
		this.next = slot + REQUEST_GAP_MS;
		return slot;
	}
}

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
