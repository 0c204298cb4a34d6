import { freeAfterFailure, storedError, type TaskEntry } from '../create/taskEntry';
import { heldSeconds } from '../plan/planWait';
import { type CreatePlan, isAwaited, type ReadPlan, type TaskPlan } from '../plan/planTypes';
import { redeliver } from '../callback/redeliver';
import { PassingTrouble } from '../report/download';
import { fileStem } from '../report/fileName';
import { failedInAll, failedTask, NOT_KNOWN, ofTask } from '../report/taskErrors';
import { taskJson } from '../report/taskItems';
import { type FinishedTask, hasEnded, type TaskRecord } from '../service/taskRecord';
import { clock, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { settled } from '../shared/promises';
import { followUntilFree } from './freePlaces';
import { readForAWhile, waitForTask } from './waitForTask';
import { retryOf } from './retryFailed';
import type { RunContext } from './runContext';

/** How long a held run goes on while a file does not arrive; a run that may sleep tries again in its next turn. */
const HELD_DOWNLOAD_MS = 10 * 60_000;
const AWAKE_DOWNLOAD_MS = 60_000;

/** How long a read for fresh links waits for its turn. */
const READ_AGAIN_MS = 30_000;

/**
 * Brings one task as far as this turn goes: created, awaited, created again if it failed, downloaded. Whatever happens
 * is in the journal when this returns.
 *
 * @throws Stopped if the execution was stopped; any other error becomes the end of the entry
 */
export async function bringTask(run: RunContext, plan: TaskPlan): Promise<void> {
	const entry = run.journal.entryOf(plan);
	if (entry.end !== undefined) return;
	const brought = await settled(
		plan.kind === 'read' ? bringRead(run, plan, entry) : bringCreate(run, plan, entry),
	);
	if (run.signal?.aborted) throw new Stopped();
	if (!('error' in brought)) return;
	if (brought.error instanceof Stopped) throw brought.error;
	const error = ItemError.from(brought.error);
	entry.error = storedError(ItemError.from(error, run.ownFields(plan, entry)));
	entry.end = 'error';
	run.stopCreating();
}

async function bringCreate(run: RunContext, plan: CreatePlan, entry: TaskEntry): Promise<void> {
	for (;;) {
		if (entry.taskId === undefined && !(await create(run, plan, entry))) return;
		if (!isAwaited(plan)) return leave(run, plan, entry);
		// A wait that timed out begins anew in another try.
		entry.until ??= Date.now() + plan.timeoutMs;
		const task = await ended(run, plan, entry);
		if (task === undefined) return;
		if (task.state === 'SUCCESS') return await finish(run, plan, entry, task);
		const again = retryOf(plan, entry, task, run.ownFields(plan, entry));
		freeAfterFailure(entry);
		entry.again = again;
		// What is stored names only the entries that this turn may create.
		if (run.turn.isLater) return;
		if (!(await pause(run, run.momentOf(again.at)))) return;
	}
}

/**
 * Creates the entry's task.
 *
 * @returns false if this turn does not create it
 * @throws ItemError, ServiceError if there is no task, or nobody knows whether there is a task
 */
async function create(run: RunContext, plan: CreatePlan, entry: TaskEntry): Promise<boolean> {
	const { turn, calledAt } = run;
	const { again } = entry;
	if (entry.doubtIn !== undefined) throw inDoubt(plan, entry.doubtIn);
	if (run.isStopping && again) throw failureOf(again);
	if (entry.state === 'free') {
		const { quietSince = Infinity } = run.journal;
		if (Date.now() - quietSince > plan.patienceMs) throw notTaken(run, plan);
		if (!run.mayCreate(plan)) {
			if (run.isStopping || turn.maySleep) return false;
			throw notTaken(run, plan);
		}
	}
	const timeIsUpAt = Math.min(
		calledAt + plan.patienceMs,
		run.momentOf(again?.deadline ?? Infinity),
	);
	const tooLateAt = Math.min(
		timeIsUpAt,
		run.momentOf(Math.min(again?.until ?? Infinity, run.plan.endsAt)),
	);
	const task = await turn.creates(async () => {
		if (again && !(await pause(run, run.momentOf(again.at)))) return undefined;
		return await run.creator.create(
			plan,
			Math.min(tooLateAt, turn.endsAt),
			calledAt + plan.patienceMs,
		);
	});
	if (task === undefined) {
		if (run.isStopping || clock.now() < tooLateAt) return false;
		throw again ? failureOf(again) : notTaken(run, plan);
	}
	run.noteOwn(task.taskId);
	const now = clock.now();
	entry.until = Date.now() + Math.min(timeIsUpAt, now + plan.timeoutMs) - now;
	entry.costUsd = plan.estimatedCostUsd;
	return true;
}

/** Waits until a moment of the clock, or until the node will stop. @returns false if the turn is over before */
async function pause(run: RunContext, until: number): Promise<boolean> {
	const { turn, signal } = run;
	return (await turn.reaches(until, signal, () => run.isStopping)) || run.isStopping;
}

const failureOf = ({ failure }: NonNullable<TaskEntry['again']>) =>
	new ItemError(failure.message, failure);

/** The error of an item that a killed turn may have sent. It is never sent again: it may be paid for. */
const inDoubt = ({ itemIndex }: CreatePlan, execution: string) =>
	new ItemError(
		`${NOT_KNOWN}. Its execution was killed or stopped in a turn that may have sent it`,
		{
			description: `Look in n8n's log for a line with 'created task' and '(execution ${execution}, item ${itemIndex + 1})'. If there is such a line, fetch the result with Task → Wait and the id in the line. If there is none, look at the tasks of your account before you run this item again.`,
		},
	);

function notTaken({ queue, connection, turn, plan }: RunContext, { patienceMs }: CreatePlan) {
	if (Date.now() >= plan.endsAt || (turn.isLater && !turn.maySleep)) {
		return new ItemError(
			'This item was not sent: n8n cancels the execution soon, because its time limit is over',
			{ description: 'Raise the time limit of the workflow, and run this item again.' },
		);
	}
	const why = connection.isBroken ? 'The credential cannot be used' : 'The service took no task';
	return new ItemError(queue.refusal?.message ?? why, {
		description: `No task was created within ${patienceMs / 1000} s. Try again later.`,
	});
}

/** @returns the finished task; undefined if it has not finished in this turn */
async function ended(
	run: RunContext,
	plan: CreatePlan,
	entry: TaskEntry,
): Promise<FinishedTask | undefined> {
	if (hasEnded(entry.task)) return entry.task;
	const waited = await settled(waitForTask(run, plan, entry));
	if ('value' in waited && waited.value === undefined) return undefined;
	// A run that stops lets no other item have the place.
	if ('error' in waited) run.stopCreating();
	run.queue.finished();
	if ('error' in waited) throw waited.error;
	return waited.value;
}

/** The item leaves while its task is pending. */
function leave(run: RunContext, plan: CreatePlan, entry: TaskEntry): void {
	const { taskId = '' } = entry;
	void settled(followUntilFree(run, plan, taskId));
	if (plan.webhookUrl !== undefined)
		run.expectedCallbacks.add(taskId, plan.webhookUrl, plan.timeoutMs);
	entry.end = 'result';
}

async function bringRead(run: RunContext, planned: ReadPlan, entry: TaskEntry): Promise<void> {
	entry.state = 'created';
	// The expression may give another id in a later turn.
	const plan = { ...planned, taskId: (entry.taskId ??= planned.taskId) };
	if (!plan.wait) return await bringOnce(run, plan, entry);
	entry.until ??= Date.now() + plan.timeoutMs - Math.max(0, clock.now() - run.calledAt);
	const task = await waitForTask(run, plan, entry);
	if (task === undefined) return;
	if (task.state === 'FAILURE') {
		const why = run.isOwn(plan.taskId) ? failedInAll(1) : undefined;
		throw failedTask(task, run.ownFields(plan, entry), why);
	}
	await finish(run, plan, entry, task);
}

/** *Get* and *Send Result Again*: whatever the task's state is, it is the answer. */
async function bringOnce(run: RunContext, plan: ReadPlan, entry: TaskEntry): Promise<void> {
	const read = await settled(readForAWhile(run, plan));
	if ('error' in read) throw ofTask(read.error, plan.taskId, { taskId: plan.taskId });
	entry.task = read.value;
	if (plan.redeliverTo !== undefined) {
		entry.fields = await redelivered(run, plan.redeliverTo, read.value);
	}
	await finish(run, plan, entry, read.value);
}

/** Sends the callback of a finished task to its trigger once more. @returns the fields `delivered` and `delivery` */
async function redelivered({ context, calledAt }: RunContext, address: string, task: TaskRecord) {
	if (task.state === 'PENDING') return { delivered: false };
	const callerWaitsMs = calledAt + 1000 * heldSeconds(context) - clock.now();
	const sent = await settled(redeliver(context, task, address, callerWaitsMs));
	if ('value' in sent) return { delivered: true, ...(sent.value && { delivery: sent.value }) };
	throw ItemError.from(sent.error, taskJson(task));
}

/** Downloads the results, each once, and notes that the entry has its result. */
async function finish(
	run: RunContext,
	plan: TaskPlan,
	entry: TaskEntry,
	task: TaskRecord,
): Promise<void> {
	entry.task = task;
	if (plan.output.download && task.state === 'SUCCESS' && entry.files === undefined) {
		const { maySleep } = run.turn;
		const now = clock.now();
		const until = entry.until === undefined ? Infinity : run.momentOf(entry.until);
		const giveUpAt = Math.min(until, now + (maySleep ? AWAKE_DOWNLOAD_MS : HELD_DOWNLOAD_MS));
		const { taskId, record } = task;
		const stem = fileStem(taskId, record, run.ownFields(plan, entry), plan.itemIndex);
		const isOfThisTurn = entry.readAt === undefined || entry.readAt >= run.begunAt;
		const isFresh = isOfThisTurn && entry.trouble === undefined;
		const readAgain = async () => {
			const read = await run.read(taskId, clock.now() + READ_AGAIN_MS);
			if (hasEnded(read)) entry.task = read;
			return read;
		};
		const wanted = { stem, giveUpAt, isFresh, readAgain };
		const files = await settled(run.downloader.filesOf(task, wanted));
		if ('error' in files) {
			const { error } = files;
			const mayTryAgain = error instanceof PassingTrouble && maySleep && clock.now() < until;
			if (!mayTryAgain) throw ofResult(error, taskJson(entry.task, run.ownFields(plan, entry)));
			entry.trouble = error.message;
			return;
		}
		entry.files = files.value;
	}
	delete entry.trouble;
	entry.end = 'result';
}

const ofResult = (error: unknown, json: ReturnType<typeof taskJson>) =>
	error instanceof Stopped ? error : ItemError.from(error, json);
