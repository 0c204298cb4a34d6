import { ServiceError } from '../service/serviceError';
import { type Clock, sleepUntil, Stopped } from '../shared/clock';

/** Between two creates: 200 at once would be 200 connections in the same instant. */
const SEND_GAP_MS = 4;

/** Creates under way at first. Each that is accepted allows one more, so that a low limit shows before it hurts. */
const FIRST_WINDOW = 2;

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;

/** Tasks that must finish before one more than the account allowed last time is tried. */
const FIRST_PROBE = 4;

/** A place for one create. */
export interface Ticket {
	/** Milliseconds of the clock. */
	sentAt: number;
}

/**
 * What one run knows of the account, shared by all its items. The service publishes neither how many tasks an
 * account may have unfinished nor how often it may ask (specification, section 8), so both are learned from its
 * refusals: after one, no more tasks are kept unfinished than it had let in, and nothing is sent before the time it
 * named, or else before an exponential pause with jitter. When tasks finish, one more is tried now and then.
 */
export class AccountLimits {
	/** How many tasks may be unfinished at once, as far as is known. */
	private limit: number;

	private unfinished = 0;

	private sending = 0;

	private window = FIRST_WINDOW;

	private nextSendAt = 0;

	private pauses = 0;

	private lastRefusalAt = -Infinity;

	private lastRefusal: ServiceError | undefined;

	/** Since when nobody is let in and nothing finishes, milliseconds of the clock. */
	private quietSince: number | undefined;

	private finishedSinceRefusal = 0;

	private probeAfter = FIRST_PROBE;

	/** Ends when the one who came last has got a place. */
	private lastTurn = Promise.resolve();

	/** Has the one whose turn it is look again. */
	private wake: () => void = () => undefined;

	private closed = false;

	/** How many times in a row it could not connect. */
	unreachable = 0;

	/**
	 * @param maxInFlight how many tasks the user lets be unfinished at once
	 * @param signal aborted when the execution is stopped
	 * @param random for the jitter, from 0 to 1
	 */
	constructor(
		private readonly clock: Clock,
		private readonly maxInFlight: number,
		private readonly signal: AbortSignal | undefined,
		private readonly random: () => number = Math.random,
	) {
		this.limit = maxInFlight;
		signal?.addEventListener('abort', () => this.wake(), { once: true });
	}

	/**
	 * Waits for a place.
	 *
	 * @param patienceMs the longest pause to put up with, milliseconds
	 * @returns a ticket for exactly one create, to be handed to `accepted`, `refused` or `ended`; undefined where the
	 *   run creates nothing more
	 * @throws ServiceError where the service asks for a longer pause
	 * @throws Stopped where the execution was stopped
	 */
	async enter(patienceMs: number): Promise<Ticket | undefined> {
		// One after the other, so that the tasks are created in the order of the items.
		const turn = this.lastTurn;
		let leave: () => void = () => undefined;
		this.lastTurn = new Promise((resolve) => {
			leave = resolve;
		});
		await turn;
		try {
			return await this.place(patienceMs);
		} finally {
			leave();
		}
	}

	private async place(patienceMs: number): Promise<Ticket | undefined> {
		for (;;) {
			if (this.signal?.aborted) throw new Stopped();
			if (this.closed) return undefined;
			const now = this.clock.now();
			if (this.lastRefusal && this.nextSendAt - now > patienceMs) {
				throw tooLong(this.lastRefusal, this.nextSendAt - now);
			}
			const hasPlace = this.unfinished + this.sending < this.limit && this.sending < this.window;
			if (hasPlace && now >= this.nextSendAt) {
				this.sending++;
				this.nextSendAt = now + SEND_GAP_MS;
				return { sentAt: now };
			}
			const change = new Promise<void>((resolve) => {
				this.wake = resolve;
			});
			const due = hasPlace && sleepUntil(this.nextSendAt, this.clock, this.signal);
			await (due ? Promise.race([change, due]) : change);
		}
	}

	/** The service took the task, which is unfinished from now on. */
	accepted(): void {
		this.sending--;
		this.unfinished++;
		this.window++;
		this.pauses = 0;
		this.unreachable = 0;
		this.quietSince = undefined;
		// Creates that were under way at a refusal may be let in after it.
		this.limit = Math.max(this.limit, this.unfinished);
		this.wake();
	}

	/** Takes on a task of an earlier try, which may be unfinished still. */
	adopt(): void {
		this.unfinished++;
	}

	/** The service certainly did not take the task: everybody pauses. */
	refused({ sentAt }: Ticket, error: ServiceError): void {
		this.sending--;
		const now = this.clock.now();
		if (error.kind !== 'unreachable') {
			this.limit = Math.max(1, Math.min(this.limit, this.unfinished));
		}
		// Creates that were under way together are refused together: that is one refusal.
		if (sentAt > this.lastRefusalAt) {
			if (this.finishedSinceRefusal > 0) this.probeAfter *= 2;
			this.finishedSinceRefusal = 0;
			this.pauses++;
			if (error.kind === 'unreachable') this.unreachable++;
			this.lastRefusalAt = now;
		}
		const longest = Math.min(FIRST_PAUSE_MS * 2 ** (this.pauses - 1), MAX_PAUSE_MS);
		const ownPause = longest * (0.5 + this.random() / 2);
		// A time in the past, as a clock that is slow makes it, would be a storm of requests.
		const { retryAfterMs = 0 } = error;
		const pause = retryAfterMs < FIRST_PAUSE_MS ? ownPause : retryAfterMs;
		this.lastRefusal = error;
		this.quietSince ??= sentAt;
		this.nextSendAt = Math.max(this.nextSendAt, now + pause);
		this.window = 1;
		this.wake();
	}

	/** A create ended in a way that says nothing of the account. */
	ended(): void {
		this.sending--;
		this.wake();
	}

	/** An accepted task is not waited for any more. */
	finished(): void {
		this.unfinished--;
		this.quietSince = undefined;
		this.finishedSinceRefusal++;
		if (this.limit < this.maxInFlight && this.finishedSinceRefusal >= this.probeAfter) {
			this.limit++;
			this.finishedSinceRefusal = 1;
		}
		this.wake();
	}

	/** How long nobody has been let in while nothing finished either, milliseconds. */
	get quietMs(): number {
		return this.quietSince === undefined ? 0 : this.clock.now() - this.quietSince;
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
