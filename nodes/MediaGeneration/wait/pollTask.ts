import { MAX_UNLUCKY_ANSWERS, MIN_READ_INTERVAL_MS } from '../service/client';
import { ServiceError } from '../service/serviceError';
import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import { clock, sleepUntil } from '../shared/clock';
import { settled } from '../shared/promises';

/** The longest pause between two reads while the service is in trouble. */
const MAX_BACK_OFF_MS = 30_000;

/** What is known of a task whose wait ended before the task did. */
export interface Unfinished {
	/** The last record read, if any read brought one. */
	last: TaskRecord | undefined;
	/** The error message of the last read, if it failed. */
	trouble: string | undefined;
	/** Whether the wait goes on suspended; otherwise its time was up. */
	isHandedOver: boolean;
	/** When the task may be read again, and when its next read was due; milliseconds of the clock. */
	notBefore: number;
	due: number;
}

export interface WaitOptions {
	read: () => Promise<TaskRecord>;
	/** When to read first, milliseconds of the clock. */
	firstReadAt: number;
	/** When to give up, milliseconds of the clock. */
	deadline: number;
	pollIntervalMs: number;
	/** Aborted when the execution is stopped. */
	signal: AbortSignal | undefined;
	/** Whether this node has created the task, so that the task certainly exists. */
	isOwn: boolean;
	/** Whether nobody needs the result any more; called before each read. */
	isAbandoned?: () => boolean;
	/** Called after each read that does not find the task finished. */
	onUnfinished?: () => void;
	/** Says when to hand over the unfinished task, normally after a read. */
	suspendAfter: Pick<SuspendAfter, 'isOver' | 'sleepUntil'>;
	/** When an unplanned read may be sent, milliseconds of the clock. */
	nextSlot: () => number;
}

/**
 * Reads a task until it is finished. A read that fails for a passing reason is repeated until the deadline, after
 * growing pauses. The interval counts from one answer to the next read. The last read comes at the deadline itself, so a
 * task that ended shortly before is not reported as unfinished.
 *
 * @returns the finished task; or what is known of the task at the deadline or at its hand-over
 * @throws ServiceError if there is no use in reading on: the key was refused, there is no such task
 * @throws Stopped if the execution was stopped
 * @see specification, sections 4.2 and 8
 */
export async function pollTask(options: WaitOptions): Promise<FinishedTask | Unfinished> {
	const { read, deadline, pollIntervalMs, signal, isOwn, suspendAfter } = options;
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
			// A task that was read a moment ago needs no further read.
			if (notBefore > clock.now()) return unfinished(true);
			await sleepUntil(Math.min(readAt, options.nextSlot()), signal);
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

/**
 * Whether a later answer may differ. For an own task that includes a redirect: the service took the task at this
 * address.
 */
const isPassing = ({ isTransient, kind }: ServiceError, isOwn: boolean) =>
	isTransient || (isOwn && kind === 'redirected');

/**
 * Whether a normally final answer may be a passing one: a record without a state. For an own task also an answer that
 * there is no such task (from a replica that lags behind), or that the key is wrong (from a gateway).
 */
function isUnlucky({ kind, isForeign, isOfOneTask }: ServiceError, isOwn: boolean): boolean {
	if (!isOwn) return kind === 'unusableRecord';
	return isOfOneTask || (kind === 'unauthorized' && !isForeign);
}

/** How often to check whether the run is still held: the service may ask for a pause of hours before the next read. */
const HOLD_CHECK_MS = 30_000;

/** The same if the run is suspended at once. */
const HOLD_CHECK_SOON_MS = 1_000;

/**
 * Says when to suspend a held run: the time of the option *Suspend After* after its last create, and only when no item
 * can create a task any more. Unfinished tasks are handed over then.
 */
export class SuspendAfter {
	/** The items that may still create a task. */
	private readonly open: Set<object>;

	/** When the last task was created, or the run began; milliseconds of the clock. */
	private lastCreateAt: number;

	/**
	 * @param afterMs milliseconds from the last create to the suspension; Infinity if the run is held to its end
	 * @param creates the items that create a task
	 */
	constructor(
		private afterMs: number,
		creates: Iterable<object>,
	) {
		this.open = new Set(creates);
		this.lastCreateAt = clock.now();
	}

	created(): void {
		this.lastCreateAt = clock.now();
	}

	/** The item creates nothing more. */
	close(item: object): void {
		this.open.delete(item);
	}

	closeAll(): void {
		this.open.clear();
	}

	/** Holds the run to its end, because n8n did not suspend it. */
	switchOff(): void {
		this.afterMs = Infinity;
	}

	/**
	 * Sleeps until a moment of the clock, or until the run is to be suspended. That may be noticed late: by a second if the
	 * run is suspended at once, else by half a minute.
	 *
	 * @throws Stopped if the execution was stopped
	 */
	async sleepUntil(moment: number, signal: AbortSignal | undefined): Promise<void> {
		const checkMs = this.afterMs > 0 ? HOLD_CHECK_MS : HOLD_CHECK_SOON_MS;
		while (!this.isOver && clock.now() < moment) {
			await sleepUntil(Math.min(moment, clock.now() + checkMs), signal);
		}
	}

	/** Whether unfinished tasks are to be handed over. */
	get isOver(): boolean {
		return this.open.size === 0 && clock.now() - this.lastCreateAt >= this.afterMs;
	}
}
