/** A task that has ended is known to have ended within this time after its next read. */
const MARGIN_MS = 200;

/**
 * How many tasks were certainly unfinished at once. A task is known to have ended only when it is read, so a create that
 * is let in may have taken the place of one that nobody knows of yet. How many were unfinished at a moment is certain
 * once every one of them has been read again.
 */
export class CertainLevel {
	/** So many, and all of them let in. */
	value = 0;

	/** What was let in lately, with how many of the tasks of that moment are not known to have ended. */
	private readonly open: Array<{ at: number; level: number }> = [];

	/** The end of a task is known so many milliseconds later at most. */
	readonly readMs: number;

	/** @param pollIntervalMs a task is read so often */
	constructor(pollIntervalMs: number) {
		this.readMs = pollIntervalMs + MARGIN_MS;
	}

	/** When the next level becomes certain. */
	get settlesAt(): number {
		return this.open[0] ? this.open[0].at + this.readMs : Infinity;
	}

	/** So many are unfinished, as far as is known, and the last of them was let in. */
	accepted(unfinished: number, now: number): void {
		if (unfinished > this.value) this.open.push({ at: now, level: unfinished });
	}

	/** @param takenAt when the task was let in that is now known to have ended: it was unfinished at that moment */
	finished(takenAt: number): void {
		for (const entry of this.open) if (takenAt < entry.at) entry.level--;
	}

	settle(now: number): void {
		while (this.settlesAt <= now) this.value = Math.max(this.value, this.open.shift()?.level ?? 0);
	}

	/** No more than so many are allowed since a moment, whatever was let in before. */
	fall(most: number, since: number): void {
		this.value = Math.min(this.value, most);
		for (const entry of this.open) if (entry.at <= since) entry.level = Math.min(entry.level, most);
	}
}
