import type { RequestGap } from '../service/requestGap';
import { ServiceError } from '../service/serviceError';
import { type Clock, sleepUntil, Stopped } from '../shared/clock';
import type { CreatePace, Ticket } from './limits/createPace';

const MAX_DOUBT_PAUSE_MS = 30_000;

/** The creates of one run wait here for their turn, in the order of the items, until the account's limits let one go. */
export class CreateQueue {
	private lastRefusal: ServiceError | undefined;

	/** Until when the service asked to wait. */
	private askedUntil = -Infinity;

	/** How many creates in a row nobody knows the outcome of; those that were under way together count once. */
	doubts = 0;

	/** When the last of them ended, milliseconds of the clock. */
	private doubtAt = -Infinity;

	private underWay = 0;

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

	/**
	 * @param pace decides when a create may be sent
	 * @param gap keeps all requests of the run at some distance
	 * @param signal aborted when the execution is stopped
	 */
	constructor(
		private readonly clock: Clock,
		private readonly pace: CreatePace,
		private readonly gap: RequestGap,
		private readonly signal: AbortSignal | undefined,
	) {
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
		const turn = this.lastTurn;
		let leave: () => void = () => undefined;
		this.lastTurn = new Promise((resolve) => {
			leave = resolve;
		});
		await turn;
		try {
			return await this.place(patienceMs, until);
		} finally {
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
			const isOneAtATime = this.doubts > 0 && this.underWay > 0;
			const at = isOneAtATime ? Infinity : Math.max(this.pace.nextAt(now), this.gap.nextAt);
			if (at <= now) {
				this.gap.take();
				this.underWay++;
				return this.pace.send(now);
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

	/**
	 * The service took the task, which is unfinished from now on.
	 *
	 * @param isFollowed whether the task is waited for, and `finished` called at its end
	 */
	accepted(ticket: Ticket, isFollowed = true): void {
		this.pace.accepted(ticket, this.clock.now(), isFollowed);
		this.underWay--;
		this.doubts = 0;
		this.quietSince = undefined;
		this.hopeless = undefined;
		this.wake();
	}

	/** Takes on a task of an earlier try, which may be unfinished still. */
	adopt(): void {
		this.pace.adopt();
	}

	/** The service certainly did not take the task. */
	refused(ticket: Ticket, error: ServiceError): void {
		const now = this.clock.now();
		this.underWay--;
		if (error.kind === 'unreachable') {
			this.pace.notReached(ticket, now);
		} else {
			const { retryAfterMs = 0 } = error;
			this.pace.refused(ticket, now, retryAfterMs);
			this.lastRefusal = error;
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
		this.pace.rate.pause(this.askedUntil);
	}

	/** A create ended in a way that says nothing of the account. */
	ended(): void {
		this.pace.ended();
		this.underWay--;
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
		if (ticket.sentAt < this.doubtAt) return;
		this.doubtAt = now;
		this.pace.rate.pause(now + pauseAfter(this.doubts++));
	}

	/**
	 * An accepted task has ended at the service, or is not waited for any more.
	 *
	 * @param takenAt when it was accepted, where this run created it; milliseconds of the clock
	 */
	finished(takenAt?: number): void {
		this.pace.finished(this.clock.now(), takenAt);
		this.quietSince = undefined;
		this.hopeless = undefined;
		this.wake();
	}

	/** How long nobody has been let in while nothing finished either, milliseconds. */
	get quietMs(): number {
		return this.quietSince === undefined ? 0 : this.clock.now() - this.quietSince;
	}

	/** How many times in a row no connection came about. */
	get unreachable(): number {
		return this.pace.unreachable;
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

/** Milliseconds before the next create: none after a single doubt, which may be about that one request. */
const pauseAfter = (earlierDoubts: number) =>
	earlierDoubts === 0 ? 0 : Math.min(1000 * 4 ** (earlierDoubts - 1), MAX_DOUBT_PAUSE_MS);

function tooLong({ kind, message, description = '', statusCode }: ServiceError, pauseMs: number) {
	return new ServiceError(kind, message, {
		description:
			`The service asks to wait for ${Math.ceil(pauseMs / 1000)} s more, which is longer than 'Timeout' in the options. ${description}`.trim(),
		...(statusCode !== undefined && { statusCode }),
	});
}
