import type { RateLesson } from './requestRate';

/** Seconds after which to look again, since windows of time have natural lengths; fewer where few can be refused. */
const LOOKS = [1, 3, 10, 60];
const FEW_LOOKS = [1, 10, 60];
const FEWEST_LOOKS = [1, 10];

/** Where nobody is let in though nothing is unfinished, it looks at least so often. */
const LONGEST_EMPTY_MS = 30_000;

/** What is known besides when the next look is chosen. */
export interface Surroundings {
	/** When the service began to let in before the refusal, where its rate is not known; otherwise the refusal. */
	begunAt: number;
	/** Whether the last refusal that was understood came from the number of unfinished tasks. */
	wasPlaces: boolean;
	/** Whether the batch is so small that hardly any refusal can be afforded. */
	isSmall: boolean;
	/** Looks are at least so far apart. */
	leastPauseMs: number;
	/** Whether no task is followed. */
	isUnseen: boolean;
	/** From 0 to 1. */
	chance: number;
}

/** A create under way. */
export interface Sent {
	/** Unfinished tasks when it was sent. */
	readonly unfinished: number;
}

/** A refusal that is not understood yet: will time end it, or the end of a task? */
export class Refusal {
	/** Refused looks, the first refusal included. */
	count = 0;

	/** Whether another was refused though a task had ended. */
	hasTried = false;

	/** When to look again whether the service lets in. */
	lookAt: number;

	/** At so few unfinished tasks another is tried before that. */
	tryAt = -1;

	/** Let in since, without a task that is known to have ended. */
	extra = 0;

	private levelBefore = 0;
	private firstExtraAt = 0;
	private refusedSinceExtra = 0;
	private lastExtraAt = 0;
	private lastAt: number;
	private hasLookedEmpty = false;

	/**
	 * @param since now
	 * @param unfinished tasks at the last refusal
	 * @param knownBefore how many could be unfinished, as far as was known
	 * @param readMs the end of a task is known so many milliseconds later at most
	 */
	constructor(
		readonly since: number,
		public unfinished: number,
		readonly knownBefore: number,
		private readonly readMs: number,
	) {
		this.lookAt = since;
		this.lastAt = since;
	}

	/** So many tasks may be unfinished, if that is what refuses. */
	get level(): number {
		return this.extra > 0 ? this.levelBefore : this.unfinished;
	}

	/** @returns whether those who were let in have taken the places of tasks that had ended unseen: now it is known */
	isExplained(now: number): boolean {
		return this.refusedSinceExtra > 0 && now > this.lastExtraAt + this.readMs + 100;
	}

	/** @returns when to send the next create */
	nextAt(unfinished: number, pausedUntil: number): number {
		if (unfinished >= this.level || unfinished > this.tryAt) return this.lookAt;
		return Math.max(pausedUntil, this.count > 1 ? this.lastAt + 300 : -Infinity);
	}

	again(sent: Sent, unfinished: number, now: number): void {
		if (this.count++ > 0 && sent.unfinished < this.unfinished) this.hasTried = true;
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
	 * @param isEnough whether a single one says enough
	 * @returns whether time let it in: it may have taken the place of a task that has ended unseen
	 */
	letIn(now: number, unfinished: number, isEnough: boolean): boolean {
		if (this.extra === 0) {
			this.firstExtraAt = now;
			this.levelBefore = this.unfinished;
		}
		this.extra++;
		this.lastExtraAt = now;
		const isLong = this.firstExtraAt - this.since > this.readMs;
		const mayHaveEnded = isLong && this.count > 1 ? this.levelBefore : isEnough ? 0 : 1;
		if (this.extra > mayHaveEnded) return true;
		this.unfinished = unfinished;
		this.lookAt = -Infinity;
		return false;
	}

	/** @param isUnseen whether no task is followed */
	lesson(now: number, isUnseen: boolean): RateLesson {
		return {
			isUnseen,
			looks: this.count - this.refusedSinceExtra,
			startedAt: this.extra > 1 ? this.firstExtraAt : now,
			taken: Math.max(1, this.extra),
			isEmpty: this.level === 0,
			perMs: this.refusedSinceExtra > 0 ? this.extra / (now - this.since) : undefined,
		};
	}

	/** @returns the next look by the clock, ever more seldom */
	nextLook(now: number, unfinished: number, around: Surroundings): number {
		if (this.extra > 0) {
			const regular = Math.max(200, this.firstExtraAt - this.since);
			return now + regular * 2 ** Math.max(0, this.refusedSinceExtra - 1);
		}
		const isEmpty = unfinished === 0;
		if (isEmpty && !this.hasLookedEmpty) {
			this.hasLookedEmpty = true;
			return now + Math.max(1050, around.leastPauseMs);
		}
		const latest = isEmpty ? now + this.longestPause(now, around) : Infinity;
		const looks = around.isSmall ? FEWEST_LOOKS : around.wasPlaces ? FEW_LOOKS : LOOKS;
		const soonest = now + Math.max(400, (now - this.since) / 3, around.leastPauseMs);
		const moments = looks.flatMap((seconds) => {
			const ms = 1000 * seconds * (1 + 0.02 * around.chance) + 100;
			return [around.begunAt + ms, this.since + ms].filter((moment) => moment > soonest);
		});
		const last = now + Math.max(around.isSmall ? 300_000 : 60_000, 2 * (now - this.since));
		return Math.min(
			latest,
			moments.reduce((least, at) => Math.min(least, at), moments[0] ?? last),
		);
	}

	/** Where nothing is unfinished as far as is known: if no task is followed, tasks may be, and each look may be refused. */
	private longestPause(now: number, { isUnseen, isSmall }: Surroundings): number {
		const part = isSmall ? 2 : 0.5;
		return Math.max(LONGEST_EMPTY_MS, isUnseen ? part * (now - this.since) : 0);
	}
}
