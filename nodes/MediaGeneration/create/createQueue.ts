import { REQUEST_GAP_MS } from '../service/client';
import { ServiceError } from '../service/serviceError';
import { clock, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import type { AccountLimits, Ticket } from './accountLimits';
import { CircuitBreaker, type Refusal } from './circuitBreaker';
import { type Entered, type Order, OrderLine, patienceOf, type TurnOfQueue } from './orderLine';
import type { Stored, StoredRun } from './storedJournal';

/** Why the service is in a pause of the turn before, which is no answer of this turn. */
const OF_TURN_BEFORE = new ServiceError('tooManyRequests', 'The service refused an earlier try');

/** What a queue knows, and the queue of a later turn needs. Times are milliseconds of the clock. */
export type QueueState = Pick<StoredRun, 'quietSince'> & Pick<Stored, 'pausedUntil' | 'breaker'>;

/** What a user's choices mean for a queue. */
interface QueueRules {
	/** How many tasks of the run may be unfinished at once. */
	most: number;
	/** Whether the run orders nothing more when an item has failed. */
	stopsAtFailure: boolean;
	/** Whether somebody waits for the run, and can order again. */
	isWatched: boolean;
	/** Called when an item fails, before the next order is admitted. */
	onFailure: () => void;
}

/** A time in which nothing is sent, milliseconds of the clock. */
interface Pause {
	until: number;
	/** Whether the service has asked for it; otherwise the run rests by itself. */
	isAsked: boolean;
	/** Whether the run had tasks, or might get a task, when the pause began: it waits for their end anyway. */
	isBesideTasks: boolean;
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

	/** Since when no order is admitted and no task finishes. */
	private quietSince: number | undefined;

	/** The pause that ends last. */
	private pause: Pause | undefined;

	private readonly breaker: CircuitBreaker;
	private nextGapAt = -Infinity;

	/** Whether nothing more is ordered, for good, and the refusal that says why, if it is one. */
	private isOver = false;
	closedBy: ServiceError | undefined;

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
	 * @param state what the queue of an earlier turn knew
	 */
	constructor(
		private readonly limits: AccountLimits,
		private readonly turn: TurnOfQueue,
		private readonly signal: AbortSignal,
		{ quietSince, pausedUntil = 0, breaker }: QueueState,
		private readonly rules: QueueRules,
	) {
		this.breaker = new CircuitBreaker(breaker, rules.isWatched);
		limits.pause(this.breaker.probeAt);
		this.quietSince = quietSince;
		// Without any answer the run would have ended before this turn.
		this.hasAnswered = quietSince !== undefined;
		if (pausedUntil > clock.now()) {
			this.refusal = OF_TURN_BEFORE;
			this.keepTo(pausedUntil, true);
		}
	}

	/** Since when nothing was taken, milliseconds of the clock. */
	get quietFrom(): number {
		return this.quietSince ?? clock.now();
	}

	get state(): QueueState {
		const pausedUntil = this.isPaused ? this.pause?.until : undefined;
		return { quietSince: this.quietSince, pausedUntil, breaker: this.breaker.state };
	}

	/**
	 * @returns a ticket for one order, whose end is to be told by `accepted`, `refused`, `turnedDown`, `doubtful`, `failed` or
	 *   `ended`; undefined if the run orders nothing more in this turn, or if it is too late
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
		return this.rules.stopsAtFailure || clock.now() >= this.breaker.againAt(refused);
	}

	/** @returns what `enter` returns; or that something has happened, so that another order may be the next one */
	private async look(order: Order): Promise<Entered | 'later'> {
		if (this.signal.aborted) throw new Stopped();
		if (this.closedBy) throw ItemError.from(this.closedBy);
		const now = clock.now();
		if (this.isOver || now >= order.until) return undefined;
		this.checkPatience(order, now);
		if (this.turn.isOver || !order.isInWindow) return undefined;
		const at = this.nextAt(order, now);
		if (at <= now) {
			this.nextGapAt = now + REQUEST_GAP_MS;
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
		const isBesideTasks = limits.unfinished > 0;
		const isOfNobody = !this.hasCreated && !this.hasAnswered && refusal.isOfAddress;
		const mostMs = patienceOf(order, isBesideTasks, isOfNobody);
		const isTooSilent = now - this.quietFrom > mostMs || this.breaker.isOver(now);
		if (refusal !== OF_TURN_BEFORE && isTooSilent) throw ItemError.from(refusal);
		if (pause === undefined || turn.isOver) return;
		// A run that may sleep sleeps through the pause.
		const pauseMs = pause.until - now;
		const isShort = pauseMs <= patienceOf(order, isBesideTasks || pause.isBesideTasks);
		if (isShort && (turn.maySleep || pauseMs <= order.until - now)) return;
		if (!pause.isAsked) throw ItemError.from(refusal);
		const asked = `The service asks to wait for ${Math.ceil(pauseMs / 1000)} s more`;
		throw ItemError.because(refusal, `${asked}, which is longer than this node waits.`);
	}

	private nextAt({ refused }: Order, now: number): number {
		const { limits, nextGapAt, breaker } = this;
		const { underWay, unfinished } = limits;
		const { most } = this.rules;
		if (underWay + unfinished >= most || (breaker.isOpen && underWay > 0)) return Infinity;
		return Math.max(limits.nextAt(), nextGapAt, refused ? breaker.againAt(refused) : now);
	}

	/** The service took the task, which is unfinished until `finished` is called. */
	accepted(ticket: Ticket): void {
		this.limits.accepted(ticket, clock.now());
		this.hasCreated = true;
		this.breaker.taken(ticket.sentAt);
		this.goOn();
	}

	/** An accepted task has ended at the service, or nobody follows it any more. */
	finished(): void {
		this.limits.finished();
		this.goOn();
	}

	private goOn(): void {
		this.quietSince = undefined;
		this.turn.noteProgress();
		this.line.wake();
	}

	/** An order ended without telling anything about the service. */
	ended(): void {
		this.limits.ended();
		this.line.wake();
	}

	/** The item of an order has failed, which tells nothing about the service. */
	failed(): void {
		this.rules.onFailure();
		this.ended();
	}

	/** The service certainly did not take the task, and may take it later. */
	refused(ticket: Ticket, error: ServiceError): void {
		const now = clock.now();
		if (error.isOfAddress) {
			this.limits.ended();
			this.breaker.refused(ticket.sentAt, now, false);
			this.tryLater(error, now);
			return;
		}
		this.limits.refused(ticket, now, error.retryAfterMs ?? 0);
		this.observe(error, now);
		this.reachLimit();
		this.line.wake();
	}

	/**
	 * The service certainly did not take the task, and says nothing of a later time.
	 *
	 * @param before the first refusal of the same item
	 * @returns whether the item comes in again; otherwise it has failed
	 */
	turnedDown(ticket: Ticket, error: ServiceError, before: Refusal | undefined): boolean {
		const now = clock.now();
		const verdict = this.breaker.turnedDown(error, ticket.sentAt, this.hasCreated, before);
		if (verdict === 'of all') this.close(error);
		// The next turn goes on to ask.
		this.turn.noteProgress();
		if (verdict !== 'again') {
			this.failed();
			return false;
		}
		this.limits.ended();
		this.breaker.refused(ticket.sentAt, now, true);
		this.tryLater(error, now);
		return true;
	}

	/** Nobody knows whether the service took the task. After a few such orders in a row the run rests. */
	doubtful({ sentAt }: Ticket, error: ServiceError): void {
		const now = clock.now();
		this.rules.onFailure();
		this.limits.ended();
		const verdict = this.breaker.doubtful(error, sentAt, now, this.hasCreated);
		if (verdict === 'of all') return this.close(error);
		this.tryLater(error, now);
		if (verdict === 'rest') this.keepTo(this.breaker.probeAt, false);
	}

	/** The next order is a probe: it leaves when the breaker lets it. */
	private tryLater(error: ServiceError, now: number): void {
		this.observe(error, now);
		this.limits.pause(this.breaker.probeAt);
		this.line.wake();
	}

	private observe(error: ServiceError, now: number): void {
		this.refusal = error;
		this.hasAnswered ||= error.statusCode !== undefined || error.isWithoutId;
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

	private get isPaused(): boolean {
		return this.pause !== undefined && clock.now() < this.pause.until;
	}

	/** Whether an order that has its ticket is not to be sent any more. */
	get isShut(): boolean {
		return this.isOver || this.isPaused || this.turn.isOver;
	}

	/** Whether something is left to order in this turn, as far as known. */
	get isCreating(): boolean {
		return !this.isOver && this.line.length + this.limits.underWay > 0;
	}

	/** Admits no further order. @param error why; undefined if the run orders nothing more */
	close(error?: ServiceError): void {
		if (!this.isOver) this.closedBy = error;
		this.isOver = true;
		this.line.wake();
	}
}
