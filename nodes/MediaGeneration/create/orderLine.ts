import { settled } from '../shared/clock';
import type { Ticket } from './accountLimits';
import type { Refusal } from './circuitBreaker';

/** An order that waits. */
export interface Order {
	/** How long the item waits while the service takes nothing, and while a task of the run is unfinished; milliseconds. */
	patienceMs: number;
	timeoutMs: number;
	/** When it is too late, milliseconds of the clock. */
	until: number;
	/** The first refusal of the item, if it was refused. */
	refused: Refusal | undefined;
	/** Whether this turn may send the order. */
	isInWindow: boolean;
	/** Whether the order goes before the others, because it was sent before. */
	isFirst: boolean;
}

/** How long a run tries an address at which nothing has ever answered: the address is wrong. */
const NO_SERVICE_PATIENCE_MS = 5_000;

/**
 * How long an item waits, milliseconds.
 *
 * @param isBesideTasks whether a task of the run is unfinished: the run waits for its end anyway
 * @param isOfNobody whether nothing has ever answered at the address
 */
export function patienceOf(
	{ patienceMs, timeoutMs }: Order,
	isBesideTasks: boolean,
	isOfNobody = false,
): number {
	const mostMs = isBesideTasks ? Math.max(patienceMs, timeoutMs) : patienceMs;
	return isOfNobody ? Math.min(NO_SERVICE_PATIENCE_MS, mostMs) : mostMs;
}

/** What the orders need to know of the turn, and what they tell it. */
export interface TurnOfQueue {
	readonly maySleep: boolean;
	readonly isOver: boolean;
	pause(until: number): void;
	noteProgress(): void;
	readonly alarm: { wait(at: number): { woken: Promise<void>; wake: () => void } };
}

/** A ticket for one order; undefined if the order is not to be sent now. */
export type Entered = Ticket | undefined;

interface Entrant {
	order: Order;
	resolve: (entered: Entered) => void;
	reject: (error: unknown) => void;
}

/** The orders that wait, in the order of the items: those of items that were refused, and all others. */
export class OrderLine {
	private readonly refused: Entrant[] = [];
	private readonly others: Entrant[] = [];
	private isServing = false;

	/** Makes the order at the door look again: something has happened. */
	wake: () => void = () => undefined;

	/**
	 * @param look what becomes of the order that goes next; `later`: something has happened, so another one may be the next
	 * @param isDue whether an item that was refused goes before the others
	 */
	constructor(
		private readonly look: (order: Order) => Promise<Entered | 'later'>,
		private readonly isDue: (order: Order) => boolean,
	) {}

	get length(): number {
		return this.refused.length + this.others.length;
	}

	/** Waits until the order is let in. @throws what `look` throws */
	async enter(order: Order): Promise<Entered> {
		const entered = new Promise<Entered>((resolve, reject) => {
			const entrant = { order, resolve, reject };
			if (order.refused) this.refused.push(entrant);
			else if (order.isFirst) this.others.unshift(entrant);
			else this.others.push(entrant);
		});
		if (this.isServing) this.wake();
		else void this.serve();
		return await entered;
	}

	/** One order at a time, so that the tasks are created in the order of the items. */
	private async serve(): Promise<void> {
		this.isServing = true;
		for (let next = this.next; next !== undefined; next = this.next) {
			const looked = await settled(this.look(next.order));
			if ('value' in looked && looked.value === 'later') continue;
			for (const line of [this.others, this.refused]) {
				const index = line.indexOf(next);
				if (index !== -1) line.splice(index, 1);
			}
			if ('error' in looked) next.reject(looked.error);
			else next.resolve(looked.value as Entered);
		}
		this.isServing = false;
	}

	private get next(): Entrant | undefined {
		const [other] = this.others;
		const [again] = this.refused;
		if (other === undefined || again === undefined) return other ?? again;
		return this.isDue(again.order) ? again : other;
	}
}
