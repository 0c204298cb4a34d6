import type { Clock } from './clock';

/** How long a run may keep its process to itself: n8n does all its other work in the same thread. Milliseconds. */
const LONGEST_TURN_MS = 25;

/** Lets the rest of n8n in while something is done for each of many items. */
export class Turns {
	private since: number;

	/** @param signal aborted when the execution is stopped */
	constructor(
		private readonly clock: Clock,
		private readonly signal: AbortSignal | undefined,
	) {
		this.since = clock.now();
	}

	/**
	 * To be awaited between two items: at once, where the turn is not over yet.
	 *
	 * @throws Stopped where the execution was stopped meanwhile
	 */
	async next(): Promise<void> {
		if (this.clock.now() - this.since < LONGEST_TURN_MS) return;
		await this.clock.sleep(0, this.signal);
		this.since = this.clock.now();
	}
}
