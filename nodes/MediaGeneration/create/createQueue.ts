import type { RequestGap } from '../service/requestGap';
import { ServiceError } from '../service/serviceError';
import { Semaphore } from '../shared/promises';
import { type Clock, sleepUntil, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import type { CreateThrottle, Ticket } from './createThrottle';

/** So long a run puts up with what is no such service, or cannot be reached, where nothing shows that there is one. */
const NO_SERVICE_PATIENCE_MS = 5_000;

const LONGEST_PAUSE_MS = 30_000;

/**
 * The creates of one run wait here for their turn, in the order of the items, until the throttle lets one go. All
 * times are milliseconds of the clock; an item's patience is the longest pause that it puts up with, milliseconds.
 */
export class CreateQueue {
	/** How the service has refused a create of this run, if it did. */
	refusal: ServiceError | undefined;

	/** Whether the service has taken a task of this run, or of an earlier try: what fails then is passing trouble, or the item's own. */
	hasCreated = false;

	/** Until when the service asked to wait. */
	private askedUntil = -Infinity;

	/** Creates in a row without a connection, or whose outcome nobody knows. Those that were under way together count once. */
	private inVain = 0;
	private inVainAt = -Infinity;

	/** Since when nobody is let in and nothing finishes. */
	private quietSince: number | undefined;

	/** Nothing more is sent for whoever has no more patience than that; with Infinity for good. */
	private end: { patienceMs: number; error: ServiceError | undefined } | undefined;

	/** One after the other, so that the tasks are created in the order of the items. */
	private readonly turns = new Semaphore(1);

	/** Has the create whose turn it is look again: when something happens, and at the alarm. */
	private wake: () => void = () => undefined;
	private alarmAt = Infinity;

	private reachLimit: () => void = () => undefined;

	/** Comes true when the service refuses a create of this run for the first time. */
	readonly limited = new Promise<void>((resolve) => {
		this.reachLimit = resolve;
	});

	/**
	 * @param gap keeps all requests of the run at some distance
	 * @param random for the jitter, from 0 to 1
	 * @param most how many tasks of the run may be unfinished at once
	 */
	constructor(
		private readonly clock: Clock,
		readonly throttle: CreateThrottle,
		private readonly gap: RequestGap,
		private readonly signal: AbortSignal | undefined,
		private readonly random: () => number = Math.random,
		private readonly most = Infinity,
	) {
		signal?.addEventListener('abort', () => this.wake(), { once: true });
	}

	/**
	 * Waits for a place.
	 *
	 * @param until when it is too late
	 * @returns a ticket for exactly one create, to be handed to `accepted`, `refused` or `doubtful`, or else `ended`
	 *   called; undefined where the run creates nothing more, or where it is too late
	 * @throws Error where the service asks for a longer pause, or to send on is no use
	 * @throws Stopped where the execution was stopped
	 */
	async enter(patienceMs: number, until = Infinity): Promise<Ticket | undefined> {
		return await this.turns.run(async () => await this.place(patienceMs, until));
	}

	private async place(patienceMs: number, until: number): Promise<Ticket | undefined> {
		for (;;) {
			if (this.signal?.aborted) throw new Stopped();
			if (this.end && patienceMs <= this.end.patienceMs) {
				if (!this.end.error) return undefined;
				throw ItemError.because(this.end.error, 'This item was not sent.');
			}
			const now = this.clock.now();
			if (now > until) return undefined;
			if (this.refusal && this.askedUntil - now > patienceMs) {
				const seconds = Math.ceil((this.askedUntil - now) / 1000);
				throw ItemError.because(
					this.refusal,
					`The service asks to wait for ${seconds} s more, which is longer than 'Timeout' in the options.`,
				);
			}
			const at = this.nextAt(now);
			if (at <= now) {
				this.gap.take();
				return this.throttle.send(now);
			}
			if (now >= until) return undefined;
			const change = new Promise<void>((resolve) => {
				this.wake = resolve;
			});
			this.setAlarm(Math.min(at, until));
			await change;
		}
	}

	private nextAt(now: number): number {
		const { underWay, unfinished } = this.throttle;
		const isFull = underWay + unfinished >= this.most || (this.inVain > 0 && underWay > 0);
		return isFull ? Infinity : Math.max(this.throttle.nextAt(now), this.gap.nextAt);
	}

	/** One alarm is enough: whoever is woken looks when to look next. */
	private setAlarm(at: number): void {
		if (at >= this.alarmAt) return;
		this.alarmAt = at;
		const ring = () => {
			if (this.alarmAt === at) this.alarmAt = Infinity;
			this.wake();
		};
		void sleepUntil(at, this.clock, this.signal).then(ring, ring);
	}

	/** The service took the task, which is unfinished from now on, until `finished` is called. */
	accepted(ticket: Ticket): void {
		this.throttle.accepted(ticket, this.clock.now());
		this.hasCreated = true;
		this.inVain = 0;
		this.goOn();
	}

	/** An accepted task has ended at the service, or is not followed any more. */
	finished(): void {
		this.throttle.finished();
		this.goOn();
	}

	/** A create ended in a way that says nothing of the account. */
	ended(): void {
		this.throttle.ended();
		this.wake();
	}

	/**
	 * The service certainly did not take the task.
	 *
	 * @returns whether to send on is no use
	 */
	refused(ticket: Ticket, error: ServiceError, patienceMs: number): boolean {
		if (error.kind === 'unreachable') return this.doubtful(ticket, error, patienceMs);
		const now = this.clock.now();
		const { retryAfterMs = 0 } = error;
		this.throttle.refused(ticket, now, retryAfterMs);
		this.refusal = error;
		this.reachLimit();
		this.askedUntil = Math.max(this.askedUntil, now + retryAfterMs);
		return this.giveUpWhereHopeless(error, patienceMs);
	}

	/**
	 * Nobody knows whether the service took the task, or no connection came about. Of a service that is down there would be
	 * such doubts about a whole batch, so until it accepts a task, creates go one at a time, after ever longer pauses.
	 *
	 * @returns whether to send on is no use
	 */
	doubtful({ sentAt }: Ticket, error: ServiceError, patienceMs: number): boolean {
		const now = this.clock.now();
		this.throttle.ended();
		if (sentAt >= this.inVainAt) {
			this.inVainAt = now;
			const pauseMs = 1000 * 2 ** this.inVain++ * (0.5 + this.random() / 2);
			this.throttle.pause(now + Math.min(pauseMs, LONGEST_PAUSE_MS));
		}
		return this.giveUpWhereHopeless(error, patienceMs);
	}

	/** Goes on with a pause that the service asked for in an earlier try. */
	pause(ms: number): void {
		if (ms === 0) return;
		this.refusal = new ServiceError('tooManyRequests', 'The service refused an earlier try');
		this.askedUntil = this.clock.now() + ms;
		this.throttle.pause(this.askedUntil);
	}

	/** Whether something is left to create, as far as it is known. */
	get isCreating(): boolean {
		return !this.isOver && (this.turns.isBusy || this.throttle.underWay > 0);
	}

	/**
	 * Lets nobody in any more.
	 *
	 * @param error why; undefined where the run creates nothing more
	 * @param patienceMs for whoever has no more patience than that, until a task is let in or finishes after all
	 */
	close(error?: ServiceError, patienceMs = Infinity): void {
		if (!this.isOver) this.end = { patienceMs, error };
		this.wake();
	}

	private get isOver(): boolean {
		return this.end?.patienceMs === Infinity;
	}

	private goOn(): void {
		this.quietSince = undefined;
		if (!this.isOver) this.end = undefined;
		this.wake();
	}

	/**
	 * Where to send on is no use, that is so for all who have no more patience: nobody waits for the same answer again.
	 *
	 * @returns whether it is: nobody was let in and nothing finished for the whole patience, which is short while nothing
	 *   shows that the service is there
	 */
	private giveUpWhereHopeless(error: ServiceError, patienceMs: number): boolean {
		const now = this.clock.now();
		this.quietSince ??= now;
		const isNoService = error.kind === 'unreachable' || error.kind === 'unexpectedAnswer';
		const isShort = isNoService && !this.hasCreated && this.refusal === undefined;
		const longestMs = isShort ? Math.min(NO_SERVICE_PATIENCE_MS, patienceMs) : patienceMs;
		const isHopeless = now - this.quietSince > longestMs;
		if (isHopeless) this.close(error, patienceMs);
		else this.wake();
		return isHopeless;
	}
}
