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
