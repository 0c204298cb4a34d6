/** The bucket holds what comes in in this time. */
const BURST_MS = 250;

/** A longer time between two moments at which nothing was left says nothing of a rate that is not known yet. */
const LONGEST_LESSON_MS = 120_000;

/** No lesson makes the rate fall further at once. */
const LEAST_PART = 0.5;

/** The rate grows by the cube of what was let in, against what was let in before the refusal, and this many more. */
const CAUTION = 10;
const GROWTH = 0.1;

/**
 * How many creates the account lets in in a time: a token bucket. Its rate is learnt from what was let in between two
 * moments at which the service had nothing left. From there the rate grows, hardly at first and then ever faster, as
 * TCP Cubic does. All times are milliseconds of the clock.
 */
export class Rate {
	/** Creates in a millisecond, where a rate is known. */
	private perMs: number | undefined;

	/** The rate of the last lesson. */
	private learntPerMs = 0;

	/** What was let in for the last lesson. */
	private learntFrom = 0;

	/** Creates since the last lesson that the bucket has held back. */
	private heldBack = 0;

	private tokens = 0;

	private tokensAt = 0;

	/** When the service had nothing left for the last time. */
	private emptyAt: number | undefined;

	private takenSinceEmpty = 0;

	/** Whether the bucket is empty. */
	get isUsedUp(): boolean {
		return this.perMs !== undefined && this.tokens < 1;
	}

	/** From one create to the next. */
	get intervalMs(): number {
		return this.perMs === undefined ? 0 : 1 / this.perMs;
	}

	/** @returns when the next create may be sent */
	nextAt(now: number): number {
		if (this.perMs === undefined) return -Infinity;
		this.refill(this.perMs, now);
		return this.tokens >= 1 ? -Infinity : now + (1 - this.tokens) / this.perMs;
	}

	sent(now: number): void {
		if (this.perMs === undefined) return;
		this.refill(this.perMs, now);
		this.tokens--;
		if (this.isUsedUp) this.heldBack++;
		const cycles = this.heldBack / (this.learntFrom + CAUTION);
		this.perMs = this.learntPerMs * (1 + GROWTH * cycles ** 3);
	}

	accepted(): void {
		this.takenSinceEmpty++;
	}

	/** The service used nothing up for a create that it refused. */
	returned(): void {
		this.tokens++;
	}

	/**
	 * Time alone has ended refusals: when they began, the service had nothing left.
	 *
	 * @param at when the refusals began
	 */
	learn(at: number, now: number): void {
		// The create that has just been let in came after that moment.
		const taken = this.takenSinceEmpty - 1;
		const ms = at - (this.emptyAt ?? -Infinity);
		this.emptyAt = at;
		this.takenSinceEmpty = 1;
		if (taken < 1 || ms <= 0 || (this.perMs === undefined && ms > LONGEST_LESSON_MS)) return;
		this.learntPerMs = Math.max(taken / ms, LEAST_PART * (this.perMs ?? 0));
		this.perMs = this.learntPerMs;
		this.learntFrom = taken;
		this.heldBack = 0;
		this.tokens = 0;
		this.tokensAt = now;
	}

	private refill(perMs: number, now: number): void {
		const most = Math.max(1, perMs * BURST_MS);
		this.tokens = Math.min(most, this.tokens + (now - this.tokensAt) * perMs);
		this.tokensAt = now;
	}
}
