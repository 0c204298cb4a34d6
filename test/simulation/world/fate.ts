import { HOUR, SECOND } from '../../durations';
import type { Settings } from '../../service/settings';
import type { CallbackTrouble } from '../history';
import type { World } from './world';

/** Longer than any history. */
export const NEVER_MS = 100 * HOUR;

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
	const { saysRetryAfter, hanging, failing, charged, taskSeconds, isSpread } = history.service;
	const { maxUnfinished, maxPerSecond } = service.limits;
	const number = service.tasks.length;
	const retryAfter = saysRetryAfter && random.between(1, 8, 'retry-after', network.seen.length);
	const limited = (limit: number) => ({ limit, ...(retryAfter && { retryAfter }) });
	const percent = isSpread ? random.between(50, 150, 'duration', number) : 100;
	return {
		...(maxUnfinished > 0 && { concurrencyLimit: limited(maxUnfinished) }),
		...(maxPerSecond > 0 && { createsPerSecond: limited(maxPerSecond) }),
		latencyMs: hanging.includes(number) ? NEVER_MS : (taskSeconds * SECOND * percent) / 100,
		...(failing.includes(number) && {
			outcome: 'FAILURE' as const,
			...(charged.includes(number) && { extraFields: { creditsConsumed: 8 } }),
		}),
		// The specification does not show a callback's fields.
		...(random.between(0, 9, 'shape', number) === 0 && { callbackShape: EVENT }),
		callbackDelayMs: random.between(1, 300, 'callback', withCallback(world)),
		...(isCalledBack && SWITCHES[callbackTroubleOf(world) ?? 'none']),
		...unfitOf(world, item),
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

/** What happens to the callback of the next task. */
export function callbackTroubleOf(world: World): CallbackTrouble | undefined {
	return world.history.callbacks.find(({ nth }) => nth === withCallback(world))?.what;
}

/** The switches that make something happen to a callback. */
const SWITCHES: Record<CallbackTrouble | 'none', Settings> = {
	none: {},
	lost: { callbackLost: true },
	doubled: { callbackCopies: 2, callbackDelayMs: 5 },
	early: { endLagMs: 4_000 },
	late: { callbackDelayMs: 30_000, callbackCopies: 1 },
};
