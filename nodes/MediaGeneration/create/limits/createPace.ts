import { ConcurrencyLimit } from './concurrencyLimit';
import { Refusal, type Sent } from './refusal';
import { endedByTime } from './refusalCause';
import { RefusalBudget } from './refusalBudget';
import { RequestRate } from './requestRate';
import { CreatesUnderWay, SMALL_BATCH } from './createsUnderWay';

/** A shorter `Retry-After`, or a time in the past as a slow clock makes it, would be a storm of requests. */
const MIN_RETRY_AFTER_MS = 100;

/** Between two attempts to connect. */
const MAX_PAUSE_MS = 30_000;

/** A place for one create. */
export interface Ticket extends Sent {
	/** Refusals before it; what was under way at a refusal says nothing new. */
	readonly refusals: number;
	/** Whether it asks for a place more than is known of. */
	readonly asks: boolean;
	/** Whether it was sent because a time had come. */
	readonly isLook: boolean;
	readonly sentAt: number;
}

/**
 * When to send the next create. The service publishes neither how many tasks an account may have unfinished nor how
 * often it may ask (specification, section 8). A refusal may be either's, or a passing trouble: what happens next
 * tells them apart. If the end of a task lets in again, it was the number of tasks; if time alone does, the rate or an
 * accident, which differ by whether it comes again. That a task has ended is known a read later, so what time seems to
 * let in counts when it is certain that nothing had ended unseen.
 *
 * Only decides: time and chance are handed in, nothing is awaited. Times are milliseconds of the clock.
 */
export class CreatePace {
	readonly rate: RequestRate;

	/** How many times in a row it could not connect. */
	unreachable = 0;

	private unfinished = 0;
	private sending = 0;
	/** How long the service took to answer the last create that it took. */
	private latencyMs = 0;
	/** Refusals that taught something. */
	private understood = 0;
	private question: Refusal | undefined;

	private readonly places: ConcurrencyLimit;
	private readonly budget: RefusalBudget;
	private readonly window: CreatesUnderWay;

	/**
	 * @param maxInFlight how many tasks the user lets be unfinished at once
	 * @param items how many creates there are: one in ten may be refused
	 * @param pollIntervalMs a task is read so often
	 * @param startedAt now
	 * @param random for the jitter, from 0 to 1
	 */
	constructor(
		private readonly maxInFlight: number,
		private readonly items: number,
		pollIntervalMs: number,
		startedAt: number,
		private readonly random: () => number = Math.random,
	) {
		this.rate = new RequestRate(startedAt);
		this.places = new ConcurrencyLimit(pollIntervalMs);
		this.budget = new RefusalBudget(items, startedAt);
		this.window = new CreatesUnderWay(items);
	}

	/** @returns when the next create may be sent, or earlier; Infinity: not before something happens */
	nextAt(now: number): number {
		this.review(now);
		return Math.min(this.sendAt(now), this.places.certain.settlesAt);
	}

	send(now: number): Ticket {
		const isLook = this.question !== undefined && now >= this.question.lookAt;
		const asks = !this.question && this.unfinished + this.sending >= this.places.known;
		this.sending++;
		this.rate.sent(now, this.budget.hasSpare, this.question !== undefined);
		return { refusals: this.understood, unfinished: this.unfinished, asks, isLook, sentAt: now };
	}

	/** The service took the task. Only one that is followed counts as unfinished: nobody learns when another ends. */
	accepted(ticket: Ticket, now: number, isFollowed = true): void {
		this.sending--;
		if (isFollowed) this.unfinished++;
		this.unreachable = 0;
		this.latencyMs = now - ticket.sentAt;
		this.budget.accepted(now);
		this.rate.accepted();
		this.places.accepted(this.unfinished, now);
		const { question } = this;
		if (ticket.refusals !== this.understood) {
			if (question) question.unfinished = Math.max(question.unfinished, this.unfinished);
			return;
		}
		this.window.accepted();
		if (question) this.answer(ticket, now, question);
		else if (ticket.asks) this.places.gave();
	}

	/** The service certainly did not take the task, and says so. */
	refused(ticket: Ticket, now: number, retryAfterMs = 0): void {
		this.sending--;
		this.unreachable = 0;
		this.budget.refused();
		this.rate.returned();
		const isAsked = retryAfterMs >= MIN_RETRY_AFTER_MS;
		if (isAsked) this.rate.pause(now + retryAfterMs);
		if (ticket.refusals !== this.understood) {
			if (!this.rate.isKnown && this.rate.pausedUntil < now) this.question?.isNoAccident();
			return this.question?.postpone(this.rate.pausedUntil);
		}
		this.understood++;
		if (!this.question && (ticket.asks || this.places.isClimbing) && !this.rate.window.isUsedUp) {
			// A task may have ended while it was under way.
			const level = Math.max(ticket.unfinished, this.unfinished);
			const patienceMs = this.budget.patience(now, this.unfinished);
			this.places.asked(level, now, patienceMs, this.budget.idleMs(isAsked ? retryAfterMs : 0));
			return;
		}
		this.rate.refused(now, this.question === undefined);
		const { known, certain } = this.places;
		const question = (this.question ??= new Refusal(now, this.unfinished, known, certain.readMs));
		question.again(ticket, this.unfinished, now);
		question.tryAt = this.tryAt(question);
		question.lookAt = Math.max(this.nextLook(question, now, isAsked), this.rate.pausedUntil);
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

	/**
	 * A task has ended at the service, or is not waited for any more.
	 *
	 * @param takenAt when the service took it, where this run created it
	 */
	finished(now: number, takenAt = -Infinity): void {
		this.unfinished--;
		this.places.certain.finished(takenAt);
		this.budget.finished(now);
		this.places.shorten(this.budget.patience(now, this.unfinished));
	}

	private sendAt(now: number): number {
		const { question, places, rate } = this;
		const inFlight = this.unfinished + this.sending;
		if (inFlight >= this.maxInFlight) return Infinity;
		if (question) {
			return this.sending > 0 ? Infinity : question.nextAt(this.unfinished, rate.pausedUntil);
		}
		if (this.sending >= this.mostUnderWay) return Infinity;
		const at = rate.nextAt(now);
		if (inFlight < places.known) return at;
		if (this.sending > 0 || (inFlight > places.known && !places.isAsking)) return Infinity;
		if (places.isAsking) return at;
		return Math.max(at, places.askAt(this.budget.hasSpare));
	}

	/** What has become certain meanwhile. */
	private review(now: number): void {
		const { places, question } = this;
		places.certain.settle(now);
		if (!question) {
			if (places.review(now)) this.window.open(1);
		} else if (question.extra > 0 && places.certain.value > question.level) {
			this.wasTime(question, now);
		} else if (question.isExplained(now)) {
			this.wasPlaces(question, now);
		}
	}

	private get mostUnderWay(): number {
		const { places, rate, window } = this;
		if (rate.isKnown) return rate.mostUnderWay;
		if (places.isLast) return window.mostFor(places.known, this.latencyMs, this.budget.taskMs);
		// A single refusal may be an accident, and is no reason to go slower.
		return Math.min(window.most, this.understood === 1 ? Infinity : this.budget.atOnce);
	}

	/** The service lets in again. */
	private answer(ticket: Ticket, now: number, question: Refusal): void {
		if (ticket.unfinished < question.level) {
			const isTime = endedByTime(ticket, question, this.places, this.rate);
			return isTime ? this.wasTime(question, now) : this.wasPlaces(question, now);
		}
		const isFree = question.level === 0 || question.level < this.places.certain.value;
		const isTime = question.letIn(now, this.unfinished, this.rate.isKnown || isFree);
		if (isTime) this.wasTime(question, now);
		else question.postpone(this.rate.pausedUntil);
	}

	private wasTime(question: Refusal, now: number): void {
		this.question = undefined;
		this.places.restore(this.unfinished > question.knownBefore ? Infinity : question.knownBefore);
		this.rate.learn(now, question.lesson(now, this.places.isUnseen));
		if (!this.rate.isKnown) this.window.open(question.count > 1 ? 1 : this.window.first);
	}

	private wasPlaces(question: Refusal, now: number): void {
		this.question = undefined;
		this.rate.window.turn(question.lesson(now, false), false);
		const known = question.extra > 0 ? question.level : Math.max(question.level, this.unfinished);
		this.places.learn(known, now, this.budget.patience(now, this.unfinished), question.since);
		this.window.open(this.places.hasFallen ? 1 : 2, !this.places.hasFallen);
	}

	/** At how many unfinished tasks to send though no time has come: not at all where it is likely the rate. */
	private tryAt({ count, hasTried }: Refusal): number {
		if (count === 1 && this.rate.lessons > 0 && !this.places.isLast) return -1;
		return hasTried ? Math.floor(this.unfinished / 3) : this.unfinished - 1;
	}

	private nextLook(question: Refusal, now: number, isAsked: boolean): number {
		if (question.extra === 0) {
			if (isAsked && question.count === 1) return this.rate.pausedUntil;
			const at = this.rate.lookAt(now, question.count, this.budget.hasSpare);
			if (at !== undefined) return at;
		}
		return question.nextLook(now, this.unfinished, {
			begunAt: this.rate.isKnown ? question.since : this.rate.window.startedAt,
			isUnseen: this.places.isUnseen,
			leastPauseMs: this.rate.leastPauseMs,
			wasPlaces: this.places.isLast,
			isSmall: this.items < SMALL_BATCH,
			chance: this.random(),
		});
	}
}
