import type { Stretch } from '../n8n/stretch';
import { nextLookAfter, whenLookIsLearnt } from '../n8n/wakes';
import { Alarm, clock } from '../shared/clock';
import { settled } from '../shared/promises';

const MINUTE_MS = 60_000;

/** A turn ends so long before n8n's next look: a run that misses the look sleeps for a minute. */
const BEFORE_LOOK_MS = 5_000;

/** n8n stores a run within this time, as a rule. A run that has less time before the look stays awake until the next look. */
const STORING_MS = 2_000;

/** The first order that n8n has not stored is this old when a run sleeps for the first time: many tasks end before. */
const QUICK_MS = 30_000;

/** So old an order that n8n has not stored may be when a run begins: then the run is stored before it orders. */
const LONGEST_UNSTORED_MS = 2 * MINUTE_MS;

/** A pause for which a run goes to sleep, milliseconds. */
const WORTH_A_SLEEP_MS = MINUTE_MS;

/** So long a run with orders left goes on without an order at least: its places are taken by tasks of this time. */
const LEAST_PATIENCE_MS = 5 * MINUTE_MS;

/** A file that takes longer than a turn is fetched when a turn begins, within this time. */
const BEGINNING_MS = 15_000;

/** What decides when a turn ends. All times are milliseconds of the clock. */
export interface TurnRule {
	/** When the turn began, and when the run began. */
	startedAt: number;
	runStartedAt: number;
	/** How long the run was awake before this turn since an order was taken or a task ended. */
	idleMs?: number | undefined;
	/** Whether the run has slept. */
	hasSlept: boolean;
	/** Whether a person watches the run in the editor, whose panel shows a run that sleeps like a run that has ended. */
	isWatched: boolean;
	/** *Sleep After*, milliseconds; Infinity for a run that is held. */
	suspendAfterMs: number;
	stretch: Stretch;
	signal: AbortSignal | undefined;
}

/**
 * The time in which a run is awake. A run is active while it is younger than *Sleep After*, and while it orders. n8n stores
 * nothing of a run that is awake, and it looks once a minute for runs to wake. So each turn of an active run ends some
 * seconds before a look, and the next turn begins at that look. The turn of a run that is not active ends when it has read
 * its tasks; then the run sleeps longer. A run that is held has one turn, to its end.
 *
 * The end of a turn is no reason for an error: what did not get its turn has the next one.
 */
export class Turn {
	readonly alarm: Alarm;

	/**
	 * When the turn ends at the latest, so that n8n stores it. It is decided anew when the execution sends its first order and
	 * when the process learns when n8n looks; each time it is a moment in the future.
	 */
	storeAt = Infinity;

	/** What is still to be ordered, and when the service lets the next order in, as far as known. */
	private readonly orders = new Set<object>();
	private pausedUntil = -Infinity;

	/** When an order was taken, a task ended or files came last. */
	private progressAt: number;

	/** When the turn began, and when it began or went on last. */
	readonly startedAt: number;
	wentOnAt: number;

	private isEnded = false;
	private isWatching = false;

	/** To be called when the end of the turn has moved. */
	private recheck: () => void = () => undefined;

	/** Ends what the turn hears of n8n's looks. */
	private hearNoMore: () => void = () => undefined;

	constructor(private readonly rule: TurnRule) {
		this.alarm = new Alarm(rule.signal);
		this.startedAt = this.wentOnAt = rule.startedAt;
		this.progressAt = rule.startedAt - (rule.idleMs ?? 0);
	}

	/** @param orders what is still to be ordered */
	begin(orders: Iterable<object>): void {
		for (const order of orders) this.orders.add(order);
		if (!this.maySleep) return;
		this.hearNoMore = whenLookIsLearnt(() => this.decide());
		this.open();
		const { stretch, suspendAfterMs } = this.rule;
		const { orderedAt = Infinity } = stretch;
		// The runs before have missed each look, because other nodes were at work then.
		if (clock.now() - orderedAt > Math.max(LONGEST_UNSTORED_MS, suspendAfterMs)) this.end();
	}

	/** To be called when the turn has ended, and the run stays awake. */
	goOn(): void {
		this.wentOnAt = clock.now();
		this.open();
	}

	private open(): void {
		this.isEnded = false;
		this.decide();
		if (!this.isWatching) void settled(this.watch());
	}

	private decide(): void {
		const { stretch, suspendAfterMs, hasSlept, isWatched } = this.rule;
		const { beganAt, orderedAt = beganAt } = stretch;
		const quickMs = isWatched ? Math.max(QUICK_MS, suspendAfterMs) : QUICK_MS;
		const earliest = Math.max(clock.now(), hasSlept ? -Infinity : orderedAt + quickMs);
		const look = nextLookAfter(earliest + BEFORE_LOOK_MS);
		// If nobody knows when n8n looks, a sleep costs up to a minute.
		this.storeAt =
			look === undefined
				? Math.max(earliest, beganAt + Math.max(MINUTE_MS, suspendAfterMs))
				: look - BEFORE_LOOK_MS;
		this.recheck();
	}

	/** Wakes all who wait when the turn ends. */
	private async watch(): Promise<void> {
		this.isWatching = true;
		while (!this.isOver) {
			const { woken, wake } = this.alarm.wait(this.endsAt);
			this.recheck = wake;
			await woken;
		}
		this.isEnded = true;
		this.isWatching = false;
		this.alarm.wakeAll();
	}

	get maySleep(): boolean {
		return this.rule.suspendAfterMs < Infinity;
	}

	/** How long a run that orders stays active while nothing is taken and no task ends, milliseconds. */
	private get longestIdleMs(): number {
		return Math.max(LEAST_PATIENCE_MS, this.rule.suspendAfterMs);
	}

	/** How long the run is awake since an order was taken or a task ended, milliseconds. */
	get idleMs(): number {
		return clock.now() - this.progressAt;
	}

	/** Whether the run has neither ordered nor seen the end of a task for so long that it sleeps longer. */
	get isStuck(): boolean {
		return this.idleMs >= this.longestIdleMs;
	}

	/** Until when the run is active, as things stand. */
	private get activeUntil(): number {
		const { runStartedAt, suspendAfterMs } = this.rule;
		const isOrdering = this.orders.size > 0 && this.pausedUntil - clock.now() < WORTH_A_SLEEP_MS;
		const orderingUntil = isOrdering ? this.progressAt + this.longestIdleMs : -Infinity;
		return Math.max(runStartedAt + suspendAfterMs, orderingUntil);
	}

	/** Whether the next turn is to begin at n8n's next look. */
	get isActive(): boolean {
		return clock.now() < this.activeUntil;
	}

	/** Whether the turn ends because n8n looks soon. */
	private get endsForLook(): boolean {
		return this.maySleep && this.storeAt < this.activeUntil;
	}

	/** When the turn ends, as things stand. */
	get endsAt(): number {
		if (!this.maySleep) return Infinity;
		return this.isEnded ? -Infinity : Math.min(this.activeUntil, this.storeAt);
	}

	get isOver(): boolean {
		return clock.now() >= this.endsAt;
	}

	/** Whether n8n can no longer store the run before the look for which the turn has ended. */
	get hasMissedLook(): boolean {
		const isKnown = nextLookAfter(0) !== undefined;
		const lastAt = this.storeAt + BEFORE_LOOK_MS - STORING_MS;
		return isKnown && this.endsForLook && clock.now() > lastAt;
	}

	/** Whether something that takes so long may begin: it is not to make the turn miss the look. @param ms milliseconds */
	hasTimeFor(ms: number): boolean {
		const now = clock.now();
		if (!this.endsForLook || now + ms <= this.storeAt) return true;
		return ms > this.storeAt - this.startedAt && now < this.startedAt + BEGINNING_MS;
	}

	/** Whether orders of the execution wait to be stored for so long that no further look may be missed. */
	get isLate(): boolean {
		const { orderedAt = Infinity } = this.rule.stretch;
		return clock.now() - orderedAt > LONGEST_UNSTORED_MS;
	}

	/** Whether something is to be ordered. */
	get hasOrders(): boolean {
		return this.orders.size > 0;
	}

	/** To be called when something is to be ordered, and when it is ordered, or is not to be ordered any more. */
	noteLeft(order: object, isLeft: boolean): void {
		if (isLeft) this.orders.add(order);
		else if (this.orders.delete(order) && this.orders.size === 0) this.recheck();
	}

	/** To be called when an order is about to be sent. */
	noteOrder(): void {
		const { stretch } = this.rule;
		if (stretch.orderedAt !== undefined) return;
		stretch.orderedAt = clock.now();
		if (this.maySleep) this.decide();
	}

	/** To be called when the service lets nothing in for a while. */
	pause(until: number): void {
		this.pausedUntil = until;
		this.recheck();
	}

	/** To be called when an order was taken, a task has ended, or files have come. */
	noteProgress(): void {
		this.progressAt = clock.now();
	}

	/** Ends the turn: nothing more is ordered before the next one. */
	end(): void {
		if (!this.maySleep) return;
		this.isEnded = true;
		this.recheck();
	}

	/** To be called when the turn is done with. */
	close(): void {
		this.hearNoMore();
		this.alarm.close();
	}

	/**
	 * Waits until a moment, or until the turn is over.
	 *
	 * @param moment milliseconds of the clock
	 * @returns whether the turn goes on. The moment may not have come: something else may have happened.
	 * @throws Stopped if the execution was stopped
	 */
	async reaches(moment: number): Promise<boolean> {
		if (this.isOver) return clock.now() >= moment;
		await this.alarm.wait(moment).woken;
		return !this.isOver || clock.now() >= moment;
	}
}
