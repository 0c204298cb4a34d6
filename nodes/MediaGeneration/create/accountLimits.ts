import type { IDataObject } from 'n8n-workflow';

/** The window of creates under way: two after a refusal, and one more for each 12 that were admitted since. */
const ADMITTED_FOR_ONE_MORE = 12;

/** The pauses between two attempts while nothing is admitted. An unfinished task makes an occasion when it ends. */
const FIRST_PAUSE_MS = 250;
const PAUSE_GROWTH = 3;
const LONGEST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_BESIDE_TASKS_MS = 120_000;
/** A create that came too early for the rate is tried again after this part of the time between two creates. */
const EARLY = 0.6;
/** The pauses between two probes double from the first to the longest. */
const FIRST_PROBE_MS = 5_000;
const LONGEST_PROBE_MS = 120_000;
/** The number of places has changed if it differs from the number before by this part. */
const MOVED = 0.25;
/** The shortest window of the rate: within a window, creates that a timer delayed are made up for. */
const LEAST_WINDOW_MS = 250;
/** Lessons that are further apart than this tell nothing about the rate, and one lesson lowers the rate by half at most. */
const LONGEST_LESSON_MS = 120_000;
const LEAST_PART = 0.5;
/** The rate grows by this part with each window that has held a create back. */
const GROWTH = 0.015;

/** What is learnt of an account's limits, and outlives a turn of the run. */
const NOTHING_LEARNT = {
	admittedSinceRefusal: ADMITTED_FOR_ONE_MORE,
	/** The places of the account: as far as known, and as the end of a task has proved them last. */
	places: Infinity,
	proven: -Infinity,
	probeMs: FIRST_PROBE_MS,
	/** Creates per millisecond, and how many were admitted at once. */
	perMs: Infinity,
	atOnce: 1,
};

/** One create that is admitted, with the refusals and the unfinished tasks before it. */
export interface Ticket {
	readonly sentAt: number;
	readonly refusals: number;
	readonly unfinished: number;
	/** Whether the create asks for one more place than are known. */
	readonly isProbe: boolean;
}

/** Refusals whose cause is not known yet. */
interface Doubt {
	/** When the first create was refused, and the last one; and the unfinished tasks then. */
	readonly since: number;
	refusedAt: number;
	unfinished: number;
	/** Beside so many unfinished tasks a create is sent before the pause is over. */
	tryBeside: number;
	/** Whether time will end the refusals, as far as known. */
	isRate: boolean;
	pauseMs: number;
	pauseEndsAt: number;
}

/**
 * Decides when to send the next create. The service publishes neither how many tasks an account may have unfinished nor
 * how often it may create (specification, section 8). Both are learnt from refusals. If a create is admitted after the
 * end of a task, the places were used up. If a create is admitted after a pause alone, the rate was too high. Until the
 * cause is known, one create at a time is sent: when a task ends, and after growing pauses. All times are milliseconds.
 *
 * - Places are a window with additive increase, as in TCP: a probe asks for one more place. After a refused probe the
 *   pause before the next probe doubles; after an admitted probe the next probe follows at once.
 * - The rate is a number of creates for each window, and none more before the next window begins. A token bucket that
 *   fills evenly appears as a small window. A lesson counts the creates between two moments at which a pause alone let a
 *   create in. From there the rate grows a little with each window.
 */
export class AccountLimits {
	/** The creates that are not answered yet, and the unfinished tasks of this run, as far as known. */
	underWay = 0;
	unfinished = 0;
	private readonly learnt = { ...NOTHING_LEARNT };
	private refusals = 0;
	private doubt: Doubt | undefined;
	private pausedUntil = -Infinity;
	/** A turn may probe at once: the account may have changed since the turn before. */
	private probeAt = -Infinity;
	/** The present window of the rate, and whether a create had to wait for it. */
	private windowAt = -Infinity;
	private sentInWindow = 0;
	private holdsBack = false;
	/** When a pause alone let a create in for the last time, and the creates that were admitted since then. */
	private freeAt = -Infinity;
	private admittedSince = 0;

	/** @param random from 0 to 1, spreads the probes, which might meet the end of a task each time otherwise */
	constructor(private readonly random: () => number = Math.random) {}

	/** @param stored what `toStored` returned in an earlier turn of the run */
	static fromStored(stored: IDataObject): AccountLimits {
		const limits = new AccountLimits();
		const known = Object.keys(NOTHING_LEARNT).filter((name) => typeof stored[name] === 'number');
		for (const name of known) Object.assign(limits.learnt, { [name]: stored[name] });
		return limits;
	}

	/** @returns what is learnt of the account, as plain data: JSON has no Infinity */
	toStored(): IDataObject {
		return Object.fromEntries(Object.entries(this.learnt).filter(([, value]) => isFinite(value)));
	}

	/** No create is sent before a moment. */
	pause(until: number): void {
		this.pausedUntil = Math.max(this.pausedUntil, until);
	}

	/** @returns when to ask again; Infinity: when a create is answered or a task ends */
	nextAt(): number {
		const { underWay, unfinished, doubt, learnt } = this;
		const most = doubt ? 1 : 1 + learnt.admittedSinceRefusal / ADMITTED_FOR_ONE_MORE;
		if (underWay >= most) return Infinity;
		if (doubt && unfinished <= doubt.tryBeside) return this.pausedUntil;
		if (doubt) return Math.max(this.pausedUntil, doubt.pauseEndsAt);
		const probeAt = underWay > 0 ? Infinity : this.probeAt;
		const placeAt = unfinished + underWay < learnt.places ? -Infinity : probeAt;
		const isFull = this.sentInWindow >= this.windowSize;
		return Math.max(this.pausedUntil, placeAt, isFull ? this.nextWindowAt : -Infinity);
	}

	private get windowSize(): number {
		return Math.max(this.learnt.atOnce, Math.round(LEAST_WINDOW_MS * this.learnt.perMs));
	}

	private get nextWindowAt(): number {
		const { perMs } = this.learnt;
		return perMs === Infinity ? -Infinity : this.windowAt + this.windowSize / perMs;
	}

	send(now: number): Ticket {
		const { refusals, unfinished, underWay } = this;
		const isProbe = unfinished + underWay >= this.learnt.places;
		this.underWay++;
		this.countInWindow(now);
		return { refusals, unfinished, isProbe, sentAt: now };
	}

	private countInWindow(now: number): void {
		if (now >= this.nextWindowAt) {
			this.holdsBack = this.sentInWindow >= this.windowSize;
			if (this.holdsBack) this.learnt.perMs *= 1 + GROWTH;
			this.windowAt = now;
			this.sentInWindow = 0;
		}
		this.sentInWindow++;
	}

	/** The service took the task, which is unfinished until `finished` is called. */
	accepted(ticket: Ticket, now: number): void {
		const { doubt, learnt } = this;
		this.underWay--;
		this.unfinished++;
		this.admittedSince++;
		learnt.admittedSinceRefusal++;
		learnt.places = Math.max(learnt.places, this.unfinished);
		if (!doubt || ticket.refusals !== this.refusals) return;
		this.doubt = undefined;
		if (doubt.isRate || ticket.unfinished >= doubt.unfinished) this.learnRate(doubt, now);
		else this.learnPlaces(doubt.unfinished, now);
	}

	/** A create was refused beside so many unfinished tasks, and a create was admitted when one of them had ended. */
	private learnPlaces(places: number, now: number): void {
		const { proven } = this.learnt;
		const hasMoved = Math.abs(places - proven) > 1 + MOVED * proven;
		Object.assign(this.learnt, { places, proven: places });
		this.planProbe(now, hasMoved ? FIRST_PROBE_MS : undefined);
	}

	private planProbe(now: number, ms = Math.min(LONGEST_PROBE_MS, 2 * this.learnt.probeMs)): void {
		this.learnt.probeMs = ms;
		this.probeAt = now + ms * (0.8 + 0.4 * this.random());
	}

	/**
	 * No task has ended, so time alone has let the create in: somewhere in the pause, which only this try has shown. Two thirds
	 * of the pause are taken: a later moment makes the rate too low, an earlier one too high.
	 */
	private learnRate({ since, refusedAt }: Doubt, now: number): void {
		const { learnt, admittedSince: admitted } = this;
		const freeAt = now - (now - refusedAt) / 3;
		const ms = freeAt - this.freeAt;
		Object.assign(this, { freeAt, admittedSince: 1 });
		if (ms > LONGEST_LESSON_MS) return;
		if (freeAt - since > ms / 2) learnt.atOnce = admitted - 1;
		const least = learnt.perMs === Infinity ? 0 : LEAST_PART * learnt.perMs;
		learnt.perMs = Math.max((admitted - 1) / ms, least);
		Object.assign(this, { windowAt: now, sentInWindow: 1 });
	}

	/** The service certainly did not take the task. */
	refused(ticket: Ticket, now: number, retryAfterMs = 0): void {
		const { doubt, learnt, holdsBack: isRate } = this;
		this.underWay--;
		this.pause(now + retryAfterMs);
		// Of creates that were under way together only the first refusal tells something.
		if (ticket.refusals !== this.refusals) return;
		this.refusals++;
		learnt.admittedSinceRefusal = 0;
		const { unfinished, isProbe } = ticket;
		if (doubt) this.refusedAgain(doubt, ticket, now);
		else if (isProbe && learnt.places <= learnt.proven) this.planProbe(now);
		else {
			const pauseMs = Math.max(FIRST_PAUSE_MS, EARLY / learnt.perMs);
			const next = { pauseMs, pauseEndsAt: now + pauseMs, tryBeside: isRate ? -1 : unfinished - 1 };
			this.doubt = { since: now, refusedAt: now, unfinished, isRate, ...next };
		}
	}

	private refusedAgain(doubt: Doubt, { sentAt, unfinished }: Ticket, now: number): void {
		Object.assign(doubt, { isRate: false, refusedAt: now, unfinished });
		// The account may have lost many places at once, so each attempt waits until half of the tasks have ended.
		doubt.tryBeside = Math.ceil(unfinished / 2) - 1;
		if (sentAt < doubt.pauseEndsAt) return;
		const longestMs = unfinished > 0 ? LONGEST_PAUSE_BESIDE_TASKS_MS : LONGEST_PAUSE_MS;
		doubt.pauseMs = Math.min(longestMs, PAUSE_GROWTH * doubt.pauseMs);
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
