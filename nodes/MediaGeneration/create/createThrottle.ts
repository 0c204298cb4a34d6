import { CreatesPerSecond } from './createsPerSecond';

/** The pauses between two attempts while nothing is let in. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_BESIDE_TASKS_MS = 120_000;
const PAUSE_GROWTH = 3;

/** A create that came too early for the rate is sent again after this part of the time between two creates. */
const EARLY = 0.6;

/** The pauses between two probes for a place more. */
const FIRST_PROBE_MS = 5000;
const LONGEST_PROBE_MS = 120_000;

/** A limit that differs by so much from the limit before has moved. */
const MOVED = 0.25;

/** A shorter `Retry-After`, or a time in the past as a slow clock makes it, would be a storm of requests. */
const LEAST_RETRY_AFTER_MS = 100;

/** One create may be under way, and one more for so many that were let in since a refusal; two at first. */
const LET_IN_FOR_ONE_MORE = 12;

/** A place for one create. */
export interface Ticket {
	/** The refusals before the create. What was under way at a refusal says nothing new. */
	readonly refusals: number;
	/** Unfinished tasks when the create was sent. */
	readonly unfinished: number;
	/** Whether the create asks for more places than are known. */
	readonly isProbe: boolean;
	readonly sentAt: number;
}

/** Refusals that are not understood yet. */
interface Doubt {
	/** When the first create was refused, and when the last was. */
	readonly since: number;
	refusedAt: number;
	/** Unfinished tasks at the last refusal. */
	unfinished: number;
	/** With so few unfinished tasks a create is sent before the pause is over. */
	tryAt: number;
	pauseEndsAt: number;
	pauseMs: number;
	/** Whether the rate is taken for the cause, and so time will end the refusals. */
	isRate: boolean;
}

/**
 * When to send the next create. The service publishes neither how many tasks an account may have unfinished nor how
 * often it may ask (specification, section 8). Both are learnt from refusals: if the end of a task lets in again, the
 * places were used up; if time alone lets in again, the rate was. Until then one create at a time is sent: when tasks
 * end, and after ever longer pauses.
 *
 * The law only decides: time and chance are handed in, and nothing is awaited. All times are milliseconds of the clock.
 */
export class CreateThrottle {
	/** Creates that are not answered yet. */
	underWay = 0;

	/** Tasks of this run that have not ended, as far as it is known. */
	unfinished = 0;

	private refusals = 0;
	private takenSinceRefusal = LET_IN_FOR_ONE_MORE;
	private pausedUntil = -Infinity;
	private doubt: Doubt | undefined;
	private readonly concurrency: ConcurrencyLimit;
	private readonly rate = new CreatesPerSecond();

	/** @param random spreads the probes, from 0 to 1 */
	constructor(random: () => number = Math.random) {
		this.concurrency = new ConcurrencyLimit(random);
	}

	/** Sends nothing before a moment. */
	pause(until: number): void {
		this.pausedUntil = Math.max(this.pausedUntil, until);
	}

	/** @returns when the next create may be sent, or earlier; Infinity: not before something happens */
	nextAt(now: number): number {
		const { underWay, unfinished, concurrency, rate, pausedUntil, doubt } = this;
		const most = doubt ? 1 : 1 + this.takenSinceRefusal / LET_IN_FOR_ONE_MORE;
		if (underWay >= most) return Infinity;
		if (!doubt) {
			const placeAt = concurrency.nextAt(unfinished, underWay);
			return Math.max(pausedUntil, placeAt, rate.nextAt(now, underWay));
		}
		return Math.max(pausedUntil, unfinished <= doubt.tryAt ? -Infinity : doubt.pauseEndsAt);
	}

	send(now: number): Ticket {
		const { refusals, unfinished } = this;
		const isProbe = this.concurrency.isProbe(unfinished + this.underWay);
		this.underWay++;
		this.rate.sent(now);
		return { refusals, unfinished, isProbe, sentAt: now };
	}

	/** The service took the task, which is unfinished from now on. */
	accepted(ticket: Ticket, now: number): void {
		this.underWay--;
		this.unfinished++;
		this.takenSinceRefusal++;
		this.rate.accepted();
		this.concurrency.accepted(this.unfinished);
		const { doubt } = this;
		if (!doubt || ticket.refusals !== this.refusals) return;
		this.doubt = undefined;
		if (ticket.unfinished < doubt.unfinished && !doubt.isRate)
			this.concurrency.set(doubt.unfinished, now);
		else this.rate.learn(doubt.since, doubt.refusedAt, now);
	}

	/** The service certainly did not take the task, and says so. */
	refused(ticket: Ticket, now: number, retryAfterMs = 0): void {
		this.underWay--;
		if (retryAfterMs >= LEAST_RETRY_AFTER_MS) this.pause(now + retryAfterMs);
		if (ticket.refusals !== this.refusals) return;
		this.refusals++;
		this.takenSinceRefusal = 0;
		// A task may have ended while the create was under way.
		const unfinished = Math.max(ticket.unfinished, this.unfinished);
		if (this.doubt) this.refusedAgain(this.doubt, ticket, unfinished, now);
		else if (ticket.isProbe && !this.concurrency.isClimbing) this.concurrency.probeRefused(now);
		else this.doubt = this.newDoubt(unfinished, now);
	}

	private newDoubt(unfinished: number, now: number): Doubt {
		const isRate = this.rate.holdsBack;
		const pauseMs = Math.max(FIRST_PAUSE_MS, EARLY * this.rate.intervalMs);
		const pauseEndsAt = now + pauseMs;
		const tryAt = isRate ? -1 : unfinished - 1;
		return { since: now, refusedAt: now, unfinished, tryAt, pauseEndsAt, pauseMs, isRate };
	}

	private refusedAgain(doubt: Doubt, { sentAt }: Ticket, unfinished: number, now: number): void {
		doubt.isRate = false;
		doubt.refusedAt = now;
		doubt.unfinished = unfinished;
		// Many places may have gone at once: each attempt waits for half of the tasks to end.
		doubt.tryAt = Math.ceil(unfinished / 2) - 1;
		if (sentAt < doubt.pauseEndsAt) return;
		// While a task is unfinished, its end is the next occasion.
		const longest = unfinished > 0 ? LONGEST_PAUSE_BESIDE_TASKS_MS : LONGEST_PAUSE_MS;
		doubt.pauseMs = Math.min(longest, PAUSE_GROWTH * doubt.pauseMs);
		doubt.pauseEndsAt = now + doubt.pauseMs;
	}

	/** A create ended in a way that says nothing of the account. */
	ended(): void {
		this.underWay--;
	}

	/** Takes on a task of an earlier try, which may be unfinished still. */
	adopt(): void {
		this.unfinished++;
	}

	/** A task has ended at the service, or is not followed any more. */
	finished(): void {
		this.unfinished--;
	}
}

/**
 * How many tasks the account lets be unfinished at once: a window that grows by addition, as TCP's does. A probe asks
 * for one place more. A probe that is refused is repeated after twice the time; a probe that is let in is followed by
 * more at once, in doubling steps. All times are milliseconds of the clock.
 */
class ConcurrencyLimit {
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
