import type { Meaning } from '../service/meaning';
import type { ServiceError } from '../service/serviceError';
import type { StoredError } from '../shared/itemError';

/** The first refusal of an item's order, and when it came, milliseconds of the clock. */
export interface Refusal {
	at: number;
	error: StoredError;
}

/** The pause between two probes doubles from the first to the longest. A refused item waits for the longest one. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 20_000;

/** A disturbance lasts no longer than this: who is refused for longer is refused for good. */
const LONGEST_DISTURBANCE_MS = 5 * 60_000;

/** So long the service may refuse all orders; thirty probes have room in this time. */
const LONGEST_STRETCH_MS = 10 * 60_000;

/** So many orders without a known outcome in a row cost more than a wait: the run rests. The rests double. */
const MOST_DOUBTS = 3;
const FIRST_REST_MS = 60_000;
const LONGEST_REST_MS = 10 * 60_000;

/** So many refusals in a row that are alike end a batch whose first task was not taken yet. */
const MOST_ALIKE = 5;
const MOST_ALIKE_OF_KEY = 3;

/** What a breaker knows, as plain data. All times are milliseconds of the clock. */
export interface BreakerState {
	/** The orders in vain since the last task was taken, and those of them whose outcome nobody knows. */
	inVain: number;
	doubts: number;
	/** When the first of these orders was refused. */
	refusedAt?: number | undefined;
	/** When the last order that was taken left, and how many items were refused since. */
	taken?: { sentAt: number } | undefined;
	refusedItems?: number | undefined;
	/** When the next probe may leave. */
	probeAt?: number | undefined;
}

/** What a refusal means: the item has failed, it comes in again, or no item of the run will be taken. */
export type Verdict = 'its own' | 'again' | 'of all';

/**
 * The circuit breaker of the orders. A refusal is the item's own only if the service takes others.
 *
 * - _Before the first task_ answers that are alike end the batch, refusals and answers without an id: the key, the address
 *   or the model is wrong, or the account is empty.
 * - _Closed_: orders go out as the limits of the account admit them.
 * - _Open_, after an order in vain: a proxy, a firewall or the service may be disturbed. One order at a time goes out as a
 *   probe, after a growing pause. Items that were never refused go first. A probe that is taken closes the breaker.
 * - A refused item comes in again after a pause. It is refused for good at its second refusal, if the service took another
 *   order in between, or if no other item was refused since the service took an order: a disturbance does not choose. Where
 *   several items are refused and none is taken, the time tells: no disturbance lasts as long.
 */
export class CircuitBreaker {
	private alike: { answer: ServiceError; count: number } | undefined;

	/** When the orders that were in vain last came back. Orders that were under way together count once. */
	private countedAt: number | undefined;

	/**
	 * @param state what the breaker of an earlier turn knew
	 * @param isWatched whether somebody waits for the run, and can order again: then a second refusal is enough
	 */
	constructor(
		public state: BreakerState = { inVain: 0, doubts: 0 },
		private readonly isWatched: boolean,
	) {}

	/** When the next probe may leave: the next round of a loop keeps to it, too. */
	get probeAt(): number {
		return this.state.probeAt ?? -Infinity;
	}

	/** Whether one order at a time goes out. */
	get isOpen(): boolean {
		return this.state.inVain > 0;
	}

	/** Whether the service refuses everything for so long that no further item waits for it. */
	isOver(now: number): boolean {
		const { refusedAt = now } = this.state;
		return now - refusedAt >= LONGEST_STRETCH_MS;
	}

	/** When a refused item comes in again, milliseconds of the clock. */
	againAt({ at }: Refusal): number {
		return at + LONGEST_PAUSE_MS;
	}

	/** Whether the service takes orders again, and took one that left after a refusal. */
	hasWitness({ at }: Refusal): boolean {
		const { taken } = this.state;
		return !this.isOpen && taken !== undefined && taken.sentAt >= at;
	}

	taken(sentAt: number): void {
		this.alike = undefined;
		this.state = { inVain: 0, doubts: 0, taken: { sentAt } };
	}

	/**
	 * An order was refused, by words that say nothing of a later time.
	 *
	 * @param refusal of an order that is certainly not taken
	 * @param hasTaken whether the service has taken a task of this run
	 * @param before the first refusal of the same item
	 */
	turnedDown(
		refusal: ServiceError,
		sentAt: number,
		hasTaken: boolean,
		before: Refusal | undefined,
	): Verdict {
		const { kind, statusCode, meaning } = refusal;
		// How large a request is concerns that request alone, and so does what was not sent.
		if (kind === 'tooLarge' || statusCode === undefined) return 'its own';
		if (!hasTaken) {
			// It costs nothing to try the next item at once, alone.
			this.state.inVain++;
			return this.beforeFirst(refusal) ? 'of all' : 'its own';
		}
		if (meaning.scope === 'account') return 'of all';
		if (before === undefined) {
			this.state.refusedItems = (this.state.refusedItems ?? 0) + 1;
			return 'again';
		}
		return this.isItsOwn(before, sentAt, meaning) ? 'its own' : 'again';
	}

	private isItsOwn(before: Refusal, sentAt: number, { scope }: Meaning): boolean {
		if (this.isWatched || sentAt - before.at >= LONGEST_DISTURBANCE_MS) return true;
		const { taken, doubts, refusedItems = 0 } = this.state;
		if (taken && taken.sentAt >= before.at) return true;
		// A disturbance does not choose an item, and does not speak of one.
		return doubts === 0 && refusedItems <= 1 && scope === 'item';
	}

	/** Before the first task answers that are alike are counted. @returns whether they show that no item will be taken */
	private beforeFirst(answer: ServiceError): boolean {
		const count = this.alike && isLike(answer, this.alike.answer) ? this.alike.count + 1 : 1;
		this.alike = { answer, count };
		const ofOthers = answer.meaning.mayBeItem ? MOST_ALIKE_OF_KEY : 1;
		return count >= (isToldByText(answer) ? MOST_ALIKE : ofOthers);
	}

	/**
	 * An order was not taken, and cost nothing.
	 *
	 * @param isRefused whether the service, or something before it, refused the order; otherwise nothing was reached
	 */
	refused(sentAt: number, now: number, isRefused: boolean): void {
		if (isRefused) this.state.refusedAt ??= now;
		this.state.probeAt = now + (this.count(sentAt, now) ? this.pauseMs() : 0);
	}

	/**
	 * Nobody knows whether the service took an order.
	 *
	 * @param hasTaken whether the service has taken a task of this run
	 * @returns whether the run rests until the next probe; or that no item of the run will be taken
	 */
	doubtful(
		answer: ServiceError,
		sentAt: number,
		now: number,
		hasTaken: boolean,
	): 'again' | 'rest' | 'of all' {
		if (hasTaken || !answer.isWithoutId) this.alike = undefined;
		else if (this.beforeFirst(answer)) return 'of all';
		this.state.probeAt = now;
		if (!this.count(sentAt, now)) return 'again';
		const rests = ++this.state.doubts - MOST_DOUBTS;
		// A few more answers that are alike tell more than a rest.
		const isTelling = this.alike !== undefined && this.alike.count > 1;
		const isRest = rests >= 0 && !isTelling;
		this.state.probeAt += isRest
			? Math.min(FIRST_REST_MS * 2 ** rests, LONGEST_REST_MS)
			: this.pauseMs();
		return isRest ? 'rest' : 'again';
	}

	private count(sentAt: number, now: number): boolean {
		if (this.countedAt !== undefined && sentAt < this.countedAt) return false;
		this.countedAt = now;
		this.state.inVain++;
		return true;
	}

	private pauseMs(): number {
		const ms = FIRST_PAUSE_MS * 2 ** (this.state.inVain - 1);
		return Math.min(ms, LONGEST_PAUSE_MS) * (0.5 + Math.random() / 2);
	}
}

/** A refusal of the key is told by its status. Of the others the text decides, too. */
function isLike(one: ServiceError, other: ServiceError): boolean {
	if (one.statusCode !== other.statusCode) return false;
	return !isToldByText(one) || textWithoutIds(one) === textWithoutIds(other);
}

const isToldByText = ({ meaning, isWithoutId }: ServiceError): boolean =>
	meaning.scope === 'item' || isWithoutId;

/** The text of a refusal without the words that have a digit: ids and moments differ each time. */
const textWithoutIds = ({ message }: ServiceError): string =>
	message
		.split(/\s+/)
		.filter((word) => !/\d/.test(word))
		.join(' ');
