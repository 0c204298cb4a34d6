import type { TaskEntry } from '../create/taskEntry';
import type { ReadPlan, TaskPlan } from '../plan/planTypes';
import { ofTask, timedOut } from '../report/taskErrors';
import { pendingJson } from '../report/taskItems';
import { MIN_READ_INTERVAL_MS } from '../service/client';
import { ServiceError } from '../service/serviceError';
import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import { clock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { settled } from '../shared/promises';
import { afterRead, type Known, nextRead, type ReadRule } from '../wait/nextRead';
import type { RunContext } from './runContext';

/** A task that cannot be read when its time is up is tried for this long after that: the trouble may pass. */
const LAST_CHECKS_MS = 10 * 60_000;

/** How long a read may last after the deadline: a caller that hangs up must hear of the task before. */
const LAST_READ_MS = 5_000;

const LIMIT = 'The wait ends now, because n8n cancels the execution soon: its time limit is over.';

/** Tasks whose time is up at the same moment are read one after the other: so long a read may wait for the others. */
const IN_LINE_MS = 1_000;

/** How long *Get* tries to read a task. */
const GET_MS = 30_000;

/**
 * Waits until a task is finished, its time is up, or the turn is over. The journal has the last record.
 *
 * @returns the finished task; undefined if the turn is over, or nobody needs the task any more
 * @throws ItemError if the task is not finished in time, or the service does not know it
 * @throws Stopped if the execution was stopped
 */
export async function waitForTask(
	run: RunContext,
	plan: TaskPlan,
	entry: TaskEntry,
): Promise<FinishedTask | undefined> {
	const { taskId = '' } = entry;
	const deadline = run.momentOf(Math.min(timeIsUpAt(entry), run.plan.endsAt));
	const isOwn = run.isOwn(taskId);
	const isNew = entry.createdAt !== undefined && Date.now() - entry.createdAt < plan.pollIntervalMs;
	const { linklessAt, unknownAt, readAt = -Infinity } = entry;
	// A look has read the task a moment ago.
	const isFresh = Date.now() - readAt < MIN_READ_INTERVAL_MS;
	let known: Known = {
		dueAt: clock.now() + (isNew || isFresh ? plan.pollIntervalMs : 0),
		last: isFresh ? entry.task : undefined,
		failures: 0,
		wasRead: entry.task !== undefined,
		linklessSince: linklessAt === undefined ? undefined : run.momentOf(linklessAt),
		unknownSince: unknownAt === undefined ? undefined : run.momentOf(unknownAt),
	};
	// The last read may come a little earlier. The task holds its place until its time is up.
	const giveUpAtDeadline = async (isUnread: boolean) =>
		(await run.turn.reaches(deadline, run.signal)) ? giveUp(run, plan, entry, isUnread) : undefined;
	for (let reads = 0; ; reads++) {
		const rule: ReadRule = { pollIntervalMs: run.intervalOf(plan), deadline, isOwn };
		const next = nextRead(known, rule, clock.now());
		// A task that this node did not create costs nothing more if nobody waits for it.
		if (plan.kind === 'read' && run.isStopping) return undefined;
		if (next.kind === 'finished') return next.task;
		const json = pendingJson(taskId, { ...run.ownFields(plan, entry), record: entry.record });
		if (next.kind === 'noSuchTask') throw ofTask(next.error, taskId, json);
		if (next.kind === 'timeIsUp') return await giveUpAtDeadline(known.trouble !== undefined);
		// `found` comes only where a single read is enough.
		if (next.kind === 'found') return undefined;
		const isDue = await run.turn.reaches(next.at, run.signal);
		// Each turn reads each task once at least, unless the task is new or was read a moment ago.
		if (!isDue && (reads > 0 || isNew || isFresh || !run.turn.isLater)) return undefined;
		const answer = await readOnce(run, taskId, rule);
		if (answer === undefined) {
			// The service asks to wait for longer than the task's time, or than the turn lasts.
			return await giveUpAtDeadline(true);
		}
		known = afterRead(known, answer, rule, clock.now());
		entry.readAt = Date.now();
		entry.trouble = known.trouble?.message;
		entry.linklessAt = known.linklessSince === undefined ? undefined : (linklessAt ?? Date.now());
		entry.unknownAt = known.unknownSince === undefined ? undefined : (unknownAt ?? Date.now());
		if (known.last) entry.task = known.last;
	}
}

/** When the time of a task is up, milliseconds since 1970: later if it could not be read in the end. */
const timeIsUpAt = ({ until = Infinity, overdueAt }: TaskEntry) =>
	overdueAt === undefined ? until : overdueAt + LAST_CHECKS_MS;

/**
 * Gives a task up whose time is up. A run that may sleep tries a task again for a while if it could not be read.
 *
 * @throws ItemError
 */
function giveUp(run: RunContext, plan: TaskPlan, entry: TaskEntry, isUnread: boolean): undefined {
	const { taskId = '', task: last, trouble } = entry;
	const { endsAt } = run.plan;
	const isAtLimit = timeIsUpAt(entry) > endsAt;
	if (isUnread && run.turn.maySleep && entry.overdueAt === undefined && !isAtLimit) {
		entry.overdueAt = Date.now();
		return undefined;
	}
	const json = pendingJson(taskId, { ...run.ownFields(plan, entry), record: entry.record });
	const error = timedOut(taskId, plan.timeoutMs, { last, trouble }, json);
	if (!isAtLimit) throw error;
	throw ItemError.from(ItemError.because(error, LIMIT), error.task);
}

/**
 * Reads a task once.
 *
 * @returns the record, or why the read failed; undefined if the turn ended before the read could be sent
 * @throws Stopped if the execution was stopped
 */
export async function readOnce(
	run: RunContext,
	taskId: string,
	{ deadline }: Pick<ReadRule, 'deadline'>,
): Promise<TaskRecord | ServiceError | undefined> {
	const lastMs = run.calledAt < Infinity ? LAST_READ_MS : Infinity;
	const limitMs = Math.max(0, deadline - clock.now()) + lastMs;
	run.reading++;
	const lastAt = Math.max(deadline, clock.now() + IN_LINE_MS);
	const giveUpAt = Math.min(run.turn.endsAt, lastAt);
	const read = await settled(run.read(taskId, giveUpAt, limitMs));
	run.reading--;
	if (!('error' in read)) return read.value;
	if (read.error instanceof ServiceError) return read.error;
	throw read.error;
}

/**
 * Reads a task whatever its state is. A read that fails is tried again for a while.
 *
 * @throws ServiceError if no read brought a record
 * @throws Stopped if the execution was stopped
 */
export async function readForAWhile(run: RunContext, plan: ReadPlan): Promise<TaskRecord> {
	const deadline = clock.now() + GET_MS;
	const rule: ReadRule = {
		pollIntervalMs: plan.pollIntervalMs,
		deadline,
		isOwn: false,
		isOnce: true,
	};
	let known: Known = { dueAt: clock.now(), failures: 0 };
	for (;;) {
		const next = nextRead(known, rule, clock.now());
		if (next.kind === 'found') return next.task;
		if (next.kind !== 'read')
			throw known.trouble ?? new ServiceError('noAnswer', 'The task was not read');
		await run.turn.reaches(next.at, run.signal);
		const answer = await readOnce(run, plan.taskId, rule);
		if (answer === undefined)
			throw (
				known.trouble ??
				new ItemError('The service asks to wait for longer than this node tries to read the task')
			);
		known = afterRead(known, answer, rule, clock.now());
	}
}
