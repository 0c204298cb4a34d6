import type { RequestGap } from '../service/requestPace';
import { ServiceError } from '../service/serviceError';
import { type Clock, sleepUntil, Stopped } from '../shared/clock';
import type { AccountLimits, Ticket } from './accountLimits';
import { doubtsInARow, type FailuresInARow, unreachableInARow } from './failuresInARow';

/** The creates of one run wait here for their turn, in the order of the items, until the account's limits let one go. */
export class CreateQueue {
	private lastRefusal: ServiceError | undefined;

	/** Until when the service asked to wait. */
	private askedUntil = -Infinity;

	/** The creates whose outcome nobody knows. */
	readonly doubts = doubtsInARow();

	/** The creates for which no connection came about. */
	readonly unreachable: FailuresInARow;

	/** Since when nobody is let in and nothing finishes, milliseconds of the clock. */
	private quietSince: number | undefined;

	/** Ends when the one who came last has got a place. */
	private lastTurn = Promise.resolve();

	/** Has the one whose turn it is look again. */
	private wake: () => void = () => undefined;

	private alarmAt = Infinity;

	private closed = false;

	/** Why nothing more is sent for whoever has no more patience than that. */
	private hopeless: { reason: () => Error; patienceMs: number } | undefined;

	/** How many wait for a place. */
	private waiting = 0;

	private reachLimit: () => void = () => undefined;

	/** Comes true when the service refuses a create of this run for the first time. */
	readonly limited = new Promise<void>((resolve) => {
		this.reachLimit = resolve;
	});

	/**
	 * @param limits decide when a create may be sent
	 * @param gap keeps all requests of the run at some distance
	 * @param signal aborted when the execution is stopped
	 * @param random for the jitter, from 0 to 1
	 */
	constructor(
		private readonly clock: Clock,
		private readonly limits: AccountLimits,
		private readonly gap: RequestGap,
		private readonly signal: AbortSignal | undefined,
		random: () => number = Math.random,
	) {
		this.unreachable = unreachableInARow(random);
		signal?.addEventListener('abort', () => this.wake(), { once: true });
	}

	/**
	 * Waits for a place.
	 *
	 * @param patienceMs the longest pause to put up with, milliseconds
	 * @param until when it is too late, milliseconds of the clock
	 * @returns a ticket for exactly one create, to be handed to `accepted` or `refused`, or else `ended` called;
	 *   undefined where the run creates nothing more, or where it is too late
	 * @throws ServiceError where the service asks for a longer pause
	 * @throws Stopped where the execution was stopped
	 */
	async enter(patienceMs: number, until = Infinity): Promise<Ticket | undefined> {
		// One after the other, so that the tasks are created in the order of the items.
		this.waiting++;
		const turn = this.lastTurn;
		let leave: () => void = () => undefined;
		this.lastTurn = new Promise((resolve) => {
			leave = resolve;
		});
		await turn;
		try {
			return await this.place(patienceMs, until);
		} finally {
			this.waiting--;
			leave();
		}
	}

	private async place(patienceMs: number, until: number): Promise<Ticket | undefined> {
		for (;;) {
			if (this.signal?.aborted) throw new Stopped();
			if (this.closed) return undefined;
			if (this.hopeless && patienceMs <= this.hopeless.patienceMs) throw this.hopeless.reason();
			const now = this.clock.now();
			if (this.lastRefusal && this.askedUntil - now > patienceMs) {
				throw tooLong(this.lastRefusal, this.askedUntil - now);
			}
			const isOneAtATime = this.doubts.count > 0 && this.limits.underWay > 0;
			const at = isOneAtATime ? Infinity : Math.max(this.limits.nextAt(now), this.gap.nextAt);
			if (at <= now) {
				this.gap.take();
				return this.limits.send(now);
			}
			if (now >= until) return undefined;
			const change = new Promise<void>((resolve) => {
				this.wake = resolve;
			});
			this.setAlarm(Math.min(at, until));
			await change;
		}
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
		this.limits.accepted(ticket, this.clock.now());
		this.doubts.count = 0;
		this.unreachable.count = 0;
		this.quietSince = undefined;
		this.hopeless = undefined;
		this.wake();
	}

	/** Takes on a task of an earlier try, which may be unfinished still. */
	adopt(): void {
		this.limits.adopt();
	}

	/** The service certainly did not take the task. */
	refused(ticket: Ticket, error: ServiceError): void {
		const now = this.clock.now();
		if (error.kind === 'unreachable') {
			this.limits.ended();
			this.limits.pause(this.unreachable.add(ticket, now));
		} else {
			const { retryAfterMs = 0 } = error;
			this.unreachable.count = 0;
			this.limits.refused(ticket, now, retryAfterMs);
			this.lastRefusal = error;
			this.reachLimit();
			this.askedUntil = Math.max(this.askedUntil, now + retryAfterMs);
		}
		this.quietSince ??= now;
		this.wake();
	}

	/** Goes on with a pause that the service asked for in an earlier try. */
	pause(ms: number): void {
		if (ms === 0) return;
		this.lastRefusal = new ServiceError('tooManyRequests', 'The service refused an earlier try');
		this.askedUntil = this.clock.now() + ms;
		this.limits.pause(this.askedUntil);
	}

	/** A create ended in a way that says nothing of the account. */
	ended(): void {
		this.limits.ended();
		this.wake();
	}

	/**
	 * Nobody knows whether the service took the task. Of one that is down there would be such doubts about a whole batch,
	 * so until it accepts one, creates go one at a time, and after the second doubt in a row after ever longer pauses.
	 */
	doubtful(ticket: Ticket): void {
		const now = this.clock.now();
		this.ended();
		this.quietSince ??= now;
		this.limits.pause(this.doubts.add(ticket, now));
	}

	/** An accepted task has ended at the service, or is not followed any more. */
	finished(): void {
		this.limits.finished();
		this.quietSince = undefined;
		this.hopeless = undefined;
		this.wake();
	}

	/** Whether something is left to create, as far as it is known. */
	get isCreating(): boolean {
		return !this.closed && (this.waiting > 0 || this.limits.underWay > 0);
	}

	/** Whether a task of this run is unfinished: its end may let in again. */
	get hasUnfinished(): boolean {
		return this.limits.hasUnfinished;
	}

	/** How long nobody has been let in while nothing finished either, milliseconds. */
	get quietMs(): number {
		return this.quietSince === undefined ? 0 : this.clock.now() - this.quietSince;
	}

	/**
	 * Sends nothing more for whoever has no more patience, until a task is let in or finishes after all.
	 *
	 * @param reason makes the error for each who waits
	 */
	giveUp(reason: () => Error, patienceMs: number): void {
		this.hopeless = { reason, patienceMs };
		this.wake();
	}

	/** How the service has refused a create of this run, if it did. */
	get refusal(): ServiceError | undefined {
		return this.lastRefusal;
	}

	/** Lets nobody in any more. */
	close(): void {
		this.closed = true;
		this.wake();
	}
}

function tooLong({ kind, message, description = '', statusCode }: ServiceError, pauseMs: number) {
	return new ServiceError(kind, message, {
		description:
			`The service asks to wait for ${Math.ceil(pauseMs / 1000)} s more, which is longer than 'Timeout' in the options. ${description}`.trim(),
		...(statusCode !== undefined && { statusCode }),
	});
}
