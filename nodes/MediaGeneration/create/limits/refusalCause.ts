import type { ConcurrencyLimit } from './concurrencyLimit';
import type { Refusal, Sent } from './refusal';
import type { RequestRate } from './requestRate';

/**
 * Which of both has ended the refusals, where time has passed and a task has ended as well?
 *
 * @param sent the create that the service let in
 * @param isLook whether it was sent because a time had come
 * @returns whether it was time
 */
export function endedByTime(
	{ unfinished, isLook }: Sent & { isLook: boolean },
	{ level, unfinished: refusedAt, count }: Refusal,
	places: ConcurrencyLimit,
	rate: RequestRate,
): boolean {
	if (isLook && count === 1 && rate.window.wasUsedUp) return true;
	// More were let in before: the number has fallen, or it was time. Fallen to one of few values is not likely.
	const most = places.certain.value;
	if (isLook && refusedAt < most && level - unfinished < most / 2) return true;
	if (places.isLast) return false;
	if (places.hasHeld(refusedAt) && rate.lessons > 0) return true;
	return isLook && count === 1 && (rate.isKnown || rate.pausedUntil > -Infinity);
}
