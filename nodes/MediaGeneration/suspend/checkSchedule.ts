import { ServiceError } from '../service/serviceError';
import { without } from '../shared/json';
import { inGrowingGroups } from '../shared/promises';
import type { AwaitedDelivery, CheckState, DeliveryCheck, StoredFailure } from './checkState';

/** n8n resumes executions by time once a minute. */
export const MIN_CHECK_INTERVAL_MS = 60_000;

/** The longest pause between two checks that the node chooses by itself. */
export const MAX_CHECK_INTERVAL_MS = 15 * 60_000;

/** A task that cannot be read or delivered when its time is up is tried again for this long: the trouble may pass. */
export const LAST_CHECKS_MS = 10 * 60_000;

/** The pause is this part of the time waited, so that a result is late by a part of the time that it took. */
const PART_OF_TIME_WAITED = 4;

/**
 * When to check next. All times are milliseconds since 1970.
 *
 * @param deadlines when the time of each unfinished task is up, if that is after the begin of the last check
 */
export function nextCheckAt(state: CheckState, now: number, deadlines: readonly number[]): number {
	const { startedAt, intervalMs, woken, notBefore } = state;
	const growing = Math.min(
		Math.max((now - startedAt) / PART_OF_TIME_WAITED, MIN_CHECK_INTERVAL_MS),
		MAX_CHECK_INTERVAL_MS,
	);
	// After a callback the record soon says that the task is finished. A check that was cut short has not read all tasks.
	// The last checks come each minute.
	const isSoon = woken === true || notBefore !== undefined || 'overdueAt' in state;
	const pause = isSoon ? MIN_CHECK_INTERVAL_MS : intervalMs || growing;
	const regular = Math.max(now + pause, notBefore ?? 0);
	const ahead = deadlines.toSorted((one, other) => one - other);
	const [first = Infinity] = ahead;
	// The tasks of a batch are created one after the other, so one check serves all whose time is up within a minute.
	return Math.min(
		regular,
		ahead.findLast((each) => each <= first + MIN_CHECK_INTERVAL_MS) ?? first,
	);
}

/** After this many answers that say nothing about their task a walk ends: the service is in trouble. */
const MAX_UNANSWERED = 3;

/**
 * Visits the waiting tasks of a check in growing groups. The walk ends if the service asks to wait, or is in trouble.
 *
 * @param visit resolves to the error that the visit met, if any
 * @param end.isLast whether the time of the tasks is up: a service or credential in trouble gets a pause
 * @param end.isEnough whether the other tasks need no visit
 * @returns how long no read may follow, milliseconds; 0 if a read may follow at once
 */
export async function walk<T>(
	tasks: readonly T[],
	visit: (task: T) => Promise<unknown>,
	{ isLast = false, isEnough }: { isLast?: boolean; isEnough?: () => boolean } = {},
): Promise<number> {
	let pauseMs = 0;
	let unanswered = 0;
	let isUnread = false;
	const visitOne = async (task: T) => {
		const error = await visit(task);
		if (!(error instanceof ServiceError)) return void (isUnread ||= error !== undefined);
		const { kind, isOfOneTask, retryAfterMs } = error;
		if (!isOfOneTask) unanswered++;
		const needsPause = kind === 'tooManyRequests' || (isLast && !isOfOneTask);
		pauseMs = Math.max(pauseMs, retryAfterMs || (needsPause ? MIN_CHECK_INTERVAL_MS : 0));
	};
	const isOver = () => pauseMs > 0 || unanswered >= MAX_UNANSWERED || isEnough?.() === true;
	await inGrowingGroups(tasks, visitOne, isOver);
	return pauseMs || (isLast && isUnread ? MIN_CHECK_INTERVAL_MS : 0);
}

/** The state after a check. @param pauseMs the pause that the service asked for, milliseconds from now on; 0 for none */
export const afterPause = <T extends CheckState>(state: T, pauseMs: number): T => ({
	...without(state, 'notBefore'),
	...(pauseMs > 0 && { notBefore: Date.now() + pauseMs }),
});

/** What is said of a task that the service has not finished. */
export const NOT_FINISHED = 'not finished';

/**
 * Notes when a check first found the time of all tasks up: the last checks begin then. n8n may have been down or asleep
 * before, and may begin before its network.
 */
export const noteOverdue = (state: DeliveryCheck, now: number): DeliveryCheck =>
	state.deliveries.every(({ until }) => until <= now)
		? { ...state, overdueAt: Math.min(state.overdueAt ?? now, now) }
		: state;

/**
 * Why tasks have not reached their trigger. While one task is awaited, the others are tried as well.
 *
 * @param now milliseconds since 1970
 * @returns a failure that names all tasks; undefined if one is awaited
 */
export function undelivered(
	{ deliveries, nodeName, overdueAt }: DeliveryCheck,
	now: number,
): StoredFailure | undefined {
	const isLost = ({ until, last }: AwaitedDelivery) =>
		(last === NOT_FINISHED ? until : (overdueAt ?? until) + LAST_CHECKS_MS) <= now;
	if (!deliveries.every(isLost)) return undefined;
	const lists = deliveries.map(({ taskId, last }) => `${taskId}: ${last ?? 'not read'}`);
	return {
		message: `${deliveries.length} of the tasks of '${nodeName}' did not reach their trigger in time`,
		description: `Deliver them with the operation Task → Send Result Again. ${lists.join('; ')}`,
	};
}
