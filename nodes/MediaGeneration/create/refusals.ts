import type { ServiceError } from '../service/serviceError';

/** So many refusals in a row that are alike end a batch: they may concern one item each, or whatever is sent. */
const MOST_ALIKE = 5;

/** The same for refusals that concern the key or the address as a rule. */
const MOST_OF_ALL = 3;

/**
 * How many refusals in a row show that the service will take no item. Before the first task the key and the address are
 * in question. A task that was taken shows that both were right.
 */
function enough({ meaning: { scope, mayBeItem } }: ServiceError, hasCreated: boolean): number {
	if (scope === 'account') return 1;
	const isOfItem = scope === 'item' || mayBeItem;
	if (hasCreated) return isOfItem ? Infinity : MOST_OF_ALL;
	if (scope === 'item') return MOST_ALIKE;
	return mayBeItem ? MOST_OF_ALL : 1;
}

/** The text of a refusal without the words that have a digit: ids and moments differ each time. */
const textOf = ({ message }: ServiceError): string =>
	message
		.split(/\s+/)
		.filter((word) => !/\d/.test(word))
		.join(' ');

/** Decides when refusals of creates end a batch. */
export class RefusalsInARow {
	private last: ServiceError | undefined;
	private inARow = 0;

	/** A create was taken, or nobody knows whether it was taken. */
	reset(): void {
		this.last = undefined;
		this.inARow = 0;
	}

	/**
	 * A create was certainly not taken, and is not sent again.
	 *
	 * @param hasCreated whether the service has taken a task of this run
	 * @returns whether the service will take no item
	 */
	isOfAll(refusal: ServiceError, hasCreated: boolean): boolean {
		this.inARow = this.last !== undefined && this.isLike(refusal, this.last) ? this.inARow + 1 : 1;
		this.last = refusal;
		return this.inARow >= enough(refusal, hasCreated);
	}

	/** A refusal of the key is told by its status. Of the others the text decides, too. */
	private isLike(one: ServiceError, other: ServiceError): boolean {
		if (one.statusCode !== other.statusCode) return false;
		return one.meaning.scope !== 'item' || textOf(one) === textOf(other);
	}
}
