import { ConcurrencyLimit } from './concurrencyLimit';
import { CreatesPerSecond } from './createsPerSecond';

/** The pauses between two attempts while nothing is admitted. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_BESIDE_TASKS_MS = 120_000;
const PAUSE_GROWTH = 3;

/** A create that came too early for the rate is tried again after this part of the time between two creates. */
const EARLY = 0.6;

/** After a refusal two creates may be under way, and one more for each 12 that were admitted since. */
const LET_IN_FOR_ONE_MORE = 12;

/** A place for one create. */
export interface Ticket {
	/** The refusals before the create. Of creates that were under way together only the first refusal tells something. */
	readonly refusals: number;
	/** The unfinished tasks when the create was sent. */
	readonly unfinished: number;
	/** Whether the create asks for more places than are known. */
	readonly isProbe: boolean;
	readonly sentAt: number;
}

/** Refusals whose cause is not known yet. */
interface Doubt {
	/** When the first and the last create was refused. */
	readonly since: number;
	refusedAt: number;
	/** The unfinished tasks at the last refusal. */
	unfinished: number;
	/** If only this many tasks are unfinished, a create is sent before the pause is over. */
	tryAt: number;
	pauseEndsAt: number;
	pauseMs: number;
	/** Whether the rate is assumed to be the cause, so that time will end the refusals. */
	isRate: boolean;
}

/**
 * Decides when to send the next create. The service publishes neither how many tasks an account may have unfinished nor
 * how often it may create (specification, section 8). Both are learnt from refusals. If a create is admitted after the
 * end of a task, the places were used up. If a create is admitted after a pause alone, the rate was too high. Until the
 * cause is known, one create at a time is sent: when a task ends, and after growing pauses.
 *
 * The class only decides: it gets the time and the random numbers, and waits for nothing. All times are milliseconds of
 * the clock.
 */
export class CreateThrottle {
	/** Creates that are not answered yet. */
	underWay = 0;

	/** The unfinished tasks of this run, as far as known. */
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

	/** No create is sent before a moment. */
	pause(until: number): void {
		this.pausedUntil = Math.max(this.pausedUntil, until);
	}

	/**
	 * @returns when to ask again, at the latest when the next create may be sent; Infinity: only something that happens can
	 *   help
	 */
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

	/** The service took the task, which is unfinished until `finished` is called. */
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

	/** The service certainly did not take the task. */
	refused(ticket: Ticket, now: number, retryAfterMs = 0): void {
		this.underWay--;
		this.pause(now + retryAfterMs);
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
		// The account may have lost many places at once, so each attempt waits until half of the tasks have ended.
		doubt.tryAt = Math.ceil(unfinished / 2) - 1;
		if (sentAt < doubt.pauseEndsAt) return;
		// While a task is unfinished, its end is the next occasion.
		const longest = unfinished > 0 ? LONGEST_PAUSE_BESIDE_TASKS_MS : LONGEST_PAUSE_MS;
		doubt.pauseMs = Math.min(longest, PAUSE_GROWTH * doubt.pauseMs);
		doubt.pauseEndsAt = now + doubt.pauseMs;
	}

	/** A create ended without telling anything about the account's limits. */
	ended(): void {
		this.underWay--;
	}

	/** A task has ended at the service, or nobody follows it any more. */
	finished(): void {
		this.unfinished--;
	}
}
