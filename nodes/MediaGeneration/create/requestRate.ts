/** Refused twice within this time, the service counts requests; further apart these were two accidents. */
const LONGEST_WINDOW_MS = 90_000;

/** To look sooner again would be a refusal more. */
const FIRST_LOOK_MS = 150;
const NEXT_LOOK_MS = 1_050;

/** After a pause at most so much of the rate is made up for, until more has proved to be let in. */
const FIRST_BURST_MS = 500;
const MAX_BURST_MS = 60_000;

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

	/** A window: creates let in at once, and milliseconds from one window to the next. */
	private window: { quota: number; ms: number } | undefined;

	/** What may be a window, if the next refusal comes after as many creates. */
	private guess: { quota: number; ms: number } | undefined;

	private tokens = 0;
	private tokensAt = 0;
	private burstMs = FIRST_BURST_MS;
	private wasFull = false;
	private isFirstGuess = true;

	/** When the service had nothing left for the last time before, and what it has let in since. */
	private emptyAt = -Infinity;
	private takenSinceEmpty = 0;
	private before = { taken: 0, ms: 0 };

	/** Since the service last began to let in. */
	private sentInCycle = 0;
	private takenInCycle = 0;
	private looksBefore = 0;
	private pauseMs = 0;

	/** What was known at the moment of the refusal in question. */
	private refusal = { at: 0, taken: 0, tokens: 0 };

	/** @param cycleStart when the service began to let in */
	constructor(private cycleStart: number) {}

	get isKnown(): boolean {
		return this.perMs !== undefined;
	}

	get begunAt(): number {
		return this.cycleStart;
	}

	/** Creates under way at once: more would be refused together. */
	get mostUnderWay(): number {
		return this.perMs === undefined ? Infinity : 2 + 200 * this.perMs;
	}

	/** Obeys a `Retry-After`. */
	pause(until: number): void {
		this.pausedUntil = Math.max(this.pausedUntil, until);
	}

	/** @returns when the next create may be sent, or earlier */
	nextAt(now: number): number {
		if (this.perMs === undefined) return this.pausedUntil;
		if (this.window) {
			const isUsedUp = this.sentInCycle >= this.window.quota;
			return isUsedUp
				? Math.max(this.pausedUntil, this.cycleStart + this.window.ms)
				: this.pausedUntil;
		}
		this.refill(now);
		if (this.tokens >= 1) return this.pausedUntil;
		return Math.max(this.pausedUntil, now + (1 - this.tokens) / this.perMs);
	}

	/**
	 * @param mayGrow whether a refusal more can be afforded
	 * @param isLook whether the create only looks if the service lets in again
	 */
	sent(now: number, mayGrow: boolean, isLook: boolean): void {
		if (this.window && !isLook && now >= this.cycleStart + this.window.ms) {
			const { quota } = this.window;
			if (mayGrow && this.takenInCycle >= quota) this.window.quota += Math.ceil(quota / 25);
			this.begin(now, 0);
		}
		this.refill(now);
		this.tokens--;
		this.sentInCycle++;
		// A rate that is not used up proves nothing.
		if (this.perMs === undefined || this.tokens >= 0.5) return;
		this.perMs = Math.min(MAX_PER_MS, this.perMs * (1 + this.growth(this.perMs, now, mayGrow)));
	}

	/** So that a rate that is right is exceeded by one create in some twenty, and not within 4 s. */
	private growth(perMs: number, now: number, mayGrow: boolean): number {
		const quiet = Math.min(this.takenSinceEmpty / 12, (now - this.cycleStart) / 4000);
		const least = this.isFirstGuess ? 0.006 : Math.min(0.006, 0.031 / (perMs * 1000) ** 2);
		return least * (1 + quiet ** 2) * (mayGrow ? 1 : 0.25);
	}

	accepted(): void {
		this.takenSinceEmpty++;
		this.takenInCycle++;
	}

	/** The service used nothing up for a create that it refused. */
	returned(): void {
		this.tokens++;
	}

	/** The first refusal of a question that may be the rate's. */
	refused(now: number): void {
		this.refill(now);
		this.refusal = { at: now, taken: this.takenInCycle, tokens: this.tokens };
	}

	/** @returns when to look whether the service lets in again; undefined where the rate does not tell */
	lookAt(now: number, looks: number): number | undefined {
		const windowMs =
			this.window && looks <= 4
				? this.window.ms
				: looks === 1 && this.guess && this.refusal.taken > 0.8 * this.guess.quota
					? this.guess.ms
					: undefined;
		if (windowMs !== undefined) {
			const due = this.cycleStart + windowMs;
			if (due > now) return due;
			if (this.window) return now + Math.max(200, windowMs / 20);
		}
		if (looks > 1) return undefined;
		if (this.perMs === undefined) return now + FIRST_LOOK_MS;
		return now + Math.max(NEXT_LOOK_MS, Math.min(1.1 / this.perMs, 5000));
	}

	/** Time alone has ended the refusals: the service has something left again. */
	learn(now: number, lesson: RateLesson): void {
		this.lessons++;
		const sinceEmpty = this.refusal.at - this.emptyAt;
		const isRate = sinceEmpty < Math.max(LONGEST_WINDOW_MS, 3 * this.pauseMs);
		this.pauseMs = lesson.isEmpty ? now - this.refusal.at : 0;
		this.learnWindow(lesson, isRate);
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
		this.looksBefore = lesson.looks;
		this.emptyAt = this.refusal.at;
		this.takenSinceEmpty = lesson.taken;
		this.begin(lesson.startedAt, lesson.taken);
	}

	private learnWindow({ looks, startedAt }: RateLesson, isRate: boolean): void {
		const { taken, at } = this.refusal;
		const ms = startedAt - this.cycleStart;
		const isBurst = taken >= 4 && ms > 5000 && at - this.cycleStart < ms / 2;
		this.guess = looks > 1 && isBurst ? { quota: taken, ms } : undefined;
		if (!isRate) {
			this.window = undefined;
		} else if (this.window) {
			const isWrong = taken < this.window.quota / 2;
			this.window = isWrong ? undefined : { quota: taken, ms: looks > 1 ? ms : this.window.ms };
		} else if (this.looksBefore > 1 && isBurst) {
			this.window = { quota: taken, ms };
		}
		if (this.window && this.window.ms > LONGEST_WINDOW_MS) this.window = undefined;
	}

	private learnPace(now: number, ms: number, lesson: RateLesson): void {
		this.isFirstGuess = this.perMs === undefined;
		const taken = Math.max(1, this.takenSinceEmpty - lesson.taken);
		const measured = (taken + this.before.taken) / Math.max(ms + this.before.ms, 50);
		this.before = { taken, ms };
		if (this.refusal.tokens >= 1) this.burstMs = Math.max(20, this.burstMs / 2);
		this.wasFull = false;
		// What few creates show is inexact, but a rate that was kept for long is nearly right.
		this.perMs = taken < 10 ? measured : Math.max(measured, 0.9 * (this.perMs ?? 0));
		const pause = now - this.refusal.at;
		this.tokens = Math.min(pause, FIRST_BURST_MS, this.burstMs) * this.perMs - 1;
		this.tokensAt = now;
	}

	private begin(at: number, taken: number): void {
		this.cycleStart = at;
		this.sentInCycle = taken;
		this.takenInCycle = taken;
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
