import { deliveryStep } from '../callback/delivery';
import {
	inDoubt,
	isCharged,
	knownJson,
	type OrderAgain,
	ownFields,
	type TaskEntry,
} from '../create/taskEntry';
import { type CreatePlan, isAwaited, isDelivered, type TaskPlan } from '../plan/planTypes';
import { failedInAll, failedTask, lateFile, refusedTask, timedOut } from '../report/taskErrors';
import { MIN_READ_INTERVAL_MS } from '../service/client';
import { ServiceError } from '../service/serviceError';
import { type FailedTask, hasEnded, type TaskRecord } from '../service/taskRecord';
import { MINUTE_MS } from '../shared/clock';
import { errorOf, ItemError, storedError } from '../shared/itemError';

/** The longest pause between two reads of a task while its reads fail. */
const LONGEST_PAUSE_MS = 30_000;

/**
 * The rule of silence of all reads: so long the service must say that there is no such task, or by an error code why its record
 * has no state. The time from one answer to the next counts, and a minute of it at most: a run that sleeps has asked seldom.
 */
const DENIED_MS = 5 * MINUTE_MS;
const LONGEST_GAP_MS = MINUTE_MS;

/** How long a success without a usable link is read again: the links may come a little later. */
const LINKLESS_MS = 20_000;

/** A task that could not be read when its time is up is tried for as long again, and not longer than this. */
const LONGEST_LAST_TRIES_MS = 10 * MINUTE_MS;

/** How long the last reads of the items that leave then may stand in line. */
const LAST_LINE_MS = 2_000;

/** How long *Get* tries to read a task, from the first read of that task. */
export const GET_MS = 30_000;

/** The pause before a failed task is created again, since an overloaded model needs a moment. It doubles each time. */
const FIRST_PAUSE_MS = 5_000;

/** What happens next to a task, and when: milliseconds of the clock. */
export type Step =
	| { kind: 'order' | 'read' | 'download' | 'askLedger' | 'deliver'; at: number }
	| { kind: 'orderAgain'; again: OrderAgain }
	| { kind: 'failed'; error: ItemError }
	| { kind: 'result' }
	/** Nobody needs the task any more. */
	| { kind: 'left' };

/** What of a run concerns its tasks. Times are milliseconds of the clock. */
export interface RunView {
	/** The least time between two reads of a task, milliseconds. */
	readIntervalMs: number;
	/** Whether this run, or the run that started this check, has created the task: it certainly exists, and it is paid for. */
	isOwn: boolean;
	/** Links are those of a read of this turn. */
	turnStartedAt: number;
	/** When the run ends its waits, because n8n cancels it soon. */
	endsAt: number;
	/** Until when the service has asked to read nothing. */
	readsPausedUntil: number;
	/** Whether the caller hangs up when the time is up. */
	hangsUp: boolean;
	/** Whether an item has failed, so that the node will stop. */
	isStopping: boolean;
	/** Until when the service may take an order, and what to say then. */
	orderUntil: number;
	whyNotTaken: string;
}

/**
 * Decides what happens next to a task: a function of what is known of the task, of the run and of the time. It does not
 * decide what happens in which turn: a step whose moment comes after the turn is a step of a later turn.
 *
 * A task is read until its time is up, whatever single answers say; the last read comes at that moment itself. Only if the
 * service says for a while that there is no such task, the wait ends before.
 *
 * @param now milliseconds of the clock
 * @see docs/service.openapi.yaml, sections 3, 4.2, 7 and 8
 */
export function nextStep(entry: TaskEntry, view: RunView, now: number): Step {
	const { plan, task, taskId, trouble } = entry;
	if (plan === undefined) return { kind: 'left' };
	if (plan.kind === 'create' && taskId === undefined) return orderStep(entry, plan, view, now);
	if (plan.kind === 'create' && !isAwaited(plan)) return { kind: 'result' };
	// A task that this node did not create costs nothing more if nobody waits for it.
	if (plan.kind === 'read' && view.isStopping) return { kind: 'left' };
	if (isToAskLedger(entry, view)) return { kind: 'askLedger', at: now };
	if (task === undefined || trouble !== undefined) return readStep(entry, plan, view, now);
	if (isGet(plan)) return afterSuccess(entry, plan, view, now);
	if (!hasEnded(task) && !isLinkless(entry, plan, view, now)) {
		return readStep(entry, plan, view, now);
	}
	if (isDelivered(plan)) return deliveryStep(entry.deliveries, entry.until, now);
	return task.state === 'FAILURE'
		? afterFailure(entry, plan, task, view, now)
		: afterSuccess(entry, plan, view, now);
}

function orderStep(entry: TaskEntry, plan: CreatePlan, view: RunView, now: number): Step {
	const { state, doubtIn, again, refused } = entry;
	if (state === 'sent') return { kind: 'failed', error: inDoubt(plan, doubtIn) };
	// What an earlier order of the item came to is the reason if there is no later order.
	const before = refused?.error ?? again?.failure;
	const until = Math.min(again?.until ?? Infinity, view.endsAt, view.orderUntil);
	if (before && (view.isStopping || now >= until))
		return { kind: 'failed', error: errorOf(before) };
	if (view.isStopping) return { kind: 'left' };
	if (now >= view.endsAt) {
		const error = new ItemError(
			'This item was not sent: n8n cancels the execution soon, because its time limit is over',
			{ description: 'Raise the time limit of the workflow, and run this item again.' },
		);
		return { kind: 'failed', error };
	}
	if (now >= view.orderUntil) {
		const description = `No task was created within ${plan.patienceMs / 1000} s. Try again later.`;
		return { kind: 'failed', error: new ItemError(view.whyNotTaken, { description }) };
	}
	return { kind: 'order', at: again?.at ?? now };
}

/** Whether a success has been without a usable link for so long that no link comes any more. */
function isLinkless(entry: TaskEntry, plan: TaskPlan, view: RunView, now: number): boolean {
	const { task, linklessAt = Infinity } = entry;
	const until = Math.min(linklessAt + LINKLESS_MS, deadlineOf(entry, plan, view));
	return task?.state === 'SUCCESS' && now >= until;
}

/** When the time of a task is up: later if it could not be read. Before its first read the time has not begun. */
export function deadlineOf(entry: TaskEntry, plan: TaskPlan, view: RunView): number {
	const { until = Infinity, trouble, troubleAt = until } = entry;
	const isRead = trouble === undefined && view.readsPausedUntil <= until;
	if (isRead || view.hangsUp || isGet(plan)) return Math.min(until, view.endsAt);
	const triesMs = Math.min(plan.timeoutMs, LONGEST_LAST_TRIES_MS);
	// The run may have slept when the time was up.
	return Math.min(Math.max(until, troubleAt) + triesMs, view.endsAt);
}

/** Whether a single answer is enough, and the time is that of the tries. */
const isGet = (plan: TaskPlan): boolean => plan.kind === 'read' && !plan.wait;

/** How long a task is waited for or tried, milliseconds. */
export const timeOf = (plan: TaskPlan): number => (isGet(plan) ? GET_MS : plan.timeoutMs);

function readStep(entry: TaskEntry, plan: TaskPlan, view: RunView, now: number): Step {
	const givenUp = errorOfAnswers(entry);
	if (givenUp) return { kind: 'failed', error: givenUp };
	const endsAt = deadlineOf(entry, plan, view);
	const nextAt = Math.max(entry.dueAt ?? now, view.readsPausedUntil);
	if (nextAt <= endsAt - MIN_READ_INTERVAL_MS) return { kind: 'read', at: nextAt };
	// A read that leaves no time for another one comes when the time is up, unless the task was read a moment before. Of a
	// task that was read in an earlier turn n8n has not stored the record.
	const { readAt = -Infinity } = entry;
	const wasReadLast = readAt >= view.turnStartedAt && endsAt - readAt < MIN_READ_INTERVAL_MS;
	const isInLine = now < leavesAt(entry, view) + LAST_LINE_MS;
	const mayRead = !wasReadLast && isInLine && view.readsPausedUntil <= endsAt;
	// The task holds its place until its time is up.
	if (mayRead || now < endsAt) return { kind: 'read', at: endsAt };
	return { kind: 'failed', error: lateError(entry, plan, view) };
}

/** The error of a task about which the service has said for long enough that there is no such task, or that it was refused. */
function errorOfAnswers({ denied, ...entry }: TaskEntry): ItemError | undefined {
	const { trouble, taskId = '' } = entry;
	if (trouble === undefined || denied === undefined || denied.ms < DENIED_MS) return undefined;
	return denied.isRefusal
		? refusedTask(trouble, ownFields(entry), taskId)
		: ItemError.from(errorOf(trouble), knownJson(entry));
}

function afterSuccess(entry: TaskEntry, { output }: TaskPlan, view: RunView, now: number): Step {
	const { task, files, readAt = -Infinity, downloadAt = now } = entry;
	if (!output.download || task?.state !== 'SUCCESS' || files) return { kind: 'result' };
	const endsAt = leavesAt(entry, view);
	if (now >= endsAt) return { kind: 'failed', error: lateFile(task, ownFields(entry)) };
	if (readAt < view.turnStartedAt) return { kind: 'read', at: now };
	return { kind: 'download', at: Math.min(downloadAt, endsAt) };
}

/** When an item leaves at the latest: soon n8n's time limit cancels the execution with all its items, or the caller hangs up. */
export const leavesAt = ({ until = Infinity }: TaskEntry, view: RunView): number =>
	Math.min(view.endsAt, view.hangsUp ? until : Infinity);

/** Whether the failed task is created again (option *Retry Failed Tasks*), and between which moments. */
function afterFailure(
	entry: TaskEntry,
	plan: TaskPlan,
	task: FailedTask,
	{ isOwn }: RunView,
	now: number,
): Step {
	const failure = (why?: string) => failedTask(task, ownFields(entry), why);
	const { failed: before = [], createdAt = now, until: deadline = Infinity } = entry;
	const count = before.length + 1;
	// A failed task is free. If the service charged for it, it may charge for the next one, too.
	if (isCharged(task) && (plan.kind === 'create' || isOwn)) {
		return { kind: 'failed', error: failure('So it is not created again.') };
	}
	if (plan.kind === 'read') {
		return { kind: 'failed', error: failure(isOwn ? failedInAll(1) : undefined) };
	}
	if (count > plan.retryFailed) return { kind: 'failed', error: failure(failedInAll(count)) };
	const at = now + FIRST_PAUSE_MS * 2 ** (count - 1);
	// A task that is given up before its end is paid for in vain, so the next task needs as much time as this one took.
	const until = deadline - (now - createdAt);
	if (at >= until) {
		const why = 'It was not created again, because too little time was left.';
		return { kind: 'failed', error: failure(why) };
	}
	const notInTime = storedError(failure('It was not created again in time.'));
	return { kind: 'orderAgain', again: { at, until, deadline, failure: notInTime } };
}

/**
 * Writes down what a read has come to.
 *
 * @param answer the record, or why the read failed
 * @param now milliseconds of the clock
 */
export function noteRead(
	entry: TaskEntry,
	answer: TaskRecord | ServiceError,
	{ readIntervalMs, isOwn }: Pick<RunView, 'readIntervalMs' | 'isOwn'>,
	now: number,
): void {
	if (!(answer instanceof ServiceError)) {
		Object.assign(entry, {
			...{ task: answer, readAt: now, dueAt: now + readIntervalMs },
			linklessAt: answer.state === 'SUCCESS' ? (entry.linklessAt ?? now) : undefined,
			...{ trouble: undefined, troubleAt: undefined, denied: undefined },
		});
		return;
	}
	const { troubleAt = now, task, readAt = now, denied } = entry;
	// The service speaks of the task: such an answer is no trouble of the service, and for an own task means "not yet".
	// Otherwise each pause is about twice as long as the pause before it.
	const pauseMs =
		answer.kind === 'unusableRecord'
			? readIntervalMs
			: Math.min(readIntervalMs + now - troubleAt, LONGEST_PAUSE_MS);
	// A task of another run may be that of another account. A task of this run exists, whatever becomes of the key.
	const isForeign = !isOwn && task === undefined && answer.isOfKey;
	const { isRefusal } = answer;
	const isDenied = isRefusal || answer.isNoSuchTask || isForeign;
	const gapMs = Math.min(now - readAt, LONGEST_GAP_MS);
	const ms = denied?.isRefusal === isRefusal ? denied.ms + gapMs : 0;
	Object.assign(entry, {
		readAt: now,
		dueAt: now + Math.max(pauseMs, answer.retryAfterMs ?? 0, MIN_READ_INTERVAL_MS),
		trouble: storedError(ItemError.from(answer)),
		troubleAt,
		denied: isDenied ? { isRefusal, ms } : undefined,
	});
}

function lateError(entry: TaskEntry, plan: TaskPlan, view: RunView): ItemError {
	const { taskId = '', task: last, trouble } = entry;
	if (isGet(plan)) {
		const description = 'It asks for a pause. Send the id to Wait for Task later.';
		const why = trouble
			? errorOf(trouble)
			: new ItemError('The service lets no read in', { description });
		return ItemError.from(why, { taskId });
	}
	const isAtLimit = deadlineOf(entry, plan, { ...view, endsAt: Infinity }) > view.endsAt;
	const { until = view.endsAt, createdAt = until - plan.timeoutMs } = entry;
	const waitedS = Math.max(0, Math.round((view.endsAt - createdAt) / 1000));
	const waitedMs = isAtLimit ? 1000 * waitedS : plan.timeoutMs;
	const why = { last, trouble: trouble?.message, isAtLimit, isToCaller: view.hangsUp };
	return timedOut(waitedMs, why, knownJson(entry));
}

/** Whether the ledger is asked now, as once in each turn: a callback that came needs no read and no delivery. */
function isToAskLedger(
	{ plan, deliveries: { askedAt = -Infinity } = {} }: TaskEntry,
	{ turnStartedAt }: Pick<RunView, 'turnStartedAt'>,
): boolean {
	const hasLedger = isDelivered(plan) && plan.deliverTo.triggerId !== undefined;
	return hasLedger && askedAt < turnStartedAt;
}
