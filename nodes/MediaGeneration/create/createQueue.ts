import type { RequestGap } from '../service/client';
import { ServiceError } from '../service/serviceError';
import { clock, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { Semaphore } from '../shared/promises';
import type { AccountLimits, Ticket } from './accountLimits';
import type { StoredRun } from './storedJournal';

/** How long a run tries an address that does not answer as the service does, if the service has never answered. */
const NO_SERVICE_PATIENCE_MS = 5_000;

/** After so many orders in a row whose outcome is not known, a doubt costs more than a wait. */
const MOST_IN_VAIN = 3;

/** The pause after the last of these orders, where the run does not sleep. It doubles each time, up to the longest. */
const FIRST_REST_MS = 60_000;
const LONGEST_REST_MS = 10 * 60_000;

/** Whether nothing shows that there is a service at the address. */
const isOfAddress = ({ meaning }: ServiceError) => meaning.scope === 'address';

/** What a queue knows, and the queue of a later turn needs. Times are milliseconds of the clock. */
export type QueueState = Pick<StoredRun, 'quietSince' | 'pausedUntil' | 'inVain'>;

/** What the orders need to know of the turn, and what they tell it. */
export interface TurnOfQueue {
	readonly maySleep: boolean;
	readonly isOver: boolean;
	pause(until: number): void;
	noteOrder(): void;
	noteProgress(): void;
	end(): void;
	readonly alarm: { wait(at: number): { woken: Promise<void>; wake: () => void } };
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

	/** Whether the service has refused an order, so that there is a service at the address. */
	private hasAnswered: boolean;

	/** Since when no order is admitted and no task finishes. */
	private quietSince: number | undefined;

	/** The end of the pause that the service asked for, and of a longer one after orders in vain. */
	private askedUntil = -Infinity;
	private pausedUntil = -Infinity;

	/** The orders in a row without a known outcome. Orders that were under way together count once. */
	private inVain = 0;
	private inVainAt = -Infinity;

	/** Whether an order was refused before any was taken. The next orders may be refused, too: they go out singly. */
	private goesSingly = false;

	/** Whether nothing more is ordered, and why. */
	private closed: { error: ServiceError | undefined } | undefined;

	/** One order at a time, so that the tasks are created in the order of the items. */
	private readonly oneAtATime = new Semaphore(1);

	/** Makes the order at the head of the queue look again: something has happened. */
	private wake: () => void = () => undefined;

	private reachLimit: () => void = () => undefined;
	/** Resolves when the service refuses an order of this run for the first time. */
	readonly limited = new Promise<void>((resolve) => {
		this.reachLimit = resolve;
	});

	/**
	 * @param gap the least time between two requests of the run
	 * @param state what the queue of an earlier turn knew
	 * @param random for the jitter, from 0 to 1
	 * @param most how many tasks of the run may be unfinished at once
	 */
	constructor(
		readonly limits: AccountLimits,
		private readonly gap: RequestGap,
		private readonly turn: TurnOfQueue,
		private readonly signal: AbortSignal | undefined,
		{ quietSince, pausedUntil = -Infinity, inVain = 0 }: QueueState = {},
		private readonly random: () => number = Math.random,
		private readonly most = Infinity,
	) {
		this.quietSince = quietSince;
		// Without any answer the run would have ended before this turn.
		this.hasAnswered = quietSince !== undefined;
		this.inVain = inVain;
		if (pausedUntil > clock.now()) {
			this.refusal = new ServiceError('tooManyRequests', 'The service refused an earlier try');
			this.pauseUntil(pausedUntil);
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
		const { quietSince, pausedUntil, inVain } = this;
		return { quietSince, inVain, ...(this.isPaused && { pausedUntil }) };
	}

	/**
	 * @param patience how long the item waits while the service takes nothing, milliseconds; it may grow meanwhile
	 * @param until when it is too late
	 * @param isFirst whether the order goes before the others, because it was sent before
	 * @returns a ticket for one order, whose end is to be told by `accepted`, `refused`, `doubtful` or `ended`; undefined if
	 *   the run orders nothing more in this turn, or if it is too late
	 * @throws ItemError if the item's patience is over, or there is no use in sending
	 * @throws Stopped if the execution was stopped
	 */
	async enter(
		patience: () => number,
		until: number,
		isFirst: boolean,
	): Promise<Ticket | undefined> {
		return await this.oneAtATime.run(async () => await this.nextTicket(patience, until), isFirst);
	}

	private async nextTicket(patience: () => number, until: number): Promise<Ticket | undefined> {
		let patienceMs = 0;
		for (;;) {
			if (this.signal?.aborted) throw new Stopped();
			if (this.closedBy) throw ItemError.from(this.closedBy);
			const now = clock.now();
			if (this.isOver || now >= until) return undefined;
			// Who waits for the end of a pause goes on to wait, although the last task ends meanwhile.
			patienceMs = Math.max(patienceMs, patience());
			this.checkPatience(patienceMs, until, now);
			if (this.turn.isOver) return undefined;
			const at = this.nextAt(now);
			if (at <= now) {
				this.gap.take();
				return this.limits.send(now);
			}
			const { woken, wake } = this.turn.alarm.wait(Math.min(at, until));
			this.wake = wake;
			await woken;
		}
	}

	/** @throws ItemError if the service has taken nothing for so long, or asks to wait for longer */
	private checkPatience(patienceMs: number, until: number, now: number): void {
		const { refusal, quietSince = now } = this;
		// The answer to an order that is under way may bring a task, and with it more patience.
		if (refusal === undefined || this.limits.underWay > 0) return;
		const isShort = isOfAddress(refusal) && !this.hasCreated && !this.hasAnswered;
		const longestMs = isShort ? Math.min(NO_SERVICE_PATIENCE_MS, patienceMs) : patienceMs;
		// A pause ends the turn, and the patience all the same; but not before this turn has tried.
		const hasTried = this.askedUntil > -Infinity;
		if (hasTried && now - quietSince > longestMs) throw ItemError.from(refusal);
		const pausedMs = this.pausedUntil - now;
		const isTooLong = pausedMs > patienceMs || (pausedMs > until - now && !this.turn.maySleep);
		if (!isTooLong || this.turn.isOver) return;
		// A pause of the run's own is no word of the service.
		if (this.askedUntil < this.pausedUntil) throw ItemError.from(refusal);
		throw ItemError.because(
			refusal,
			`The service asks to wait for ${Math.ceil(pausedMs / 1000)} s more, which is longer than this node waits.`,
		);
	}

	private nextAt(now: number): number {
		const { underWay, unfinished } = this.limits;
		const isSingle = this.inVain > 0 || (this.goesSingly && !this.hasCreated);
		const isFull = underWay + unfinished >= this.most || (isSingle && underWay > 0);
		return isFull ? Infinity : Math.max(this.limits.nextAt(now), this.gap.nextAt);
	}

	/** The service took the task, which is unfinished until `finished` is called. */
	accepted(ticket: Ticket): void {
		this.limits.accepted(ticket, clock.now());
		this.hasCreated = true;
		this.inVain = 0;
		this.goOn();
	}

	/** An accepted task has ended at the service, or nobody follows it any more. */
	finished(): void {
		this.limits.finished();
		this.goOn();
	}

	/** An order ended without telling anything about the account's limits. */
	ended(): void {
		this.limits.ended();
		this.wake();
	}

	/** The service certainly did not take the task, and it is not sent again. */
	refusedOnce(): void {
		this.goesSingly = true;
	}

	/** The service certainly did not take the task. */
	refused(ticket: Ticket, error: ServiceError): void {
		if (isOfAddress(error)) {
			this.doubtful(ticket, error);
			return;
		}
		const now = clock.now();
		this.limits.refused(ticket, now, error.retryAfterMs ?? 0);
		this.observe(error, now);
		this.hasAnswered = true;
		this.reachLimit();
		this.wake();
	}

	/**
	 * Nobody knows whether the service took the task, or there was no connection. If the service is down, a whole batch
	 * would end like this. So until the service accepts a task, orders go out one at a time, after growing pauses; after a
	 * few of them in a row nothing more is ordered in this turn.
	 */
	doubtful({ sentAt }: Ticket, error: ServiceError): void {
		const now = clock.now();
		this.limits.ended();
		this.observe(error, now);
		if (sentAt >= this.inVainAt) {
			this.inVainAt = now;
			const count = this.inVain++;
			// Without a connection nothing was sent, so it costs nothing to try again.
			const isDoubt = error.taken === 'unknown';
			if (isDoubt && this.inVain >= MOST_IN_VAIN) this.rest(now);
			else {
				const pauseMs = 1000 * 2 ** count * (0.5 + this.random() / 2);
				this.limits.pause(now + Math.min(pauseMs, FIRST_REST_MS / 2));
			}
		}
		this.limits.pause(this.pausedUntil);
		this.wake();
	}

	private rest(now: number): void {
		this.turn.end();
		const ms = FIRST_REST_MS * 2 ** (this.inVain - MOST_IN_VAIN);
		this.pauseUntil(now + Math.min(ms, LONGEST_REST_MS));
	}

	private observe(error: ServiceError, now: number): void {
		this.refusal = error;
		this.quietSince ??= now;
		this.askedUntil = Math.max(this.askedUntil, now + (error.retryAfterMs ?? 0));
		this.pauseUntil(this.askedUntil);
	}

	private pauseUntil(moment: number): void {
		this.pausedUntil = Math.max(this.pausedUntil, moment);
		this.turn.pause(this.pausedUntil);
		this.limits.pause(this.pausedUntil);
	}

	/** Whether the service has asked for a pause that is not over. */
	get isPaused(): boolean {
		return clock.now() < this.pausedUntil;
	}

	/** Whether something is left to order in this turn, as far as known. */
	get isCreating(): boolean {
		return !this.isOver && (this.oneAtATime.isBusy || this.limits.underWay > 0);
	}

	/** Admits no further order. @param error why; undefined if the run orders nothing more */
	close(error?: ServiceError): void {
		this.closed ??= { error };
		this.wake();
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
		this.wake();
	}
}
