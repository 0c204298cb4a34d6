/** A pause that the service asks for may cost so small a part of the time: one in twenty. */
const PAUSES_APART = 20;

/** Above how many unfinished tasks another is refused, as far as is known, and when to ask for one more. */
export class ConcurrencyLimit {
	/** So many tasks may be unfinished at once. */
	known = Infinity;

	/** So many were unfinished at once, and all of them let in. */
	proven = 0;

	/** Whether the last refusal that was understood was this limit's. */
	isLast = false;

	/** Whether one more was let in, and the next limit is being looked for. */
	isClimbing = false;

	private askedAt = 0;

	private patienceMs = 0;

	/** @returns when one more may be asked for: seldom where no refusal can be afforded any more */
	askAt(mayAsk: boolean): number {
		return this.askedAt + this.patienceMs * (mayAsk ? 1 : 5);
	}

	/** So many are unfinished, and the last of them was let in. */
	accepted(unfinished: number): void {
		this.known = Math.max(this.known, unfinished);
		this.proven = Math.max(this.proven, unfinished);
	}

	/** One more than was known is let in. */
	lift(): void {
		this.known = Infinity;
		this.isClimbing = true;
	}

	/** One more was refused, and nothing else was to be expected. */
	asked(unfinished: number, now: number, patienceMs: number, pauseMs: number): void {
		this.isClimbing = false;
		this.known = Math.max(1, Math.min(this.known, unfinished));
		this.askedAt = now + PAUSES_APART * pauseMs;
		this.patienceMs = patienceMs;
	}

	/** The end of a task has ended the refusals. */
	learn(known: number, now: number, patienceMs: number): void {
		this.known = Math.max(1, known);
		this.isLast = true;
		this.askedAt = now;
		this.patienceMs = patienceMs;
	}

	/** It was not this limit. */
	restore(known: number): void {
		this.known = known;
		this.isLast = false;
	}

	/** More is known of how long the rest takes. */
	shorten(patienceMs: number): void {
		this.patienceMs = Math.min(this.patienceMs, patienceMs);
	}
}
