const FIRST_PROBE_MS = 5000;
const LONGEST_PROBE_MS = 120_000;

/** A limit that differs by so much from the limit before has moved. */
const MOVED = 0.25;

/**
 * How many tasks the account lets be unfinished at once: a window that grows by addition, as TCP's does. A probe asks
 * for one place more. A probe that is refused is repeated after twice the time; a probe that is let in is followed by
 * more at once, in doubling steps. All times are milliseconds of the clock.
 */
export class ConcurrencyLimit {
	/** How many places the account has, as far as it is known: now, and before the probes that were let in. */
	private known = Infinity;
	private before = Infinity;

	/** The places that the end of a task has shown last. */
	private shown = -Infinity;

	private probeMs = FIRST_PROBE_MS;
	private probeAt = Infinity;

	/** @param random spreads the probes, from 0 to 1: without it a probe may meet the end of a task each time */
	constructor(private readonly random: () => number) {}

	/** Whether the last probes were let in. */
	get isClimbing(): boolean {
		return this.known > this.before;
	}

	/** @returns whether a create beside so many tasks and creates under way asks for more places than are known */
	isProbe(inFlight: number): boolean {
		return inFlight >= this.known;
	}

	/** @returns when a create may be sent beside so many unfinished tasks and creates under way */
	nextAt(unfinished: number, underWay: number): number {
		const inFlight = unfinished + underWay;
		if (inFlight < this.known) return -Infinity;
		if (this.isClimbing) return inFlight < 2 * this.known - this.before ? -Infinity : Infinity;
		return underWay > 0 ? Infinity : this.probeAt;
	}

	/** The service let in the last of so many unfinished tasks. */
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

	/** The service refused a create beside so many unfinished tasks, and let in when one of the tasks had ended. */
	set(unfinished: number, now: number): void {
		const hasMoved = Math.abs(unfinished - this.shown) > 1 + MOVED * this.shown;
		this.known = Math.max(1, unfinished);
		this.before = this.known;
		this.shown = this.known;
		this.probeMs = hasMoved ? FIRST_PROBE_MS : Math.min(LONGEST_PROBE_MS, 2 * this.probeMs);
		this.planProbe(now);
	}

	private planProbe(now: number): void {
		this.probeAt = now + this.probeMs * (0.8 + 0.4 * this.random());
	}
}
