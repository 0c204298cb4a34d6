import type { IDataObject } from 'n8n-workflow';

import { Doubt } from './doubt';
import {
	FIRST_PROBE_MS,
	learntFromStored,
	learntToStored,
	LET_IN_FOR_ONE_MORE,
	NOTHING_LEARNT,
} from './learntLimits';

/** The number of places has changed if it differs from the number before by this part. */
const MOVED = 0.25;

const LONGEST_PROBE_MS = 120_000;
/** The shortest window of the rate: within a window, creates that a timer delayed are made up for. */
const LEAST_WINDOW_MS = 250;
/** Lessons that are further apart than this tell nothing about the rate. */
const LONGEST_LESSON_MS = 120_000;
/** One lesson lowers the rate by half at most. */
const LEAST_PART = 0.5;
/** The rate grows by the cube of (creates held back since the lesson) / (creates of the lesson + this number). */
const CAUTION = 10;
const GROWTH = 0.15;
/** A longer time from one create to the next may come from another run's places, so the rate is probed. */
const SLOW_MS = 2000;

/** A place for one create. */
export interface Ticket {
	/** The refusals before the create. Of creates that were under way together only the first refusal tells something. */
	readonly refusals: number;
	/** The unfinished tasks when the create was sent. */
	readonly unfinished: number;
	/** What the create asks for: one more place than are known, or a create before the rate allows it. */
	readonly probes: 'places' | 'rate' | undefined;
	readonly sentAt: number;
}

/**
 * Decides when to send the next create. The service publishes neither how many tasks an account may have unfinished nor
 * how often it may create (specification, section 8). Both are learnt from refusals. If a create is admitted after the
 * end of a task, the places were used up. If a create is admitted after a pause alone, the rate was too high. Until the
 * cause is known, one create at a time is sent: when a task ends, and after growing pauses.
 *
 * - Places are a window with additive increase, as in TCP: a probe asks for one more place. After a refused probe the
 *   pause before the next probe doubles; after an admitted probe the next probe follows at once.
 * - The rate is a number of creates for each window, and none more before the next window begins. A token bucket that
 *   fills evenly appears as a small window. A lesson counts the creates between two moments at which a pause alone let a
 *   create in. From there the rate grows, slowly at first and then ever faster, as in TCP Cubic. A place that another run
 *   gives back looks like a slow rate: if a create is admitted too early, at the end of a task, there is no such rate.
 *
 * The class only decides: it gets the time and the random numbers, and waits for nothing. All times are milliseconds of
 * the clock.
 */
export class AccountLimits {
	/** Creates that are not answered yet. */
	underWay = 0;

	/** The unfinished tasks of this run, as far as known. */
	unfinished = 0;

	private readonly learnt = { ...NOTHING_LEARNT };
	private refusals = 0;
	private doubt: Doubt | undefined;
	/** Whether a task has ended since the last create. */
	private hasEnded = false;

	/** The present window of the rate, and whether a create of this window had to wait for the window. */
	private windowAt = -Infinity;
	private sentInWindow = 0;
	private holdsBack = false;
	/** When a pause alone let a create in for the last time, and the creates that were admitted since then. */
	private freeAt = -Infinity;
	private takenSince = 0;

	/** @param random from 0 to 1, spreads the probes, which might meet the end of a task each time otherwise */
	constructor(private readonly random: () => number = Math.random) {}

	/**
	 * @param stored what `toStored` returned in an earlier turn of the run
	 * @param date the present time of day, milliseconds since 1970
	 */
	static fromStored(stored: IDataObject, now: number, date = Date.now()): AccountLimits {
		const limits = new AccountLimits();
		Object.assign(limits.learnt, learntFromStored(stored, now, date));
		return limits;
	}

	/** @returns what is learnt of the account, as plain data, in which moments are times of day */
	toStored(now: number, date = Date.now()): IDataObject {
		return learntToStored(this.learnt, now, date);
	}

	/** No create is sent before a moment. */
	pause(until: number): void {
		this.learnt.pausedUntil = Math.max(this.learnt.pausedUntil, until);
	}

	/**
	 * @returns when to ask again, at the latest when the next create may be sent; Infinity: only something that happens can
	 *   help
	 */
	nextAt(now: number): number {
		const { underWay, unfinished, doubt, learnt } = this;
		const most = doubt ? 1 : 1 + learnt.takenSinceRefusal / LET_IN_FOR_ONE_MORE;
		if (underWay >= most) return Infinity;
		if (doubt) return Math.max(learnt.pausedUntil, doubt.nextAt(unfinished));
		const probeAt = underWay > 0 ? Infinity : learnt.placeProbeAt;
		const placeAt = unfinished + underWay < learnt.places ? -Infinity : probeAt;
		return Math.max(learnt.pausedUntil, placeAt, this.rateAllowsAt(now));
	}

	private rateAllowsAt(now: number): number {
		const { underWay, sentInWindow, nextWindowAt } = this;
		if (now >= nextWindowAt) return -Infinity;
		// The first create shows whether the window has begun at the service, too.
		if (this.holdsBack && sentInWindow === 1 && underWay > 0) return Infinity;
		if (sentInWindow < this.windowSize) return -Infinity;
		const mayProbe = this.hasEnded && underWay === 0 && 1 / this.learnt.perMs > SLOW_MS;
		return mayProbe && now >= this.learnt.rateProbeAt ? -Infinity : nextWindowAt;
	}

	/** How many creates a window holds. */
	private get windowSize(): number {
		return Math.max(this.learnt.atOnce, Math.round(LEAST_WINDOW_MS * this.learnt.perMs));
	}

	private get nextWindowAt(): number {
		const { perMs } = this.learnt;
		return perMs === Infinity ? -Infinity : this.windowAt + this.windowSize / perMs;
	}

	send(now: number): Ticket {
		const { refusals, unfinished, underWay, learnt } = this;
		const isEarly = !this.doubt && now < this.nextWindowAt && this.sentInWindow >= this.windowSize;
		const isProbe = unfinished + underWay >= learnt.places;
		this.underWay++;
		this.hasEnded = false;
		if (!isEarly) this.countInWindow(now);
		const probes = isEarly ? 'rate' : isProbe ? 'places' : undefined;
		return { refusals, unfinished, probes, sentAt: now };
	}

	private countInWindow(now: number): void {
		const { learnt } = this;
		if (learnt.perMs !== Infinity && now >= this.nextWindowAt) {
			this.holdsBack = this.sentInWindow >= this.windowSize;
			if (this.holdsBack) learnt.heldBack += this.sentInWindow;
			this.windowAt = now;
			this.sentInWindow = 0;
			const cycles = learnt.heldBack / (learnt.learntFrom + CAUTION);
			learnt.perMs = learnt.learntPerMs * (1 + GROWTH * cycles ** 3);
		}
		this.sentInWindow++;
	}

	/** The service took the task, which is unfinished until `finished` is called. */
	accepted(ticket: Ticket, now: number): void {
		const { doubt, learnt } = this;
		this.underWay--;
		this.unfinished++;
		this.takenSince++;
		learnt.takenSinceRefusal++;
		learnt.places = Math.max(learnt.places, this.unfinished);
		if (ticket.probes === 'rate') learnt.perMs = Infinity;
		if (!doubt || ticket.refusals !== this.refusals) return;
		this.doubt = undefined;
		const isPlace = ticket.unfinished < doubt.unfinished && !doubt.isRate;
		if (isPlace) this.setPlaces(doubt.unfinished, now);
		else this.learnRate(doubt, now);
	}

	/** A create was refused beside so many unfinished tasks, and a create was admitted when one of them had ended. */
	private setPlaces(places: number, now: number): void {
		const { proven } = this.learnt;
		const hasMoved = Math.abs(places - proven) > 1 + MOVED * proven;
		Object.assign(this.learnt, { places, proven: places });
		if (hasMoved) this.learnt.placeProbeMs = FIRST_PROBE_MS / 2;
		this.planPlaceProbe(now);
	}

	private planPlaceProbe(now: number): void {
		const { learnt } = this;
		learnt.placeProbeMs = Math.min(LONGEST_PROBE_MS, 2 * learnt.placeProbeMs);
		learnt.placeProbeAt = now + learnt.placeProbeMs * (0.8 + 0.4 * this.random());
	}

	private planRateProbe(now: number): void {
		const { learnt } = this;
		learnt.rateProbeMs = Math.min(LONGEST_PROBE_MS, 2 * learnt.rateProbeMs);
		learnt.rateProbeAt = now + learnt.rateProbeMs;
	}

	/**
	 * A pause alone has ended refusals, at some moment of the last pause. The begin of its last third is taken for that
	 * moment.
	 */
	private learnRate({ since, refusedAt }: Doubt, now: number): void {
		const { learnt } = this;
		// The create that was just admitted came after that moment.
		const taken = this.takenSince - 1;
		const freeAt = now - (now - refusedAt) / 3;
		const ms = freeAt - this.freeAt;
		Object.assign(this, { freeAt, takenSince: 1 });
		if (ms > LONGEST_LESSON_MS) return;
		if (freeAt - since > ms / 2) learnt.atOnce = taken;
		const least = learnt.perMs === Infinity ? 0 : LEAST_PART * learnt.perMs;
		const perMs = Math.max(taken / ms, least);
		Object.assign(learnt, { perMs, learntPerMs: perMs, learntFrom: taken, heldBack: 0 });
		Object.assign(this, { windowAt: now, sentInWindow: 1 });
	}

	/** The service certainly did not take the task. */
	refused(ticket: Ticket, now: number, retryAfterMs = 0): void {
		const { doubt, learnt } = this;
		this.underWay--;
		this.pause(now + retryAfterMs);
		if (ticket.refusals !== this.refusals) return;
		this.refusals++;
		learnt.takenSinceRefusal = 0;
		// A task may have ended while the create was under way.
		const unfinished = Math.max(ticket.unfinished, this.unfinished);
		const isRising = learnt.places > learnt.proven;
		if (doubt) doubt.refusedAgain(ticket.sentAt, unfinished, now);
		else if (ticket.probes === 'rate') this.planRateProbe(now);
		else if (ticket.probes === 'places' && !isRising) this.planPlaceProbe(now);
		else this.doubt = new Doubt(now, unfinished, this.holdsBack, 1 / learnt.perMs);
	}

	/** A create ended without telling anything about the account's limits. */
	ended(): void {
		this.underWay--;
	}

	/** A task has ended at the service, or nobody follows it any more. */
	finished(): void {
		this.unfinished--;
		this.hasEnded = true;
	}
}
