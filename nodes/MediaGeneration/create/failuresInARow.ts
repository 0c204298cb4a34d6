const LONGEST_PAUSE_MS = 30_000;

/** Counts creates that went wrong in a row. Creates that were under way together count once. */
export class FailuresInARow {
	count = 0;

	/** When the last create ended, milliseconds of the clock. */
	private endedAt = -Infinity;

	/** @param pauseMs the pause after so many failures, milliseconds */
	constructor(private readonly pauseMs: (count: number) => number) {}

	/**
	 * @param now milliseconds of the clock
	 * @returns until when to pause, milliseconds of the clock
	 */
	add({ sentAt }: { sentAt: number }, now: number): number {
		if (sentAt < this.endedAt) return now;
		this.endedAt = now;
		return now + Math.min(this.pauseMs(++this.count), LONGEST_PAUSE_MS);
	}
}

/** Creates whose outcome nobody knows. A single doubt may be about that one create. */
export const doubtsInARow = () =>
	new FailuresInARow((count) => (count === 1 ? 0 : 1000 * 4 ** (count - 2)));

/**
 * Creates for which no connection came about.
 *
 * @param random for the jitter, from 0 to 1
 */
export const unreachableInARow = (random: () => number) =>
	new FailuresInARow((count) => 1000 * 2 ** (count - 1) * (0.5 + random() / 2));
