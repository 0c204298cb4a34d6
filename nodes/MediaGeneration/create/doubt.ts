/** The pauses between two attempts while nothing is admitted. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_BESIDE_TASKS_MS = 120_000;
const PAUSE_GROWTH = 3;

/** A create that came too early for the rate is tried again after this part of the time between two creates. */
const EARLY = 0.6;

/** Refusals whose cause is not known yet: an attempt follows when a task ends, and after growing pauses. */
export class Doubt {
	/** When the last create was refused. */
	refusedAt: number;

	private pauseMs: number;
	private pauseEndsAt: number;
	/** If only this many tasks are unfinished, a create is sent before the pause is over. */
	private tryAt: number;

	/**
	 * @param since when the first create was refused
	 * @param unfinished the unfinished tasks at the last refusal
	 * @param isRate whether the rate is assumed to be the cause, so that time will end the refusals
	 * @param intervalMs the time from one create to the next, if the rate is known
	 */
	constructor(
		readonly since: number,
		public unfinished: number,
		public isRate: boolean,
		intervalMs: number,
	) {
		this.refusedAt = since;
		this.pauseMs = Math.max(FIRST_PAUSE_MS, EARLY * intervalMs);
		this.pauseEndsAt = since + this.pauseMs;
		this.tryAt = isRate ? -1 : unfinished - 1;
	}

	/** @returns when the next attempt may be made, beside so many unfinished tasks */
	nextAt(unfinished: number): number {
		return unfinished <= this.tryAt ? -Infinity : this.pauseEndsAt;
	}

	refusedAgain(sentAt: number, unfinished: number, now: number): void {
		Object.assign(this, { isRate: false, refusedAt: now, unfinished });
		// The account may have lost many places at once, so each attempt waits until half of the tasks have ended.
		this.tryAt = Math.ceil(unfinished / 2) - 1;
		if (sentAt < this.pauseEndsAt) return;
		// While a task is unfinished, its end is the next occasion.
		const longestMs = unfinished > 0 ? LONGEST_PAUSE_BESIDE_TASKS_MS : LONGEST_PAUSE_MS;
		this.pauseMs = Math.min(longestMs, PAUSE_GROWTH * this.pauseMs);
		this.pauseEndsAt = now + this.pauseMs;
	}
}
