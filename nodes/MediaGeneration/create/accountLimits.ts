import { ConcurrencyLimit } from './concurrencyLimit';
import { Refusal } from './refusal';
import { RequestRate } from './requestRate';
import { SendWindow, SMALL_BATCH } from './sendWindow';

/** A shorter `Retry-After`, or a time in the past as a slow clock makes it, would be a storm of requests. */
const MIN_RETRY_AFTER_MS = 100;

/** Between two attempts to connect. */
const MAX_PAUSE_MS = 30_000;

/** A place for one create. */
export interface Ticket {
	/** Refusals before it; what was under way at a refusal says nothing new. */
	readonly refusals: number;
	/** Unfinished tasks when it was sent. */
	readonly unfinished: number;
	/** Whether it asks for a place more than is known of. */
	readonly asks: boolean;
	/** Whether it was sent because a time had come. */
	readonly isLook: boolean;
}

/**
 * When to send the next create. The service publishes neither how many tasks an account may have unfinished nor how
 * often it may ask (specification, section 8). A refusal may be either's, or a passing trouble: what happens next
 * tells them apart. If the end of a task lets in again, it was the number of tasks; if time alone does, the rate or an
 * accident, which differ by whether it comes again.
 *
 * Only decides: time and chance are handed in, nothing is awaited. Times are milliseconds of the clock.
 */
export class AccountLimits {
	readonly places = new ConcurrencyLimit();

	readonly rate: RequestRate;

	/** How many times in a row it could not connect. */
	unreachable = 0;

	private unfinished = 0;
	private sending = 0;
	private taken = 0;
	private refusals = 0;

	/** Refusals that taught something. */
	private understood = 0;
	private question: Refusal | undefined;
	private doubts = 0;

	private readonly window: SendWindow;
	private firstTakenAt: number | undefined;
	private taskMs: number | undefined;

	/**
	 * @param maxInFlight how many tasks the user lets be unfinished at once
	 * @param items how many creates there are: one in ten may be refused
	 * @param startedAt now
	 * @param random for the jitter, from 0 to 1
	 */
	constructor(
		private readonly maxInFlight: number,
		private readonly items: number,
		private readonly startedAt: number,
		private readonly random: () => number = Math.random,
	) {
		this.rate = new RequestRate(startedAt);
		this.window = new SendWindow(items);
	}

	/** @returns when the next create may be sent, or earlier; Infinity: not before something happens */
	nextAt(now: number): number {
		const inFlight = this.unfinished + this.sending;
		if (inFlight >= this.maxInFlight) return Infinity;
		if (this.question) {
			const { pausedUntil } = this.rate;
			return this.sending > 0 ? Infinity : this.question.nextAt(this.unfinished, pausedUntil);
		}
		if (this.sending >= this.mostUnderWay) return Infinity;
		const at = this.rate.nextAt(now);
		if (inFlight < this.places.known) return at;
		if (inFlight > this.places.known || this.sending > 0) return Infinity;
		return Math.max(at, this.places.askAt(this.allowance >= 1));
	}

	send(now: number): Ticket {
		const isLook = this.question !== undefined && now >= this.question.lookAt;
		const asks = !this.question && this.unfinished + this.sending >= this.places.known;
		this.sending++;
		this.rate.sent(now, this.allowance >= 1, this.question !== undefined);
		return { refusals: this.understood, unfinished: this.unfinished, asks, isLook };
	}

	/** The service took the task, which is unfinished from now on. */
	accepted(ticket: Ticket, now: number): void {
		this.sending--;
		this.unfinished++;
		this.taken++;
		this.unreachable = 0;
		this.firstTakenAt ??= now;
		this.rate.accepted();
		this.places.accepted(this.unfinished);
		const { question } = this;
		if (ticket.refusals !== this.understood) {
			if (question) question.unfinished = Math.max(question.unfinished, this.unfinished);
			return;
		}
		this.window.accepted();
		if (question) {
			this.answer(ticket, now, question);
		} else if (ticket.asks) {
			this.places.lift();
			this.window.open(1);
		}
	}

	/** The service certainly did not take the task, and says so. */
	refused(ticket: Ticket, now: number, retryAfterMs = 0): void {
		this.sending--;
		this.refusals++;
		this.unreachable = 0;
		this.rate.returned();
		const isAsked = retryAfterMs >= MIN_RETRY_AFTER_MS;
		if (isAsked) this.rate.pause(now + retryAfterMs);
		if (ticket.refusals !== this.understood) {
			if (!this.rate.isKnown && this.rate.pausedUntil < now) this.question?.isNoAccident();
			this.question?.postpone(this.rate.pausedUntil);
			return;
		}
		this.understood++;
		if (!this.question && (ticket.asks || this.places.isClimbing)) {
			this.places.asked(this.unfinished, now, this.patience(now), isAsked ? retryAfterMs : 0);
			return;
		}
		if (!this.question) this.rate.refused(now);
		this.question ??= new Refusal(now, this.unfinished, this.places.known);
		this.question.again(this.unfinished, now);
		this.question.tryAt = this.tryAt(this.question);
		this.question.lookAt = this.nextLook(this.question, now, isAsked);
		this.question.postpone(this.rate.pausedUntil);
	}

	/** No connection came about: that says nothing of the account. */
	notReached(ticket: Ticket, now: number): void {
		this.sending--;
		this.rate.returned();
		if (ticket.refusals !== this.understood) return;
		this.understood++;
		const longest = Math.min(1000 * 2 ** this.unreachable++, MAX_PAUSE_MS);
		this.rate.pause(now + longest * (0.5 + this.random() / 2));
		this.question?.postpone(this.rate.pausedUntil);
	}

	/** A create ended in a way that says nothing of the account. */
	ended(): void {
		this.sending--;
	}

	/** Takes on a task of an earlier try, which may be unfinished still. */
	adopt(): void {
		this.unfinished++;
	}

	/** A task has ended at the service, or is not waited for any more. */
	finished(now: number): void {
		this.unfinished--;
		const { question } = this;
		if (question && question.extra > 0) {
			// The one that was let in has taken its place. Where that is so once more, time is the simpler reason.
			if (this.doubts++ > 0 && question.hasRecurred) this.wasTime(question, now);
			else this.wasPlaces(question.levelBefore(this.unfinished), now);
		}
		this.places.shorten(this.patience(now));
		if (this.firstTakenAt !== undefined) this.taskMs ??= now - this.firstTakenAt;
	}

	/** Refusals that can be afforded: six, and one for ten tasks, the half of these before the first is created. */
	private get allowance(): number {
		return 6 + Math.min(this.items, this.items / 2 + this.taken) / 10 - this.refusals;
	}

	private get mostUnderWay(): number {
		if (this.rate.isKnown) return Math.max(2, this.rate.mostUnderWay);
		return this.window.most(this.places.isLast ? this.places.known : Infinity);
	}

	/** The service lets in again. */
	private answer(ticket: Ticket, now: number, question: Refusal): void {
		const isExtra = ticket.unfinished >= question.unfinished;
		if (isExtra && !question.letIn(now, this.unfinished, this.rate.isKnown)) {
			question.postpone(this.rate.pausedUntil);
			return;
		}
		if (isExtra || this.isTime(ticket, question)) this.wasTime(question, now);
		else this.wasPlaces(Math.max(question.unfinished, this.unfinished), now);
	}

	/** Whether it was time, though a task has ended meanwhile as well. */
	private isTime({ isLook }: Ticket, { unfinished, count }: Refusal): boolean {
		if (this.places.isLast) return false;
		if (unfinished < this.places.proven && this.rate.lessons > 0) return true;
		return isLook && count === 1 && (this.rate.isKnown || this.rate.pausedUntil > -Infinity);
	}

	private wasTime(question: Refusal, now: number): void {
		this.question = undefined;
		this.places.restore(Math.max(question.knownBefore, this.unfinished));
		this.rate.learn(now, question.lesson(now));
		if (!this.rate.isKnown) this.window.open(question.count > 1 ? 1 : this.window.first);
	}

	private wasPlaces(known: number, now: number): void {
		this.question = undefined;
		this.places.learn(known, now, this.patience(now));
		this.window.open(2, true);
	}

	private tryAt({ count }: Refusal): number {
		if (this.rate.lessons > 0 && !this.places.isLast) {
			return count > 1 && this.unfinished > 0.9 * this.places.proven ? this.unfinished - 1 : -1;
		}
		return count === 1 ? this.unfinished - 1 : Math.floor(this.unfinished / 3);
	}

	private nextLook(question: Refusal, now: number, isAsked: boolean): number {
		if (question.extra === 0) {
			if (isAsked && question.count === 1) return this.rate.pausedUntil;
			const at = this.rate.lookAt(now, question.count);
			if (at !== undefined) return at;
		}
		return question.nextLook(now, this.unfinished, {
			begunAt: this.rate.isKnown ? question.since : this.rate.begunAt,
			wasPlaces: this.places.isLast,
			isSmall: this.items < SMALL_BATCH,
			chance: this.random(),
		});
	}

	/** How long to wait until one more is asked for: what is lost by it is little against the whole, and so are refusals. */
	private patience(now: number): number {
		const taskMs = this.taskMs ?? now - (this.firstTakenAt ?? now);
		const restMs = ((this.items - this.taken) / Math.max(1, this.unfinished)) * taskMs;
		return Math.max(
			500,
			0.2 * (now - this.startedAt + taskMs),
			restMs / (2 * Math.max(0, this.allowance) + 1),
		);
	}
}
