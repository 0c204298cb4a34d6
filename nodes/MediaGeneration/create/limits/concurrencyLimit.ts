import { CertainLevel } from './certainLevel';

/** A pause that the service asks for may cost so small a part of the time: one in ten. */
const PAUSES_APART = 10;

/**
 * Above how many unfinished tasks another is refused, as far as is known, and when to ask for more. What is asked for
 * and let in may have taken the place of a task that has ended unseen, so the limit is raised only by what is certain.
 */
export class ConcurrencyLimit {
	/** So many tasks may be unfinished at once. */
	known = Infinity;

	/** So many certainly were. */
	readonly certain: CertainLevel;

	/** Whether the last refusal that was understood was this limit's. */
	isLast = false;

	/** Whether it was lifted, and the next limit is being looked for. */
	isClimbing = false;

	/** Whether the last refusals came where more had been let in before. */
	hasFallen = false;

	/** Whether tasks were let in, and none of them is followed. */
	isUnseen = false;

	/** So many were unfinished at once as far as was known, and all of them let in. */
	private proven = 0;

	/** What was let in above the limit since it was asked. */
	private extra = 0;

	/** How many times in a row more were let in than the limit allows, and then refused. */
	private surprises = 0;

	private askedAt = 0;

	private patienceMs = 0;

	/** @param pollIntervalMs a task is read so often */
	constructor(pollIntervalMs: number) {
		this.certain = new CertainLevel(pollIntervalMs);
	}

	/** Whether one was asked for and let in: more are, one after the other. */
	get isAsking(): boolean {
		return this.extra > 0;
	}

	/**
	 * @param mayAsk whether a refusal more can be afforded
	 * @returns when one more may be asked for
	 */
	askAt(mayAsk: boolean): number {
		return mayAsk ? this.askedAt + this.patienceMs : Infinity;
	}

	/** @returns whether so many were let in before, as far as was known */
	hasHeld(unfinished: number): boolean {
		return unfinished < this.proven;
	}

	/** So many are unfinished, and the last of them was let in. */
	accepted(unfinished: number, now: number): void {
		this.proven = Math.max(this.proven, unfinished);
		this.isUnseen = this.proven === 0;
		this.certain.accepted(unfinished, now);
	}

	/** One more than was known is let in. */
	gave(): void {
		this.extra++;
	}

	/**
	 * Looks what has become certain.
	 *
	 * @returns whether there is no limit that is known any more
	 */
	review(now: number): boolean {
		// More than were unfinished cannot have ended unseen.
		if (this.certain.value <= this.known && this.extra <= this.known) return false;
		if (this.isAsking) {
			this.isClimbing = true;
		} else if (this.surprises++ === 0) {
			// More were let in, and then one was refused: perhaps that is the limit. It is asked again at once.
			this.known = this.certain.value;
			this.askedAt = now;
			this.patienceMs = 0;
			return false;
		}
		this.known = Infinity;
		this.extra = 0;
		this.surprises = 0;
		return true;
	}

	/** One more was refused, and nothing else was to be expected. */
	asked(unfinished: number, now: number, patienceMs: number, pauseMs: number): void {
		if (this.extra === 0) this.surprises = 0;
		this.isClimbing = false;
		this.extra = 0;
		this.known = Math.max(1, Math.min(this.known, unfinished));
		this.askedAt = now + PAUSES_APART * pauseMs;
		this.patienceMs = patienceMs;
	}

	/**
	 * The end of a task has ended the refusals.
	 *
	 * @param since when they began
	 */
	learn(known: number, now: number, patienceMs: number, since: number): void {
		this.hasFallen = known < this.certain.value;
		this.known = Math.max(1, known);
		this.certain.fall(this.known, since);
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
