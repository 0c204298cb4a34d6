/** The pauses between two probes for one more place. */
const FIRST_PROBE_MS = 5000;
const LONGEST_PROBE_MS = 120_000;

/** A limit has changed if it differs from the limit before by this part. */
const MOVED = 0.25;

/**
 * How many tasks the account may have unfinished: a window with additive increase, as in TCP. A probe asks for one more
 * place. After a refused probe the pause before the next probe doubles. After an admitted probe the next probe follows
 * at once, in doubling steps. All times are milliseconds of the clock.
 */
export class ConcurrencyLimit {
	/** The places of the account, as far as known: now, and before the probes that were admitted. */
	private known = Infinity;
	private before = Infinity;

	/** The places that the end of a task has proved last. */
	private proven = -Infinity;

	private probeMs = FIRST_PROBE_MS;
	private probeAt = Infinity;

	/** @param random from 0 to 1, spreads the probes, which might meet the end of a task each time otherwise */
	constructor(private readonly random: () => number) {}

	/** Whether the last probes were admitted. */
	get isClimbing(): boolean {
		return this.known > this.before;
	}

	/** @returns whether a create asks for more places than are known */
	isProbe(inFlight: number): boolean {
		return inFlight >= this.known;
	}

	/** @returns when a create may be sent */
	nextAt(unfinished: number, underWay: number): number {
		const inFlight = unfinished + underWay;
		if (inFlight < this.known) return -Infinity;
		if (this.isClimbing) return inFlight < 2 * this.known - this.before ? -Infinity : Infinity;
		return underWay > 0 ? Infinity : this.probeAt;
	}

	/** The service admitted a create, with which this many tasks are unfinished. */
	accepted(unfinished: number): void {
		if (unfinished <= this.known) return;
		if (!this.isClimbing) this.before = this.known;
		this.known = unfinished;
	}

	/** A probe was refused. */
	probeRefused(now: number): void {
		this.probeMs = Math.min(LONGEST_PROBE_MS, 2 * this.probeMs);
		this.planProbe(now);
	}

	/**
	 * The service refused a create while this many tasks were unfinished, and admitted a create when one of them had ended.
	 */
	set(unfinished: number, now: number): void {
		const hasMoved = Math.abs(unfinished - this.proven) > 1 + MOVED * this.proven;
		this.known = unfinished;
		this.before = unfinished;
		this.proven = unfinished;
		this.probeMs = hasMoved ? FIRST_PROBE_MS : Math.min(LONGEST_PROBE_MS, 2 * this.probeMs);
		this.planProbe(now);
	}

	private planProbe(now: number): void {
		this.probeAt = now + this.probeMs * (0.8 + 0.4 * this.random());
	}
}
