import type { RequestGap } from '../service/client';
import { ServiceError } from '../service/serviceError';
import { Semaphore, settled } from '../shared/promises';
import { clock, sleepUntil, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import type { AccountLimits, Ticket } from './accountLimits';

/** How long a run tries an address that does not answer as the service does, if the service has never answered. */
const NO_SERVICE_PATIENCE_MS = 5_000;

const LONGEST_PAUSE_MS = 30_000;

/** Whether nothing shows that there is a service at the address. */
const isOfAddress = ({ meaning }: ServiceError) => meaning.scope === 'address';

/**
 * The queue of the creates of a run, in the order of the items. A create leaves the queue when the throttle admits it.
 * An item's patience is the longest pause that the item accepts, milliseconds. All times are milliseconds of the clock.
 */
export class CreateQueue {
	/** The last refusal of a create of this run. */
	refusal: ServiceError | undefined;

	/** Whether the service has taken a task. From then on an error is a passing error, or concerns one item. */
	hasCreated = false;

	/** The end of the pause that the service asked for. */
	private askedUntil = -Infinity;

	/** The creates in a row without a known outcome. Creates that were under way together count once. */
	private inVain = 0;
	private inVainAt = -Infinity;

	/** Whether a create was refused before any was taken. The next creates may be refused, too: they go out singly. */
	private goesSingly = false;

	/** Since when no create is admitted and no task finishes. */
	private quietSince: number | undefined;

	/** Items with at most this patience create nothing more. Infinity is for all items, for good. */
	private end: { patienceMs: number; error: ServiceError | undefined } | undefined;

	/** One create at a time, so that the tasks are created in the order of the items. */
	private readonly oneAtATime = new Semaphore(1);

	/** Makes the create at the head of the queue check again: when something happens, and at the alarm. */
	private wake: () => void = () => undefined;
	private alarmAt = Infinity;

	private reachLimit: () => void = () => undefined;
	/** Resolves when the service refuses a create of this run for the first time. */
	readonly limited = new Promise<void>((resolve) => {
		this.reachLimit = resolve;
	});

	/**
	 * @param gap the least time between two requests of the run
	 * @param random for the jitter, from 0 to 1
	 * @param most how many tasks of the run may be unfinished at once
	 */
	constructor(
		readonly throttle: AccountLimits,
		private readonly gap: RequestGap,
		private readonly signal: AbortSignal | undefined,
		private readonly random: () => number = Math.random,
		private readonly most = Infinity,
	) {
		signal?.addEventListener('abort', () => this.wake(), { once: true });
	}

	/**
	 * @param patience the item's patience, which may grow while the item waits
	 * @param until when it is too late
	 * @returns a ticket for one create, whose end is to be told by `accepted`, `refused`, `doubtful` or `ended`; undefined
	 *   if the run creates nothing more, or if it is too late
	 * @throws Error if the service asks for a longer pause, or if there is no use in sending
	 * @throws Stopped if the execution was stopped
	 */
	async enter(patience: () => number, until = Infinity): Promise<Ticket | undefined> {
		return await this.oneAtATime.run(async () => await this.place(patience, until));
	}

	private async place(patience: () => number, until: number): Promise<Ticket | undefined> {
		for (let patienceMs = 0; ;) {
			if (this.signal?.aborted) throw new Stopped();
			patienceMs = Math.max(patienceMs, patience());
			if (this.end && patienceMs <= this.end.patienceMs) {
				if (!this.end.error) return undefined;
				throw ItemError.from(this.end.error);
			}
			const now = clock.now();
			if (now >= until) return undefined;
			const askedMs = this.askedUntil - now;
			// The answer to a create that is under way may bring a task, and with it more patience.
			const longestMs = Math.min(patienceMs, until - now);
			if (this.refusal && askedMs > longestMs && this.throttle.underWay === 0) {
				throw ItemError.because(
					this.refusal,
					`The service asks to wait for ${Math.ceil(askedMs / 1000)} s more, which is longer than this node waits.`,
				);
			}
			const at = this.nextAt(now);
			if (at <= now) {
				this.gap.take();
				return this.throttle.send(now);
			}
			await new Promise<void>((resolve) => {
				this.wake = resolve;
				this.setAlarm(Math.min(at, until));
			});
		}
	}

	private nextAt(now: number): number {
		const { underWay, unfinished } = this.throttle;
		const isSingle = this.inVain > 0 || (this.goesSingly && !this.hasCreated);
		const isFull = underWay + unfinished >= this.most || (isSingle && underWay > 0);
		return isFull ? Infinity : Math.max(this.throttle.nextAt(now), this.gap.nextAt);
	}

	/** One alarm is enough: the create that wakes up sets the next alarm. */
	private setAlarm(at: number): void {
		if (at >= this.alarmAt) return;
		this.alarmAt = at;
		void settled(sleepUntil(at, this.signal)).then(() => {
			if (this.alarmAt === at) this.alarmAt = Infinity;
			this.wake();
		});
	}

	/** The service took the task, which is unfinished until `finished` is called. */
	accepted(ticket: Ticket): void {
		this.throttle.accepted(ticket, clock.now());
		this.hasCreated = true;
		this.inVain = 0;
		this.goOn();
	}

	/** An accepted task has ended at the service, or nobody follows it any more. */
	finished(): void {
		this.throttle.finished();
		this.goOn();
	}

	/** A create ended without telling anything about the account's limits. */
	ended(): void {
		this.throttle.ended();
		this.wake();
	}

	/** The service certainly did not take the task, and it is not sent again. */
	refusedOnce(): void {
		this.goesSingly = true;
	}

	/**
	 * The service certainly did not take the task.
	 *
	 * @returns whether there is no use in sending on
	 */
	refused(ticket: Ticket, error: ServiceError, patienceMs: number): boolean {
		if (isOfAddress(error)) return this.doubtful(ticket, error, patienceMs);
		const now = clock.now();
		this.throttle.refused(ticket, now, error.retryAfterMs ?? 0);
		this.observePause(error, now);
		this.reachLimit();
		return this.giveUpWhereHopeless(error, patienceMs);
	}

	/**
	 * Nobody knows whether the service took the task, or there was no connection. If the service is down, a whole batch
	 * would end like this. So until the service accepts a task, creates go out one at a time, after growing pauses.
	 *
	 * @returns whether there is no use in sending on
	 */
	doubtful({ sentAt }: Ticket, error: ServiceError, patienceMs: number): boolean {
		const now = clock.now();
		this.throttle.ended();
		if (sentAt >= this.inVainAt) {
			this.inVainAt = now;
			const pauseMs = 1000 * 2 ** this.inVain++ * (0.5 + this.random() / 2);
			this.throttle.pause(now + Math.min(pauseMs, LONGEST_PAUSE_MS));
		}
		// A proxy that answers for the service may say when the service works again.
		if (error.retryAfterMs !== undefined) this.observePause(error, now);
		this.throttle.pause(this.askedUntil);
		return this.giveUpWhereHopeless(error, patienceMs);
	}

	private observePause(error: ServiceError, now: number): void {
		this.refusal = error;
		this.askedUntil = Math.max(this.askedUntil, now + (error.retryAfterMs ?? 0));
	}

	/** Observes the rest of a pause that the service asked for in an earlier try. */
	pause(ms: number): void {
		if (ms === 0) return;
		this.refusal = new ServiceError('tooManyRequests', 'The service refused an earlier try');
		this.askedUntil = clock.now() + ms;
		this.throttle.pause(this.askedUntil);
	}

	/** Whether the service has asked for a pause that is not over. */
	get isPaused(): boolean {
		return clock.now() < this.askedUntil;
	}

	/** Whether something is left to create, as far as known. */
	get isCreating(): boolean {
		return !this.isOver && (this.oneAtATime.isBusy || this.throttle.underWay > 0);
	}

	/**
	 * Admits no further create.
	 *
	 * @param error why; undefined if the run creates nothing more
	 * @param patienceMs for items with at most this patience, until a task is admitted or finishes after all
	 */
	close(error?: ServiceError, patienceMs = Infinity): void {
		if (!this.isOver) this.end = { patienceMs, error };
		this.wake();
	}

	/** Why nothing more is created, for good. */
	get closedBy(): ServiceError | undefined {
		return this.isOver ? this.end?.error : undefined;
	}

	/** Whether nothing more is created, for good. */
	get isOver(): boolean {
		return this.end?.patienceMs === Infinity;
	}

	private goOn(): void {
		this.quietSince = undefined;
		if (!this.isOver) this.end = undefined;
		this.wake();
	}

	/**
	 * Gives up for all items with at most this patience if nothing was admitted and nothing finished during the whole
	 * patience, which is short while the service has never answered.
	 *
	 * @returns whether there is no use in sending on
	 */
	private giveUpWhereHopeless(error: ServiceError, patienceMs: number): boolean {
		const now = clock.now();
		this.quietSince ??= now;
		const isShort = isOfAddress(error) && !this.hasCreated && this.refusal === undefined;
		const longestMs = isShort ? Math.min(NO_SERVICE_PATIENCE_MS, patienceMs) : patienceMs;
		const isHopeless = now - this.quietSince > longestMs;
		if (isHopeless) this.close(error, patienceMs);
		else this.wake();
		return isHopeless;
	}
}
