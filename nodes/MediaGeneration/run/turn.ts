import type { Stretch } from '../n8n/stretch';
import { Alarm, clock, MINUTE_MS, settled, withTimeLimit } from '../shared/clock';

/** How long a turn but the first lasts while something is left to order: n8n stores the run before its next look. */
const LATER_TURN_MS = 55_000;

/** A pause for which a run goes to sleep. Reads stand in line for as long, also where the turn is over. Milliseconds. */
const WORTH_A_SLEEP_MS = MINUTE_MS;
const LINE_MS = MINUTE_MS;

/** What decides when a turn ends. All times are milliseconds of the clock. */
interface TurnRule {
	startedAt: number;
	hasSlept: boolean;
	/** *Sleep After*, milliseconds; Infinity for a run that is held. */
	suspendAfterMs: number;
	stretch: Stretch;
	signal: AbortSignal | undefined;
}

/**
 * The time in which a run is awake. The first turn lasts for *Sleep After*, counted from when the execution began, or n8n
 * stored it last. While something is left to order, each later turn lasts 55 s, and n8n's next look begins the next one. A
 * run that has ordered everything ends its later turns when it has read its tasks. A run that is held has one turn, to its
 * end.
 *
 * The end of a turn is no reason for an error: what did not get its turn has the next one.
 */
export class Turn {
	readonly alarm: Alarm;

	/** What is still to be ordered, and when the service lets the next order in, as far as known. */
	private readonly orders = new Set<object>();
	private pausedUntil = -Infinity;

	/** Whether an order was taken, a task has ended or files have come in this turn. */
	private hasProgress = false;

	/** When the turn began, and when it began or went on last. */
	readonly startedAt: number;
	wentOnAt: number;

	private isEnded = false;

	/** To be called when the end of the turn has moved. */
	private recheck: () => void = () => undefined;

	constructor(private readonly rule: TurnRule) {
		this.alarm = new Alarm(rule.signal);
		this.startedAt = this.wentOnAt = rule.startedAt;
	}

	/** @param orders what is still to be ordered */
	begin(orders: Iterable<object>): void {
		for (const order of orders) this.orders.add(order);
		if (this.maySleep) void settled(this.watch());
	}

	/** To be called when the turn is over, and the run stays awake: it goes on as in the next turn. */
	goOn(): void {
		this.wentOnAt = clock.now();
		this.isEnded = false;
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

	/** Whether the turn had orders left and nothing has moved, so that the next turn need not come at once. */
	get isStuck(): boolean {
		return this.rule.hasSlept && this.orders.size > 0 && !this.hasProgress;
	}

	/** When the turn ends, as things stand. */
	get endsAt(): number {
		if (!this.maySleep) return Infinity;
		if (this.isEnded) return -Infinity;
		const { hasSlept, suspendAfterMs, stretch } = this.rule;
		const goesOn = this.wentOnAt > this.startedAt;
		if (!hasSlept && !goesOn) return stretch.beganAt + suspendAfterMs;
		const mayOrder = this.orders.size > 0 && this.pausedUntil - clock.now() < WORTH_A_SLEEP_MS;
		return mayOrder || goesOn ? this.wentOnAt + LATER_TURN_MS : -Infinity;
	}

	/** Until when reads may stand in line. */
	get readsUntil(): number {
		return Math.max(this.endsAt, this.wentOnAt + LINE_MS);
	}

	get isOver(): boolean {
		return clock.now() >= this.endsAt;
	}

	/** To be called when something is to be ordered, and when it is ordered, or is not to be ordered any more. */
	noteLeft(order: object, isLeft: boolean): void {
		if (isLeft) this.orders.add(order);
		else if (this.orders.delete(order) && this.orders.size === 0) this.recheck();
	}

	/** To be called when the service lets nothing in for a while. @param until milliseconds of the clock */
	pause(until: number): void {
		this.pausedUntil = until;
		this.recheck();
	}

	/** To be called when an order was taken, a task has ended, or files have come. */
	noteProgress(): void {
		this.hasProgress = true;
	}

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

	/**
	 * Waits for something that goes on when the turn is over.
	 *
	 * @param graceMs for how long it is waited for after the end of the turn, milliseconds
	 * @returns what comes; undefined if it does not come in time
	 * @throws Stopped if the execution was stopped
	 */
	async waitsFor<T>(coming: Promise<T>, graceMs: number): Promise<T | undefined> {
		while (!this.isOver) {
			const { woken, wake } = this.alarm.wait(Infinity);
			const came = await Promise.race([coming, woken.then(() => undefined)]).finally(wake);
			if (came !== undefined) return came;
		}
		return await withTimeLimit(coming, graceMs);
	}
}
