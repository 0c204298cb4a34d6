import type { RequestGap } from '../service/client';
import { ServiceError } from '../service/serviceError';
import { clock, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import type { AccountLimits, Ticket } from './accountLimits';
import { CircuitBreaker, type Refusal, type Verdict } from './circuitBreaker';
import { type Entered, OrderLine, type TurnOfQueue } from './orderLine';
import { checkPause, isOfAddress, isTooSilent, type Order, type Pause } from './patience';
import type { Stored, StoredRun } from './storedJournal';

/** What a queue knows, and the queue of a later turn needs. Times are milliseconds of the clock. */
export type QueueState = Pick<StoredRun, 'quietSince'> & Pick<Stored, 'pausedUntil' | 'breaker'>;

/** What a user's choices mean for a queue. */
export interface QueueRules {
	/** How many tasks of the run may be unfinished at once. */
	most?: number;
	/** Whether the run orders nothing more when an item has failed. */
	stopsAtFailure?: boolean;
	/** Whether somebody waits for the run, and can order again. */
	isWatched?: boolean;
	/** For the jitter, from 0 to 1. */
	random?: () => number;
}

/**
 * The queue of the orders of a run, in the order of the items. An order leaves the queue when the account's limits admit
 * it. All times are milliseconds of the clock.
 */
export class CreateQueue {
	/** The last refusal of an order of this run. */
	refusal: ServiceError | undefined;

	/** Whether the service has taken a task. From then on an error is a passing error, or concerns one item. */
	hasCreated = false;

	/** Whether somebody has answered an order, so that there is something at the address. */
	private hasAnswered: boolean;

	/** Whether this turn has sent an order in vain: a pause of the turn before is no answer of this one. */
	private hasTried = false;

	/** Since when no order is admitted and no task finishes. */
	private quietSince: number | undefined;

	/** The pause that ends last. */
	private pause: Pause | undefined;

	private readonly breaker: CircuitBreaker;

	/** Whether nothing more is ordered, and why. */
	private closed: { error: ServiceError | undefined } | undefined;

	private readonly line = new OrderLine(
		async (order) => await this.look(order),
		(order) => this.isDue(order),
	);

	private reachLimit: () => void = () => undefined;
	/** Resolves when the service refuses an order of this run for the first time. */
	readonly limited = new Promise<void>((resolve) => {
		this.reachLimit = resolve;
	});

	/**
	 * @param gap the least time between two requests of the run
	 * @param state what the queue of an earlier turn knew
	 */
	constructor(
		readonly limits: AccountLimits,
		private readonly gap: RequestGap,
		private readonly turn: TurnOfQueue,
		private readonly signal: AbortSignal | undefined,
		{ quietSince, pausedUntil = 0, breaker }: QueueState = {},
		private readonly rules: QueueRules = {},
	) {
		const { isWatched = false, random = Math.random } = rules;
		this.breaker = new CircuitBreaker(breaker, isWatched, random);
		limits.pause(this.breaker.probeAt);
		this.quietSince = quietSince;
		// Without any answer the run would have ended before this turn.
		this.hasAnswered = quietSince !== undefined;
		if (pausedUntil > clock.now()) {
			this.refusal = new ServiceError('tooManyRequests', 'The service refused an earlier try');
			this.keepTo(pausedUntil, true);
		}
	}

	/** To be called when nothing can be sent. */
	noteQuiet(): void {
		this.quietSince ??= clock.now();
	}

	/** Since when nothing was taken, milliseconds of the clock. */
	get quietFrom(): number {
		return this.quietSince ?? clock.now();
	}

	get state(): QueueState {
		const { quietSince, pause, breaker } = this;
		const pausedUntil = pause && this.isPaused && { pausedUntil: pause.until };
		return { quietSince, breaker: breaker.toStored(), ...pausedUntil };
	}

	/**
	 * @returns a ticket for one order, whose end is to be told by `accepted`, `refused`, `turnedDown`, `doubtful` or `ended`;
	 *   undefined if the run orders nothing more in this turn, or if it is too late
	 * @throws ItemError if the item's patience is over, or there is no use in sending
	 * @throws Stopped if the execution was stopped
	 */
	async enter(order: Order): Promise<Entered> {
		return await this.line.enter(order);
	}

	/**
	 * Whether a refused item goes first: the service has taken another order since, and the time of the item has come. A run
	 * that stops at a failure orders nothing else meanwhile. Until then an item that was never refused tells more.
	 */
	private isDue({ refused }: Order): boolean {
		if (refused === undefined || !this.breaker.hasWitness(refused)) return false;
		return this.rules.stopsAtFailure === true || clock.now() >= this.breaker.againAt(refused);
	}

	/** @returns what `enter` returns, or that something has happened, so that another order may be the next one */
	private async look(order: Order): Promise<Entered | 'later'> {
		if (this.signal?.aborted) throw new Stopped();
		if (this.closedBy) throw ItemError.from(this.closedBy);
		const now = clock.now();
		if (this.isOver || now >= order.until) return undefined;
		this.checkPatience(order, now);
		if (this.turn.isOver || !order.isInWindow) return undefined;
		const at = this.nextAt(order, now);
		if (at <= now) {
			this.gap.take();
			return this.limits.send(now);
		}
		const { woken, wake } = this.turn.alarm.wait(Math.min(at, order.until));
		this.line.wake = wake;
		await woken;
		return 'later';
	}

	/** @throws ItemError if the item waits no longer: the service takes nothing, or asks to wait for longer */
	private checkPatience(order: Order, now: number): void {
		const { refusal, pause, limits, turn } = this;
		// The answer to an order that is under way may bring a task, and with it more patience.
		if (refusal === undefined || limits.underWay > 0) return;
		const silence = {
			refusal,
			silentMs: now - this.quietFrom,
			hasService: this.hasCreated || this.hasAnswered,
			isBesideTasks: limits.unfinished > 0,
		};
		const isLong = isTooSilent(order, silence) || this.breaker.isOver(now);
		if (this.hasTried && isLong) throw ItemError.from(refusal);
		if (pause && !turn.isOver) checkPause(order, pause, silence, now, turn.maySleep);
	}

	private nextAt({ refused }: Order, now: number): number {
		const { limits, gap, breaker } = this;
		const { underWay, unfinished } = limits;
		const { most = Infinity } = this.rules;
		if (underWay + unfinished >= most || (breaker.isOpen && underWay > 0)) return Infinity;
		return Math.max(limits.nextAt(), gap.nextAt, refused ? breaker.againAt(refused) : now);
	}

	/** The service took the task, which is unfinished until `finished` is called. */
	accepted(ticket: Ticket): void {
		const now = clock.now();
		this.limits.accepted(ticket, now);
		this.hasCreated = true;
		this.breaker.taken(ticket.sentAt);
		this.goOn();
	}

	/** An accepted task has ended at the service, or nobody follows it any more. */
	finished(): void {
		this.limits.finished();
		this.goOn();
	}

	/** An order ended without telling anything about the service. */
	ended(): void {
		this.limits.ended();
		this.line.wake();
	}

	/** The service certainly did not take the task, and may take it later. */
	refused(ticket: Ticket, error: ServiceError): void {
		const now = clock.now();
		if (isOfAddress(error)) {
			this.limits.ended();
			this.tryLater(error, now, this.breaker.refused(ticket.sentAt, now, false));
		} else {
			this.limits.refused(ticket, now, error.retryAfterMs ?? 0);
			this.observe(error, now);
			this.hasAnswered = true;
			this.reachLimit();
		}
		this.line.wake();
	}

	/**
	 * The service certainly did not take the task, and says nothing of a later time.
	 *
	 * @param before the first refusal of the same item
	 * @returns what it means. The queue admits nothing before the next call, of `ended` or `comesAgain`.
	 */
	turnedDown(ticket: Ticket, error: ServiceError, before: Refusal | undefined): Verdict {
		const verdict = this.breaker.turnedDown(error, ticket.sentAt, this.hasCreated, before);
		if (verdict === 'of all') this.close(error);
		// The next turn goes on to ask.
		this.turn.noteProgress();
		return verdict;
	}

	/** A refused item comes in again. */
	comesAgain({ sentAt }: Ticket, error: ServiceError): void {
		const now = clock.now();
		this.limits.ended();
		this.tryLater(error, now, this.breaker.refused(sentAt, now, true));
		this.line.wake();
	}

	/** Nobody knows whether the service took the task. After a few such orders in a row this turn orders nothing more. */
	doubtful({ sentAt }: Ticket, error: ServiceError): void {
		const now = clock.now();
		this.limits.ended();
		const verdict = this.breaker.doubtful(error, sentAt, now, this.hasCreated);
		if (verdict === 'of all') return this.close(error);
		const { pauseMs, isRest } = verdict;
		this.tryLater(error, now, pauseMs);
		if (isRest) {
			this.turn.end();
			this.keepTo(now + pauseMs, false);
		}
		this.line.wake();
	}

	private tryLater(error: ServiceError, now: number, pauseMs: number): void {
		this.observe(error, now);
		this.limits.pause(now + pauseMs);
		this.breaker.probeAt = now + pauseMs;
	}

	private observe(error: ServiceError, now: number): void {
		this.refusal = error;
		this.hasTried = true;
		this.hasAnswered ||= error.isAnswer;
		this.quietSince ??= now;
		if (error.retryAfterMs !== undefined) this.keepTo(now + error.retryAfterMs, true);
	}

	/** Sends nothing before a moment. @param isAsked whether the service has asked for it */
	private keepTo(until: number, isAsked: boolean): void {
		const { limits, turn, pause } = this;
		if (pause && pause.until >= until) return;
		this.pause = { until, isAsked, isBesideTasks: limits.unfinished + limits.underWay > 0 };
		turn.pause(until);
		limits.pause(until);
	}

	/** Whether a pause is not over. */
	get isPaused(): boolean {
		return this.pause !== undefined && clock.now() < this.pause.until;
	}

	/** Whether something is left to order in this turn, as far as known. */
	get isCreating(): boolean {
		return !this.isOver && this.line.length + this.limits.underWay > 0;
	}

	/** Admits no further order. @param error why; undefined if the run orders nothing more */
	close(error?: ServiceError): void {
		this.closed ??= { error };
		this.line.wake();
	}

	/** Why nothing more is ordered, for good. */
	get closedBy(): ServiceError | undefined {
		return this.closed?.error;
	}

	/** Whether nothing more is ordered, for good. */
	get isOver(): boolean {
		return this.closed !== undefined;
	}

	private goOn(): void {
		this.quietSince = undefined;
		this.turn.noteProgress();
		this.line.wake();
	}
}
