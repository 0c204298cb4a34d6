import { LONGEST_WINDOW_MS, RequestWindow } from './requestWindow';

/** To look sooner again would be a refusal more. */
const FIRST_LOOK_MS = 150;
const NEXT_LOOK_MS = 1_050;

/** After a pause at most so much of the rate is made up for, until more has proved to be let in. */
const FIRST_BURST_MS = 500;
const MAX_BURST_MS = 60_000;

/** What one refusal shows of a rate is inexact: only more creates than these, and a part of all, show that it was lifted. */
const LIFTED_CREATES = 3;
const LIFTED_SHARE = 0.25;

/** A rate that is measured so much lower is not the one that was kept until now. */
const SAME_RATE = 0.7;

/** Faster than anybody sends. */
const MAX_PER_MS = 1;

/** What a refusal came to that only time has ended. */
export interface RateLesson {
	/** Refusals, the first included, until the service let in again. */
	looks: number;
	/** When it let in again. */
	startedAt: number;
	/** What it has let in since. */
	taken: number;
	/** Creates in a millisecond, where another refusal in between shows it. */
	perMs: number | undefined;
	/** Whether nothing was unfinished: then it was no accident, however long it took. */
	isEmpty: boolean;
	/** Whether no task is followed. */
	isUnseen: boolean;
}

/**
 * The pace of creates, as far as it is known: so many in a time, evenly (a token bucket), or so many at once in each
 * window of time. All times are milliseconds of the clock.
 *
 * It is learned from how many creates are let in between two moments at which the service had nothing left. It grows
 * a little with each create, and faster the longer nothing is refused, so that a limit that is lifted is noticed.
 */
export class RequestRate {
	/** Nothing is sent before: the service asked for it, or cannot be reached. */
	pausedUntil = -Infinity;

	/** How often a refusal has turned out to be the rate's, or an accident. */
	lessons = 0;

	private perMs: number | undefined;

	/** As it was learned, before it grew. */
	private learnedPerMs = Infinity;

	/** Whether it was lifted since. */
	private isLifted = false;

	readonly window: RequestWindow;

	private tokens = 0;
	private tokensAt = 0;
	private burstMs = FIRST_BURST_MS;
	private wasFull = false;
	private isFirstGuess = true;

	/** When the service had nothing left for the last time before, and what it has let in since. */
	private emptyAt = -Infinity;
	private takenSinceEmpty = 0;
	private before = { taken: 0, ms: 0 };

	private pauseMs = 0;

	/** What was known at the moment of the refusal in question. */
	private refusal = { at: 0, tokens: 0 };

	/** @param startedAt when the service began to let in */
	constructor(startedAt: number) {
		this.window = new RequestWindow(startedAt);
	}

	get isKnown(): boolean {
		return this.perMs !== undefined;
	}

	/** Creates under way at once: more would be refused together. */
	get mostUnderWay(): number {
		if (this.window.isEarly) return 1;
		return this.perMs === undefined ? Infinity : 2 + 200 * this.perMs;
	}

	/** To look a small part of the rhythm later costs little. */
	get leastPauseMs(): number {
		return this.perMs === undefined ? 0 : 0.1 / this.perMs;
	}

	/** Obeys a `Retry-After`. */
	pause(until: number): void {
		this.pausedUntil = Math.max(this.pausedUntil, until);
	}

	/** @returns when the next create may be sent, or earlier */
	nextAt(now: number): number {
		if (this.perMs === undefined) return this.pausedUntil;
		const { nextAt } = this.window;
		if (nextAt !== undefined) return Math.max(this.pausedUntil, nextAt);
		this.refill(now);
		if (this.tokens >= 1) return this.pausedUntil;
		return Math.max(this.pausedUntil, now + (1 - this.tokens) / this.perMs);
	}

	/**
	 * @param mayGrow whether a refusal more can be afforded
	 * @param isLook whether the create only looks if the service lets in again
	 */
	sent(now: number, mayGrow: boolean, isLook: boolean): void {
		this.window.send(now, mayGrow, isLook);
		this.refill(now);
		this.tokens--;
		// A rate that is not used up proves nothing.
		if (this.perMs === undefined || this.tokens >= 0.5) return;
		if (!mayGrow) return;
		this.perMs = Math.min(MAX_PER_MS, this.perMs * (1 + this.growth(this.perMs, now)));
		this.liftWhereMoreIsLetIn(now);
	}

	/** What was let in beyond the rate that was learned shows that it was lifted: then it is doubled, until it does not. */
	private liftWhereMoreIsLetIn(now: number): void {
		const more = this.takenSinceEmpty - this.learnedPerMs * (now - this.emptyAt);
		if (more <= LIFTED_CREATES + LIFTED_SHARE * this.takenSinceEmpty) return;
		this.learnedPerMs = this.perMs ?? Infinity;
		this.perMs = Math.min(MAX_PER_MS, 2 * this.learnedPerMs);
		this.isLifted = true;
		this.emptyAt = now;
		this.takenSinceEmpty = 0;
		this.before = { taken: 0, ms: 0 };
	}

	/** So that a rate that is right is exceeded by one create in some twenty, and not within 4 s. */
	private growth(perMs: number, now: number): number {
		const quiet = Math.min(this.takenSinceEmpty / 12, (now - this.window.startedAt) / 4000);
		const least = this.isFirstGuess ? 0.006 : Math.min(0.006, 0.031 / (perMs * 1000) ** 2);
		return least * (1 + quiet ** 2);
	}

	accepted(): void {
		this.takenSinceEmpty++;
		this.window.accepted();
	}

	/** The service used nothing up for a create that it refused. */
	returned(): void {
		this.tokens++;
	}

	/** @param isFirst whether it is the first refusal that may be the rate's, or a look thereafter */
	refused(now: number, isFirst: boolean): void {
		this.window.refused(now, isFirst);
		if (!isFirst) return;
		this.refill(now);
		this.refusal = { at: now, tokens: this.tokens };
	}

	/**
	 * @param maySearch whether a refusal more can be afforded
	 * @returns when to look whether the service lets in again; undefined where the rate does not tell
	 */
	lookAt(now: number, looks: number, maySearch: boolean): number | undefined {
		const windowAt = this.window.lookAt(now, looks, maySearch);
		if (windowAt !== undefined) return windowAt;
		if (looks > 1) return undefined;
		// A refusal that comes after time has ended another is no accident.
		if (this.perMs === undefined) return now + (this.lessons ? NEXT_LOOK_MS : FIRST_LOOK_MS);
		return now + Math.max(NEXT_LOOK_MS, Math.min(1.1 / this.perMs, 5000), this.leastPauseMs);
	}

	/** Time alone has ended the refusals: the service has something left again. */
	learn(now: number, lesson: RateLesson): void {
		this.lessons++;
		const sinceEmpty = this.refusal.at - this.emptyAt;
		const isRate =
			this.window.wasUsedUp || sinceEmpty < Math.max(LONGEST_WINDOW_MS, 3 * this.pauseMs);
		this.pauseMs = lesson.isEmpty ? now - this.refusal.at : 0;
		if (isRate) {
			this.learnPace(now, sinceEmpty, lesson);
		} else {
			this.before = { taken: 0, ms: 0 };
			this.burstMs = FIRST_BURST_MS;
			this.isFirstGuess = true;
			this.perMs ??= lesson.perMs;
			this.tokens = 0;
			this.tokensAt = now;
		}
		this.emptyAt = this.refusal.at;
		this.takenSinceEmpty = lesson.taken;
		this.window.turn(lesson, true);
	}

	private learnPace(now: number, ms: number, lesson: RateLesson): void {
		this.isFirstGuess = this.perMs === undefined;
		const taken = Math.max(1, this.takenSinceEmpty - lesson.taken);
		const measured = (taken + this.before.taken) / Math.max(ms + this.before.ms, 50);
		this.before = this.isLifted ? { taken: 0, ms: 0 } : { taken, ms };
		if (this.refusal.tokens >= 1) this.burstMs = Math.max(20, this.burstMs / 2);
		this.wasFull = false;
		// What few creates show is inexact, but a rate that was kept for long is nearly right.
		const kept = this.perMs ?? 0;
		const isKept = taken >= 10 && !this.isLifted && measured >= SAME_RATE * kept;
		this.perMs = isKept ? Math.max(measured, 0.9 * kept) : measured;
		this.learnedPerMs = this.perMs;
		this.isLifted = false;
		const pause = now - this.refusal.at;
		this.tokens = Math.min(pause, FIRST_BURST_MS, this.burstMs) * this.perMs - 1;
		this.tokensAt = now;
	}

	private refill(now: number): void {
		if (this.perMs === undefined) return;
		const most = Math.max(1, this.perMs * this.burstMs);
		this.tokens += (now - this.tokensAt) * this.perMs;
		this.tokensAt = now;
		if (this.tokens >= most) this.wasFull = true;
		this.tokens = Math.min(most, this.tokens);
		// All that was made up for was let in.
		if (this.wasFull && this.tokens < 1) {
			this.wasFull = false;
			this.burstMs = Math.min(MAX_BURST_MS, 2 * this.burstMs);
		}
	}
}
