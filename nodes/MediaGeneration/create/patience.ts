import type { ServiceError } from '../service/serviceError';
import { ItemError } from '../shared/itemError';
import type { Refusal } from './circuitBreaker';

/** How long a run tries an address that does not answer as the service does, if the service has never answered. */
const NO_SERVICE_PATIENCE_MS = 5_000;

/** An order that waits. */
export interface Order {
	/** How long the item waits while the service takes nothing, and while a task of the run is unfinished; milliseconds. */
	patienceMs: number;
	timeoutMs: number;
	/** When it is too late, milliseconds of the clock. */
	until: number;
	/** The first refusal of the item, if it was refused. */
	refused?: Refusal | undefined;
	/** Whether this turn may send the order. */
	isInWindow: boolean;
	/** Whether the order goes before the others, because it was sent before. */
	isFirst?: boolean;
}

/** A time in which nothing is sent, milliseconds of the clock. */
export interface Pause {
	until: number;
	/** Whether the service has asked for it; otherwise the run rests by itself. */
	isAsked: boolean;
	/** Whether the run had tasks, or might get a task, when the pause began: it waits for their end anyway. */
	isBesideTasks: boolean;
}

/** What is known of the service while it takes nothing. */
export interface Silence {
	refusal: ServiceError;
	silentMs: number;
	/** Whether the service has answered this run. */
	hasService: boolean;
	isBesideTasks: boolean;
}

/** Whether nothing shows that there is a service at the address. */
export const isOfAddress = ({ meaning }: ServiceError): boolean => meaning.scope === 'address';

/** While a task of the run is unfinished, the run waits for its end. */
const patienceOf = ({ patienceMs, timeoutMs }: Order, isBesideTasks: boolean): number =>
	isBesideTasks ? Math.max(patienceMs, timeoutMs) : patienceMs;

/** Whether an item waits no longer. If nothing has ever answered at the address, the address is wrong. */
export function isTooSilent(order: Order, silence: Silence): boolean {
	const { refusal, silentMs, hasService, isBesideTasks } = silence;
	const patienceMs = patienceOf(order, isBesideTasks);
	const isShort = !hasService && isOfAddress(refusal);
	return silentMs > (isShort ? Math.min(NO_SERVICE_PATIENCE_MS, patienceMs) : patienceMs);
}

/**
 * Checks that an item can wait for the end of a pause. A run that may sleep sleeps through the pause.
 *
 * @throws ItemError if it cannot
 */
export function checkPause(
	order: Order,
	pause: Pause,
	{ refusal, isBesideTasks }: Silence,
	now: number,
	maySleep: boolean,
): void {
	const pauseMs = pause.until - now;
	const mostMs = patienceOf(order, isBesideTasks || pause.isBesideTasks);
	if (pauseMs <= mostMs && (maySleep || pauseMs <= order.until - now)) return;
	if (!pause.isAsked) throw ItemError.from(refusal);
	throw ItemError.because(
		refusal,
		`The service asks to wait for ${Math.ceil(pauseMs / 1000)} s more, which is longer than this node waits.`,
	);
}
