import { nextLookAfter } from '../n8n/wakes';
import { Alarm, clock } from '../shared/clock';
import { settled } from '../shared/promises';

const MINUTE_MS = 60_000;

/** A checkpoint comes before n8n's next look, in good time: a run that misses the look sleeps for a minute. */
const BEFORE_LOOK_MS = 5_000;

/** An order is this old at its checkpoint, at least: many tasks end before. */
const BEFORE_CHECKPOINT_MS = 30_000;

/** A pause for which a run goes to sleep, milliseconds. */
const WORTH_A_SLEEP_MS = 60_000;

/** When a turn ends. All times are milliseconds of the clock. */
export interface TurnRule {
	/** When the turn began, and when the run began. */
	startedAt: number;
	runStartedAt: number;
	/** *Sleep After*, milliseconds; Infinity for a run that is held. */
	suspendAfterMs: number;
	signal: AbortSignal | undefined;
}

/**
 * The time in which a run is awake: until *Sleep After* from the start of the run, and beyond that while it orders. A turn that
 * has ordered ends at a checkpoint, so that n8n stores the ids. A run that is held has one turn, to its end. The end of a
 * turn is no reason for an error: what did not get its turn has the next one.
 */
export class Turn {
	readonly alarm: Alarm;

	/** What is still to be ordered, and when the service lets the next order in, as far as known. */
	private readonly orders = new Set<object>();
	private pausedUntil = -Infinity;

	/** When the turn sent its first order, and when an order was taken or a task ended last. */
	private firstOrderAt: number | undefined;
	private progressAt: number;

	/** Whether the turn has ended. */
	private isEnded = false;

	/** To be called when the end of the turn has moved. */
	private recheck: () => void = () => undefined;

	constructor(private readonly rule: TurnRule) {
		this.alarm = new Alarm(rule.signal);
		this.progressAt = rule.startedAt;
	}

	/** @param orders what is still to be ordered */
	begin(orders: Iterable<object>): void {
		for (const order of orders) this.orders.add(order);
		if (this.maySleep) void settled(this.watch());
	}

	/** Wakes all who wait when the turn ends. */
	private async watch(): Promise<void> {
		while (!this.isOver) {
			const { woken, wake } = this.alarm.wait(this.endsAt);
			this.recheck = wake;
			await woken;
		}
		this.isEnded = true;
		this.alarm.wakeAll();
	}

	get maySleep(): boolean {
		return this.rule.suspendAfterMs < Infinity;
	}

	/** When this turn began, milliseconds of the clock. */
	get startedAt(): number {
		return this.rule.startedAt;
	}

	/** How long a turn goes on without an order, milliseconds. */
	private get patienceMs(): number {
		return Math.max(MINUTE_MS, this.rule.suspendAfterMs);
	}

	/** Whether the turn has neither ordered nor seen the end of a task for so long that it goes to sleep. */
	get isStuck(): boolean {
		return clock.now() >= this.progressAt + this.patienceMs;
	}

	/** When the turn ends, as things stand. */
	get endsAt(): number {
		if (!this.maySleep) return Infinity;
		if (this.isEnded) return -Infinity;
		const { runStartedAt, suspendAfterMs } = this.rule;
		const isOrdering = this.orders.size > 0 && this.pausedUntil - clock.now() < WORTH_A_SLEEP_MS;
		const orderingUntil = isOrdering ? this.progressAt + this.patienceMs : -Infinity;
		return Math.min(Math.max(runStartedAt + suspendAfterMs, orderingUntil), this.checkpointAt);
	}

	/** When the last read of this turn may be sent: each task is read in each turn. */
	get readsUntil(): number {
		if (!this.maySleep) return Infinity;
		return Math.min(this.startedAt + this.patienceMs, this.checkpointAt);
	}

	private get checkpointAt(): number {
		const { firstOrderAt } = this;
		if (firstOrderAt === undefined) return Infinity;
		const { startedAt, runStartedAt, suspendAfterMs } = this.rule;
		const earliest = firstOrderAt + BEFORE_CHECKPOINT_MS;
		const look = nextLookAfter(earliest + BEFORE_LOOK_MS);
		if (look !== undefined) return look - BEFORE_LOOK_MS;
		// Nobody knows when n8n looks, so a checkpoint costs up to a minute.
		return startedAt === runStartedAt ? startedAt + suspendAfterMs : firstOrderAt + MINUTE_MS;
	}

	get isOver(): boolean {
		return clock.now() >= this.endsAt;
	}

	/** To be called when something is to be ordered, and when it is ordered, or is not to be ordered any more. */
	noteLeft(order: object, isLeft: boolean): void {
		if (isLeft) this.orders.add(order);
		else if (this.orders.delete(order) && this.orders.size === 0) this.recheck();
	}

	/** To be called when an order is about to be sent. */
	noteOrder(): void {
		if (this.firstOrderAt !== undefined) return;
		this.firstOrderAt = clock.now();
		this.recheck();
	}

	/** To be called when the service lets nothing in for a while. */
	pause(until: number): void {
		this.pausedUntil = until;
		this.recheck();
	}

	/** To be called when an order was taken, or a task has ended. */
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
