import { fail, freeAfterFailure, ownFields, type TaskEntry } from '../create/taskEntry';
import { storeAnswers } from '../n8n/ledgerRow';
import {
	type CreatePlan,
	isAwaited,
	isDelivered,
	type ReadPlan,
	type TaskPlan,
} from '../plan/planTypes';
import { PassingTrouble } from '../report/download';
import { fileStem, taskJson } from '../report/taskItems';
import { MIN_READ_INTERVAL_MS } from '../service/client';
import { ServiceError } from '../service/serviceError';
import { hasEnded, withoutFiles } from '../service/taskRecord';
import { clock, MINUTE_MS, settled, Stopped, withTimeLimit } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { askLedger, deliver, hasTimeToCome, sendAgain } from './deliver';
import { isUnfinished } from './endTurn';
import { deadlineOf, leavesAt, nextStep, noteRead, timeOf } from './nextStep';
import type { RunContext } from './runContext';

/** How long a file is tried at a time: in a run that is held, and in one that may sleep. */
const HELD_DOWNLOAD_MS = 10 * MINUTE_MS;
const AWAKE_DOWNLOAD_MS = MINUTE_MS;

/** How long a read may last after the time is up: a caller that hangs up must hear of the task before. */
const LAST_READ_MS = 5_000;

/** How long a read for fresh links stands in line. */
const READ_AGAIN_MS = 30_000;

/** How long *Get* waits until the service lets a first read in. */
const LONGEST_LINE_MS = 10 * MINUTE_MS;

/** Tasks whose time is up at the same moment are read one after the other: so long a read may wait for the others. */
const IN_LINE_MS = 1_000;

/** How long the end of a turn waits for the files that are on their way, milliseconds. */
const LAST_FILES_MS = 3_000;

/** Between two questions to n8n's store while it does not answer, milliseconds. */
const STORE_PAUSE_MS = 5_000;

/**
 * Brings the tasks as far as this turn goes. The run stays awake, and goes on, while n8n could not store it, and while a
 * file is on its way.
 *
 * @throws Stopped where the execution was stopped
 */
export async function untilTurnEnds(run: RunContext): Promise<void> {
	const { context, turn, loading } = run;
	for (;;) {
		await bringTasks(run);
		if (!isUnfinished(run)) return;
		if (!turn.maySleep) {
			// A retry that is held goes on from a run that was not.
			if (!(await run.widen())) return;
		} else if (!(await storeAnswers(context))) {
			await turn.alarm.wait(clock.now() + STORE_PAUSE_MS).woken;
		} else if (loading.size === 0) return;
		else await settled(run.widen());
		turn.goOn();
	}
}

/** @throws Stopped where the execution was stopped */
async function bringTasks(run: RunContext): Promise<void> {
	const { journal, expectedCallbacks, signal } = run;
	// What was read last is read last.
	const inLine = [...journal.entries].sort((a, b) => (a.readAt ?? 0) - (b.readAt ?? 0));
	const ways = inLine.map(async (entry) => await bringTask(run, entry));
	const broken = (await Promise.allSettled(ways)).find((way) => way.status === 'rejected');
	await expectedCallbacks.leave();
	if (broken) throw broken.reason;
	if (signal?.aborted) throw new Stopped();
}

/**
 * Brings one task as far as this turn goes: ordered, awaited, ordered again if it failed, downloaded. Whatever happens
 * is in its entry when this returns.
 *
 * @throws Stopped if the execution was stopped; any other error becomes the end of the entry
 */
async function bringTask(run: RunContext, entry: TaskEntry): Promise<void> {
	const { plan } = entry;
	if (plan === undefined || entry.end !== undefined) return;
	if (plan.kind === 'read') Object.assign(entry, { state: 'created', taskId: plan.taskId });
	if (isDelivered(plan) && hasTimeToCome(run, plan, entry)) return;
	const brought = await settled(async () => {
		while (await takeStep(run, plan, entry)) if (entry.end !== undefined) return;
	});
	if (run.signal.aborted) throw new Stopped();
	if (!('error' in brought)) return;
	if (brought.error instanceof Stopped) {
		run.stop();
		throw brought.error;
	}
	const { taskId } = entry;
	const known = { ...(taskId !== undefined && { taskId }), ...ownFields(entry) };
	fail(entry, ItemError.from(ItemError.from(brought.error), known));
	run.noteEnd(entry);
	run.stopOrdering();
}

/**
 * Takes the next step of a task when its moment has come.
 *
 * @returns whether the task goes on in this turn
 * @throws ItemError if the task has failed
 */
async function takeStep(run: RunContext, plan: TaskPlan, entry: TaskEntry): Promise<boolean> {
	if (run.loading.has(entry)) return await load(run, entry);
	const step = nextStep(entry, run.viewOf(entry), clock.now());
	// Something else may have happened when the moment has come, so the step is decided anew.
	if ('at' in step && step.at > clock.now()) return await run.turn.reaches(step.at);
	switch (step.kind) {
		case 'order':
			return plan.kind === 'create' && (await order(run, plan, entry));
		case 'read':
			return await read(run, plan, entry);
		case 'download':
			return await load(run, entry);
		case 'askLedger':
			return await askLedger(run, entry);
		case 'deliver':
			return await deliver(run, entry);
		case 'orderAgain':
			run.freePlace(entry);
			freeAfterFailure(entry);
			entry.again = step.again;
			run.turn.noteLeft(entry, true);
			return true;
		case 'failed':
			throw step.error;
		case 'result':
			await finish(run, plan, entry);
			return false;
		case 'left':
			return false;
	}
}

async function order(run: RunContext, plan: CreatePlan, entry: TaskEntry): Promise<boolean> {
	const { again } = entry;
	const patientUntil = run.calledAt + plan.patienceMs;
	const tooLateAt = Math.min(patientUntil, again?.until ?? Infinity, run.settings.endsAt);
	const when = { until: tooLateAt, deadline: patientUntil, isInWindow: run.mayOrder(entry) };
	const isCreated = await run.creator.create(entry, plan, when);
	// What was not ordered in time fails by its next step.
	if (!isCreated) return clock.now() >= tooLateAt;
	run.noteOrdered(entry);
	const now = clock.now();
	entry.dueAt = now + MIN_READ_INTERVAL_MS;
	entry.until = Math.min(again?.deadline ?? patientUntil, now + plan.timeoutMs);
	return true;
}

async function read(run: RunContext, plan: TaskPlan, entry: TaskEntry): Promise<boolean> {
	const { taskId = '', until = Infinity } = entry;
	const now = clock.now();
	// A read that is under way when the time is up ends with it. Before the first read the time has not begun.
	const isBegun = entry.until !== undefined;
	const view = run.viewOf(entry);
	const endsAt = isBegun ? deadlineOf(entry, plan, view) : now + timeOf(plan);
	const limitMs = Math.max(0, endsAt - now) + LAST_READ_MS;
	const lineEndsAt = Math.max(Math.min(until, view.endsAt), now + IN_LINE_MS);
	const giveUpAt = Math.min(run.turn.readsUntil, lineEndsAt);
	const answer = await run.read(taskId, giveUpAt, limitMs);
	if (answer === undefined) {
		// The service lets no read in: the task's time may be up meanwhile.
		return run.turn.isOver ? false : await run.turn.reaches(clock.now() + IN_LINE_MS);
	}
	// The time of a task that exists begins with its own first read, which *Get* may have to wait for.
	const isRefused = answer instanceof ServiceError && answer.asksToSlowDown;
	const waitMs = plan.kind === 'read' && !plan.wait && isRefused ? LONGEST_LINE_MS : 0;
	entry.until ??= Math.min(run.calledAt, clock.now()) + timeOf(plan) + waitMs;
	noteRead(entry, answer, run.viewOf(entry), clock.now());
	if (hasEnded(entry.task) && !entry.trouble) run.freePlace(entry);
	return true;
}

/**
 * Waits for the files of a task. A download goes on when the turn is over, and the next step of the task takes it up.
 *
 * @returns whether the download has ended
 */
async function load(run: RunContext, entry: TaskEntry): Promise<boolean> {
	const { loading, turn } = run;
	const known = loading.get(entry);
	const coming = known ?? settled(download(run, entry)).finally(() => loading.delete(entry));
	loading.set(entry, coming);
	const loaded = await turn.waitsFor(coming, LAST_FILES_MS);
	if (loaded && 'error' in loaded) throw loaded.error;
	return loaded !== undefined;
}

async function download(run: RunContext, entry: TaskEntry): Promise<boolean> {
	const { task, until = Infinity, triedSince } = entry;
	const beganAt = clock.now();
	if (task === undefined) return true;
	const { turn } = run;
	const { maySleep } = turn;
	const tryMs = maySleep ? AWAKE_DOWNLOAD_MS : HELD_DOWNLOAD_MS;
	const giveUpAt = Math.min(until, clock.now() + tryMs);
	const { taskId, record } = task;
	const readAgain = async () => {
		const read = await run.read(taskId, clock.now() + READ_AGAIN_MS);
		if (read === undefined || read instanceof ServiceError) return undefined;
		if (hasEnded(read)) entry.task = read;
		return read;
	};
	const stem = fileStem(taskId, record, ownFields(entry), numberOf(run, entry));
	const wanted = { stem, giveUpAt, triedSince, readAgain };
	const loading = settled(run.downloader.filesOf(task, wanted));
	const endsAt = leavesAt(entry, run.viewOf(entry));
	const files = await withTimeLimit(loading, endsAt - clock.now());
	if (files === undefined) return true;
	if ('value' in files) {
		turn.noteProgress();
		entry.files = files.value;
		// n8n keeps the files now: their data URIs would be stored a second time.
		entry.task = withoutFiles(entry.task ?? task);
		delete entry.noFile;
		delete entry.triedSince;
		return true;
	}
	const { error } = files;
	if (error instanceof Stopped) throw error;
	const left = until - clock.now();
	const mayTryAgain = error instanceof PassingTrouble && maySleep && left > error.retryAfterMs;
	if (!mayTryAgain) throw ItemError.from(error, taskJson(entry.task ?? task, ownFields(entry)));
	entry.noFile = error.message;
	entry.triedSince ??= beganAt;
	entry.downloadAt = clock.now() + Math.max(AWAKE_DOWNLOAD_MS, error.retryAfterMs);
	return true;
}

/** What the names of a task's files begin with: the number of its item, and its own number if the item has several tasks. */
function numberOf({ journal }: RunContext, { itemIndex, taskIndex }: TaskEntry): string {
	const number = itemIndex + 1;
	return journal.entriesOf(itemIndex).length > 1 ? `${number}-${taskIndex + 1}` : `${number}`;
}

async function finish(run: RunContext, plan: TaskPlan, entry: TaskEntry): Promise<void> {
	const { task, taskId = '' } = entry;
	if (plan.kind === 'read' && plan.deliverTo !== undefined && task && !plan.wait) {
		const sent = await settled(sendAgain(run, plan.deliverTo, task));
		if ('error' in sent) throw ItemError.from(sent.error, taskJson(task, ownFields(entry)));
		entry.fields = { ...sent.value };
	}
	entry.end = 'result';
	if (plan.kind === 'create' && !isAwaited(plan)) {
		void settled(followUntilFree(run, plan, entry));
		if (plan.webhookUrl !== undefined) {
			run.expectedCallbacks.add(taskId, plan.webhookUrl, plan.timeoutMs);
		}
	} else run.noteEnd(entry);
}

/**
 * Reads a task whose item has left, so that the end of the task frees its place at the account for the next order.
 * Nothing is read before the service has refused an order, or when nothing is left to order.
 */
async function followUntilFree(
	run: RunContext,
	plan: CreatePlan,
	{ taskId = '', ...created }: TaskEntry,
): Promise<void> {
	const { queue, turn } = run;
	const output = { ...plan.output, download: false };
	const wait = { kind: 'read' as const, wait: true, taskId, timeoutMs: Infinity, output };
	const awaited: ReadPlan = { ...plan, ...wait };
	const entry = { ...created, taskId, plan: awaited, until: undefined, end: undefined };
	await queue.limited;
	await settled(async () => {
		while (queue.isCreating) {
			const step = nextStep(entry, run.viewOf(entry), clock.now());
			if (step.kind !== 'read') return;
			if (step.at > clock.now()) await turn.reaches(step.at);
			else await read(run, awaited, entry);
		}
	});
	queue.finished();
}
