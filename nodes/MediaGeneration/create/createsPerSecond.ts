/** The shortest window: within a window, creates that a timer delayed are made up for. */
const LEAST_WINDOW_MS = 250;

/** If the first two lessons are further apart than this, they tell nothing about the rate. */
const LONGEST_LESSON_MS = 120_000;

/** One lesson lowers the rate by half at most. */
const LEAST_PART = 0.5;

/** Slower lessons come from places that other runs took: after such a lesson the rate would hardly ever grow again. */
const LEAST_PER_MS = 1 / 10_000;

/** The rate grows by the cube of (creates held back since the lesson) / (creates of the lesson + this number). */
const CAUTION = 10;
const GROWTH = 0.15;

/**
 * How many creates the account admits per time: a number for each window, and none more before the next window begins. A
 * token bucket that fills evenly appears as a small window. The rate is learnt from the creates that were admitted
 * between two moments at which a pause alone let a create in. From there the rate grows, slowly at first and then ever
 * faster, as in TCP Cubic. All times are milliseconds of the clock.
 */
export class CreatesPerSecond {
	/** Whether a create of this window had to wait for the window. */
	holdsBack = false;

	/** Creates per millisecond, if a rate is known: now, and after the last lesson. */
	private perMs: number | undefined;
	private learntPerMs = 0;

	/** The creates of the last lesson, and the creates in full windows since then. */
	private learntFrom = 0;
	private heldBack = 0;

	/** The creates that were admitted at once. */
	private atOnce = 1;

	private windowAt = 0;
	private sentInWindow = 0;

	/** When a pause alone let a create in for the last time, and the creates that were admitted since then. */
	private freeAt: number | undefined;
	private takenSince = 0;

	/** The time from one create to the next. */
	get intervalMs(): number {
		return this.perMs === undefined ? 0 : 1 / this.perMs;
	}

	/** How many creates a window holds. */
	private get size(): number {
		return Math.max(this.atOnce, Math.round(LEAST_WINDOW_MS * (this.perMs ?? 0)));
	}

	private get nextWindowAt(): number {
		return this.windowAt + this.size * this.intervalMs;
	}

	/**
	 * @param underWay creates that are not answered yet
	 * @returns when the next create may be sent
	 */
	nextAt(now: number, underWay: number): number {
		if (this.perMs === undefined || now >= this.nextWindowAt) return -Infinity;
		// The first create shows whether the window has begun at the service, too.
		const isFirst = this.holdsBack && this.sentInWindow === 1;
		if (isFirst && underWay > 0) return Infinity;
		return this.sentInWindow < this.size ? -Infinity : this.nextWindowAt;
	}

	sent(now: number): void {
		if (this.perMs === undefined) return;
		if (now >= this.nextWindowAt) {
			this.holdsBack = this.sentInWindow >= this.size;
			if (this.holdsBack) this.heldBack += this.sentInWindow;
			this.windowAt = now;
			this.sentInWindow = 0;
			const cycles = this.heldBack / (this.learntFrom + CAUTION);
			this.perMs = this.learntPerMs * (1 + GROWTH * cycles ** 3);
		}
		this.sentInWindow++;
	}

	accepted(): void {
		this.takenSince++;
	}

	/**
	 * A pause alone has ended refusals, at some moment of the last pause. The begin of its last third is taken for that
	 * moment.
	 *
	 * @param since when the refusals began
	 * @param refusedAt when the last create was refused
	 */
	learn(since: number, refusedAt: number, now: number): void {
		// The create that was just admitted came after that moment.
		const taken = this.takenSince - 1;
		const before = this.freeAt;
		this.freeAt = now - (now - refusedAt) / 3;
		this.takenSince = 1;
		const ms = this.freeAt - (before ?? -Infinity);
		if (ms > LONGEST_LESSON_MS && this.perMs === undefined) return;
		if (this.freeAt - since > ms / 2) this.atOnce = taken;
		this.learntPerMs = Math.max(taken / ms, LEAST_PART * (this.perMs ?? 0), LEAST_PER_MS);
		this.perMs = this.learntPerMs;
		this.learntFrom = taken;
		this.heldBack = 0;
		this.windowAt = now;
		this.sentInWindow = 1;
	}
}
