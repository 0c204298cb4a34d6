import type { RateLesson } from './requestRate';

/** Seconds after which to look again, since windows of time have natural lengths; fewer where few can be refused. */
const LOOKS = [1, 2.5, 5, 10, 30, 60];
const FEW_LOOKS = [1, 10, 60];
const FEWEST_LOOKS = [1, 10];

/** From here on a task may have ended meanwhile that nobody knows of yet: it is read every few seconds. */
const LONG_WAIT_MS = 5_000;
const UNTIL_KNOWN_MS = 2_500;

/** So often in a row the rhythm in which one was let in may be refused. */
const MAX_IN_RHYTHM = 4;

/** What is known besides when the next look is chosen. */
export interface Surroundings {
	/** When the service began to let in before the refusal, where its rate is not known; otherwise the refusal. */
	begunAt: number;
	/** Whether the last refusal that was understood came from the number of unfinished tasks. */
	wasPlaces: boolean;
	/** Whether the batch is so small that hardly any refusal can be afforded. */
	isSmall: boolean;
	/** From 0 to 1. */
	chance: number;
}

/** A refusal that is not understood yet: will time end it, or the end of a task? */
export class Refusal {
	/** Refused looks, the first refusal included. */
	count = 0;

	/** When to look again whether the service lets in. */
	lookAt: number;

	/** At so few unfinished tasks another is tried before that. */
	tryAt = -1;

	/** Let in since, without a task that is known to have ended. */
	extra = 0;

	private firstExtraAt = 0;
	private refusedSinceExtra = 0;
	private lastAt: number;

	/** Unfinished tasks before the first extra one. */
	private level = 0;

	/**
	 * @param since now
	 * @param unfinished tasks at the last refusal
	 * @param knownBefore how many could be unfinished, as far as was known
	 */
	constructor(
		readonly since: number,
		public unfinished: number,
		readonly knownBefore: number,
	) {
		this.lookAt = since;
		this.lastAt = since;
	}

	/** @returns when to send the next create */
	nextAt(unfinished: number, pausedUntil: number): number {
		if (unfinished >= this.unfinished || unfinished > this.tryAt) return this.lookAt;
		return Math.max(pausedUntil, this.count > 1 ? this.lastAt + 300 : -Infinity);
	}

	again(unfinished: number, now: number): void {
		this.count++;
		this.lastAt = now;
		this.unfinished = unfinished;
		if (this.extra > 0) this.refusedSinceExtra++;
	}

	/** Others that were under way were refused too: that is no accident, and a quick look no use. */
	isNoAccident(): void {
		if (this.count === 1) this.postpone(this.since + 1050);
	}

	postpone(until: number): void {
		this.lookAt = Math.max(this.lookAt, until);
	}

	/**
	 * One was let in though no task is known to have ended.
	 *
	 * @param isRateKnown whether a single one says enough
	 * @returns whether it is certain that time let it in: it may have taken the place of a task that has ended
	 */
	letIn(now: number, unfinished: number, isRateKnown: boolean): boolean {
		if (this.extra++ === 0) {
			this.firstExtraAt = now;
			this.level = this.unfinished;
		}
		const isCertain =
			this.isLong && this.count > 1 && this.level > 0
				? now - this.firstExtraAt >= UNTIL_KNOWN_MS
				: this.extra > 1 || isRateKnown;
		if (!isCertain) {
			this.unfinished = unfinished;
			this.lookAt = -Infinity;
		}
		return isCertain;
	}

	/** Whether it was refused again after one was let in. */
	get hasRecurred(): boolean {
		return this.refusedSinceExtra > 0;
	}

	/** So many were let in before, where an extra one has taken the place of a task that had ended. */
	levelBefore(unfinished: number): number {
		return this.isLong ? this.level : unfinished + 1;
	}

	lesson(now: number): RateLesson {
		return {
			looks: this.count - this.refusedSinceExtra,
			startedAt: this.extra > 1 ? this.firstExtraAt : now,
			taken: Math.max(1, this.extra),
			perMs: this.hasRecurred ? this.extra / (now - this.since) : undefined,
		};
	}

	/** @returns the next look by the clock, ever more seldom */
	nextLook(now: number, unfinished: number, around: Surroundings): number {
		if (this.extra > 0) {
			const took = this.firstExtraAt - this.since;
			const regular = Math.max(200, this.refusedSinceExtra > 1 ? took / 2 : took);
			// So short a rhythm must show soon that it is right: it was not time that let in, then.
			return now + regular * 2 ** Math.max(0, this.refusedSinceExtra - MAX_IN_RHYTHM);
		}
		const looks = around.isSmall ? FEWEST_LOOKS : around.wasPlaces ? FEW_LOOKS : LOOKS;
		const soonest = now + Math.max(400, (now - this.since) / 3);
		const moments = looks.flatMap((seconds) => {
			const ms = 1000 * seconds * (1 + 0.02 * around.chance) + 100;
			return [around.begunAt + ms, this.since + ms].filter((moment) => moment > soonest);
		});
		if (moments.length > 0) return moments.reduce((least, moment) => Math.min(least, moment));
		if (unfinished === 0) return now + 30_000;
		return now + Math.max(around.isSmall ? 300_000 : 60_000, 2 * (now - this.since));
	}

	private get isLong(): boolean {
		return this.firstExtraAt - this.since > LONG_WAIT_MS;
	}
}
