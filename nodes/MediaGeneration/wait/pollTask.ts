import { MAX_UNLUCKY_ANSWERS, MIN_READ_INTERVAL_MS } from '../service/client';
import { ServiceError } from '../service/serviceError';
import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import { type Clock, sleepUntil } from '../shared/clock';
import { settled } from '../shared/promises';

/** Longest pause between two reads while the service is in trouble. */
const MAX_BACK_OFF_MS = 30_000;

/** What is known of a task whose wait ended before the task did. */
export interface Unfinished {
	/** The last record read, if any read brought one. */
	last: TaskRecord | undefined;
	/** What the last read failed with, if it did. */
	trouble: string | undefined;
	/** Whether the wait goes on suspended; otherwise its time was up. */
	isHandedOver: boolean;
	/** When it may be read again, and when it was to be read again; milliseconds of the clock. */
	notBefore: number;
	due: number;
}

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
	let trouble: string | undefined;
	let due = options.firstReadAt;
	let notBefore = -Infinity;
	let failures = 0;
	let unlucky = 0;
	const unfinished = (isHandedOver: boolean) => ({ last, trouble, isHandedOver, notBefore, due });
	for (;;) {
		const readAt = due > deadline - MIN_READ_INTERVAL_MS ? deadline : due;
		await suspendAfter.sleepUntil(readAt, signal);
		if (clock.now() < readAt) {
			// What was read a moment ago needs no further read.
			if (notBefore > clock.now()) return unfinished(true);
			await sleepUntil(Math.min(readAt, options.nextSlot()), clock, signal);
		}
		if (readAt < notBefore || options.isAbandoned?.()) return unfinished(false);
		const answer = await settled(read());
		notBefore = clock.now() + MIN_READ_INTERVAL_MS;
		if ('value' in answer) {
			if (answer.value.state !== 'PENDING') return answer.value;
			last = answer.value;
			trouble = undefined;
			failures = 0;
			unlucky = 0;
			due = clock.now() + pollIntervalMs;
		} else {
			const { error } = answer;
			if (!(error instanceof ServiceError)) throw error;
			unlucky = isUnlucky(error, isOwn) ? unlucky + 1 : 0;
			if (unlucky > 0 ? unlucky >= MAX_UNLUCKY_ANSWERS : !isPassing(error, isOwn)) throw error;
			trouble = error.message;
			notBefore = Math.max(notBefore, clock.now() + (error.retryAfterMs ?? 0));
			const backOff = Math.min(pollIntervalMs * 2 ** failures++, MAX_BACK_OFF_MS);
			due = Math.max(notBefore, clock.now() + backOff);
		}
		options.onUnfinished?.();
	}
}

/** Whether it may be another answer later on: also a redirect, where the service took the task at the same address. */
const isPassing = ({ isTransient, kind }: ServiceError, isOwn: boolean) =>
	isTransient || (isOwn && kind === 'redirected');

/**
 * Whether an answer that is final as a rule may be a passing one: a record without a state; for a task that exists,
 * that it is not known (by a replica that lags behind) or not for this key (by a gateway).
 */
function isUnlucky({ kind, isForeign, isOfOneTask }: ServiceError, isOwn: boolean): boolean {
	if (!isOwn) return kind === 'unusableRecord';
	return isOfOneTask || (kind === 'unauthorized' && !isForeign);
}

/** So often it is asked whether the run is held still: the service may ask for a pause of hours before the next read. */
const LOOK_MS = 30_000;

/** The same where the run is suspended at once. */
const LOOK_SOON_MS = 1_000;

/**
 * Says when a held run is to be suspended (option *Suspend After*): so long after its last create, and not while it may
 * still create a task. What is unfinished then is handed over.
 */
export class SuspendAfter {
	/** The items that may still create a task. */
	private readonly open: Set<object>;

	/** When the last task was created, or the run began; milliseconds of the clock. */
	private lastCreateAt: number;

	/**
	 * @param afterMs milliseconds from the last create to the suspension; Infinity where the run is held to its end
	 * @param creates the items that create a task
	 */
	constructor(
		private readonly clock: Clock,
		private afterMs: number,
		creates: Iterable<object>,
	) {
		this.open = new Set(creates);
		this.lastCreateAt = clock.now();
	}

	created(): void {
		this.lastCreateAt = this.clock.now();
	}

	/** The item creates nothing more. */
	close(item: object): void {
		this.open.delete(item);
	}

	closeAll(): void {
		this.open.clear();
	}

	/** Holds the run to its end: n8n did not suspend it. */
	switchOff(): void {
		this.afterMs = Infinity;
	}

	/**
	 * Sleeps until a moment of the clock, and no longer than the run is held: it ends within a second where the run is
	 * suspended at once, else within half a minute.
	 *
	 * @param signal aborted when the execution is stopped
	 * @throws Stopped where the execution was stopped
	 */
	async sleepUntil(moment: number, signal: AbortSignal | undefined): Promise<void> {
		const lookMs = this.afterMs > 0 ? LOOK_MS : LOOK_SOON_MS;
		while (!this.isOver && this.clock.now() < moment) {
			await sleepUntil(Math.min(moment, this.clock.now() + lookMs), this.clock, signal);
		}
	}

	/** Whether unfinished tasks are to be handed over. */
	get isOver(): boolean {
		return this.open.size === 0 && this.clock.now() - this.lastCreateAt >= this.afterMs;
	}
}
