import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { settled } from '../shared/promises';
import type { TaskPlan } from '../plan/planTypes';
import { ServiceError } from '../service/serviceError';
import { type Unfinished, pendingJson, ofTask, timedOut } from '../report/failedTask';
import { Downloader } from '../report/download';
import type { PaidTaskList } from '../report/paidTaskList';
import { taskJson } from '../report/taskItems';
import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import type { ServiceClient } from '../service/client';
import type { RequestGap } from '../service/requestGap';
import { type Clock, sleepUntil } from '../shared/clock';
import { ExpiringCache } from '../shared/expiringCache';
import type { SuspendAfter } from './suspendAfter';

/** Longest pause between two reads while the service is in trouble. */
const MAX_BACK_OFF_MS = 30_000;

/** Nearer to each other than this no two reads may be (specification, section 8). */
const MIN_INTERVAL_MS = 2_000;

/** So many reads are known at once. */
const MOST_READS = 10_000;

/** One unlucky answer must not end a paid task: only so many in a row do. */
const MAX_UNLUCKY_ANSWERS = 3;

export interface WaitOptions {
	read: () => Promise<TaskRecord>;
	clock: Clock;
	/** When to read first, milliseconds of the clock. */
	firstReadAt: number;
	/** When to give up, milliseconds of the clock. */
	deadline: number;
	pollIntervalMs: number;
	/** Aborted when the execution is stopped. */
	signal: AbortSignal | undefined;
	/** Whether the task is known to exist, because this node has created it. */
	isOwn: boolean;
	/** Asked before each read: whether nobody needs the answer any more. */
	isAbandoned?: () => boolean;
	/** Told after each read that does not find the task finished. */
	onUnfinished?: () => void;
	/** Says when the unfinished task is handed over: after a read as a rule. */
	suspendAfter: Pick<SuspendAfter, 'isOver' | 'sleepUntil'>;
	/** When a read that was not planned may be sent, milliseconds of the clock. */
	nextSlot: () => number;
}

/**
 * Reads a task until it is finished. A read that fails for a passing reason is repeated, ever more slowly, until
 * the deadline; the interval runs from one answer to the next read, so that no task is read sooner than it says.
 *
 * The last read is made at the deadline itself, and so there is one at least: a task that ended shortly before it is
 * not reported as unfinished.
 *
 * @returns the finished task; or what is known of it at the deadline, or where it is handed over
 * @throws ServiceError where reading on is no use: the key was refused, there is no such task
 * @throws Stopped where the execution was stopped
 * @see specification, sections 4.2 and 8
 */
export async function pollTask(options: WaitOptions): Promise<FinishedTask | Unfinished> {
	const { read, clock, deadline, pollIntervalMs, signal, isOwn, suspendAfter } = options;
	let last: TaskRecord | undefined;
	let lastError: ServiceError | undefined;
	let due = options.firstReadAt;
	let notBefore = -Infinity;
	let failures = 0;
	let unlucky = 0;
	const unfinished = (isHandedOver = false) =>
		({ state: 'PENDING', last, lastError, isHandedOver }) as const;
	for (;;) {
		const readAt = due > deadline - MIN_INTERVAL_MS ? deadline : due;
		await suspendAfter.sleepUntil(readAt, signal);
		if (clock.now() < readAt) {
			// What was read a moment ago needs no further read.
			if (notBefore > clock.now()) return unfinished(true);
			await sleepUntil(Math.min(readAt, options.nextSlot()), clock, signal);
		}
		if (readAt < notBefore || options.isAbandoned?.()) return unfinished();
		const answer = await settled(read());
		notBefore = clock.now() + MIN_INTERVAL_MS;
		if ('value' in answer) {
			if (answer.value.state !== 'PENDING') return answer.value;
			last = answer.value;
			lastError = undefined;
			failures = 0;
			unlucky = 0;
			due = clock.now() + pollIntervalMs;
		} else {
			const { error } = answer;
			if (!(error instanceof ServiceError)) throw error;
			if (isUnlucky(error, isOwn) ? ++unlucky >= MAX_UNLUCKY_ANSWERS : !isPassing(error, isOwn)) {
				throw error;
			}
			lastError = error;
			notBefore = Math.max(notBefore, clock.now() + (error.retryAfterMs ?? 0));
			const backOff = Math.min(pollIntervalMs * 2 ** failures++, MAX_BACK_OFF_MS);
			due = Math.max(notBefore, clock.now() + backOff);
		}
		options.onUnfinished?.();
		if (suspendAfter.isOver && clock.now() < deadline) return unfinished(true);
	}
}

/** Whether it may be another answer later on: also a redirect, where the service took the task at the same address. */
const isPassing = ({ isTransient, kind }: ServiceError, isOwn: boolean) =>
	isTransient || (isOwn && kind === 'redirected');

/**
 * Whether an answer that is final as a rule may be a passing one: a record without a state; for a task that exists,
 * that it is not known (by a replica that lags behind) or not for this key (by a gateway).
 */
function isUnlucky({ kind, isForeign }: ServiceError, isOwn: boolean): boolean {
	if (kind === 'unusableRecord') return true;
	return isOwn && !isForeign && (kind === 'notFound' || kind === 'unauthorized');
}

/** The tasks of one run: reads them, waits for them, and turns them into output items. */
export class TaskReader {
	private readonly downloader: Downloader;

	/** Several items may name one task: what one of them has just read is good for all. */
	private readonly reads: ExpiringCache<Promise<TaskRecord>>;

	/**
	 * @param suspendAfter says when unfinished tasks are handed over
	 * @param signal aborted when the execution is stopped
	 */
	constructor(
		context: IExecuteFunctions,
		private readonly client: ServiceClient,
		private readonly paidTasks: PaidTaskList,
		private readonly suspendAfter: SuspendAfter,
		private readonly gap: RequestGap,
		private readonly clock: Clock,
		private readonly signal: AbortSignal | undefined,
	) {
		this.downloader = new Downloader(context, clock);
		this.reads = new ExpiringCache(clock, MIN_INTERVAL_MS, MOST_READS);
	}

	/**
	 * Reads a task once.
	 *
	 * @param at when, milliseconds of the clock
	 * @throws ServiceError where the read brings nothing
	 * @throws Stopped where the execution was stopped
	 */
	async read(taskId: string, at: number): Promise<TaskRecord> {
		await sleepUntil(at, this.clock, this.signal);
		return await this.readTask(taskId);
	}

	private async readTask(taskId: string): Promise<TaskRecord> {
		const known = this.reads.get(taskId);
		if (known) return await known;
		const read = this.client.readTask(taskId);
		this.reads.set(taskId, read);
		return await read;
	}

	/**
	 * Reads a task until it is finished, or is handed over.
	 *
	 * @param sent the model and the input, where this run sent them
	 * @param times.firstReadAt when to read first, milliseconds of the clock
	 * @param times.deadline when to give up, milliseconds of the clock
	 * @throws ItemError where the task is not finished in time, or cannot be read
	 * @throws Stopped where the execution was stopped
	 */
	async wait(
		item: TaskPlan,
		taskId: string,
		sent: IDataObject,
		times: { deadline: number; firstReadAt: number },
		hooks: Pick<WaitOptions, 'isAbandoned' | 'onUnfinished'> = {},
	): Promise<FinishedTask | Unfinished> {
		const { clock, signal, suspendAfter, paidTasks, gap } = this;
		const known = pendingJson(taskId, sent);
		const ended = await settled(
			pollTask({
				...times,
				...hooks,
				...{ clock, signal, suspendAfter },
				read: async () => await this.readTask(taskId),
				pollIntervalMs: item.pollIntervalMs,
				isOwn: paidTasks.has(taskId),
				nextSlot: () => gap.take(),
			}),
		);
		if ('error' in ended) throw ofTask(ended.error, taskId, known);
		const task = ended.value;
		if (!('taskId' in task)) {
			if (task.isHandedOver) return task;
			const trouble = task.lastError?.message;
			throw timedOut(taskId, item.timeoutMs, { last: task.last, trouble }, known);
		}
		paidTasks.note(taskId, task.state, task.creditsConsumed);
		return task;
	}

	/**
	 * @param further fields that the items have beside those of the task
	 * @param deadline from then on no download is tried again, milliseconds of the clock
	 * @throws ItemError where a result cannot be downloaded
	 */
	async output(
		item: TaskPlan,
		task: TaskRecord,
		further: IDataObject,
		deadline?: number,
	): Promise<INodeExecutionData[]> {
		const { output, itemIndex } = item;
		const pairedItem = { item: itemIndex };
		const json = taskJson(task, further);
		return await this.downloader.itemsOf(task, json, output, pairedItem, deadline);
	}
}
