import type { Settings } from '../../service/settings';
import { TROUBLED_MS } from '../history';
import type { CallbackTrouble } from '../history';
import type { World } from './world';

/** Longer than any history. */
export const NEVER_MS = 24 * 3_600_000;

/** An event with an id of its own, around the record. */
const EVENT = { id: 'event-1', type: 'task.finished', data: '$record' };

const withCallback = ({ service }: World) =>
	service.tasks.filter(({ webhookUrl }) => webhookUrl !== undefined).length;

/**
 * What becomes of the next task, and what holds for its create: the switches of the simulated service.
 *
 * @param item the item that the task is made for
 * @param isCalledBack whether it has a callback address
 */
export function fateOf(world: World, item: string, isCalledBack: boolean): Settings {
	const { random, service, history, network } = world;
	const { saysRetryAfter, hanging, failing, longestTaskMs } = history.service;
	const isCharged = history.charged.includes(service.tasks.length);
	const { maxUnfinished, maxPerSecond } = service.limits;
	const number = service.tasks.length;
	const retryAfter = saysRetryAfter && random.between(1, 8, 'retry-after', network.seen.length);
	const limited = (limit: number) => ({ limit, ...(retryAfter && { retryAfter }) });
	const latencyMs = hanging.includes(number)
		? NEVER_MS
		: random.between(200, longestTaskMs, 'duration', number);
	const attempt = service.tasks.filter((task) => task.item === item).length + 1;
	return {
		...(maxUnfinished > 0 && { concurrencyLimit: limited(maxUnfinished) }),
		...(maxPerSecond > 0 && { createsPerSecond: limited(maxPerSecond) }),
		latencyMs,
		...(failing.includes(number) && {
			outcome: 'FAILURE' as const,
			...(isCharged && { extraFields: { creditsConsumed: 8 } }),
		}),
		// The specification does not show a callback's fields.
		...(random.between(0, 9, 'shape', number) === 0 && { callbackShape: EVENT }),
		callbackDelayMs: random.between(1, 300, 'callback', withCallback(world)),
		...(isCalledBack && callbackSwitches(callbackTroubleOf(world, latencyMs))),
		...unfitOf(world, item),
		...service.script?.(item, attempt),
	};
}

/** What becomes of an item that only another input makes fit. */
function unfitOf({ history, n8n }: World, item: string): Settings {
	if (n8n.isMended) return {};
	const unfit = history.unfit.find((each) => item.endsWith(`item ${each.item}`));
	if (!unfit) return {};
	const error = { code: 'content_policy', message: 'This prompt is not allowed' };
	if (unfit.how === 'fails') return { outcome: 'FAILURE' };
	return { createStatus: { status: 400, body: { error } } };
}

/**
 * What happens to the callback of the next task.
 *
 * @param latencyMs until the task ends
 */
export function callbackTroubleOf(world: World, latencyMs: number): CallbackTrouble | undefined {
	const { time, history, service, random } = world;
	const nth = withCallback(world);
	const isOfLargeBatch = history.largeBatch.length > 0;
	if (isOfLargeBatch) return random.between(0, 3, 'large batch', nth) > 0 ? 'lost' : undefined;
	if (service.script || time.now + latencyMs > TROUBLED_MS) return undefined;
	return history.callbacks.find((each) => each.nth === nth)?.what;
}

/** The switches that make something happen to a callback. */
const SWITCHES: Record<CallbackTrouble, Settings> = {
	lost: { callbackLost: true },
	doubled: { callbackCopies: 2, callbackDelayMs: 5 },
	early: { endLagMs: 4_000 },
	late: { callbackDelayMs: 30_000, callbackCopies: 1 },
};
export const callbackSwitches = (what: CallbackTrouble | undefined): Settings =>
	what === undefined ? {} : SWITCHES[what];
