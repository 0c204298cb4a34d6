import { attempt } from '../shared/attempt';
import { ServiceError } from '../service/serviceError';
import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import type { Clock } from '../shared/clock';

/** The specification's bounds for the time between two reads of one task (section 4.2). */
export const MIN_POLL_INTERVAL_SECONDS = 2;
export const MAX_POLL_INTERVAL_SECONDS = 5;

/** Longest pause between two reads while the service is in trouble. */
const MAX_BACK_OFF_MS = 30_000;

/** A record without a state is no passing trouble, but one unlucky answer must not end a paid task. */
const MAX_UNUSABLE_RECORDS = 3;

export interface WaitOptions {
	taskId: string;
	read: (taskId: string) => Promise<TaskRecord>;
	clock: Clock;
	/** When to read first, milliseconds since 1970. */
	firstReadAt: number;
	/** When to give up, milliseconds since 1970. */
	deadline: number;
	pollIntervalMs: number;
	/** Aborted when the execution is stopped. */
	signal: AbortSignal | undefined;
	/** Asked before each read: whether nobody needs the answer any more. */
	isAbandoned?: () => boolean;
}

/** What is known of a task whose wait ended before the task did. */
export interface Unfinished {
	state: 'PENDING';
	/** The last record read, if any read brought one. */
	last: TaskRecord | undefined;
	/** What the last read failed with, if it did. */
	lastError: ServiceError | undefined;
}

/**
 * Reads a task until it is finished. A read that fails for a passing reason is repeated, ever more slowly, until
 * the deadline; the interval runs from one answer to the next read, so that no task is read sooner than it says.
 *
 * @returns the finished task, or what is known of it at the deadline
 * @throws ServiceError where reading on is no use: the key was refused, there is no such task
 * @throws Stopped where the execution was stopped
 * @see specification, sections 4.2 and 8
 */
export async function waitForTask(options: WaitOptions): Promise<FinishedTask | Unfinished> {
	const { taskId, read, clock, deadline, pollIntervalMs, signal } = options;
	let last: TaskRecord | undefined;
	let lastError: ServiceError | undefined;
	let due = options.firstReadAt;
	let failures = 0;
	let unusable = 0;
	for (;;) {
		await sleepUntil(Math.min(due, deadline), clock, signal);
		if (due > deadline || options.isAbandoned?.()) return { state: 'PENDING', last, lastError };
		const answer = await attempt(async () => await read(taskId));
		if ('value' in answer) {
			if (answer.value.state !== 'PENDING') return answer.value;
			last = answer.value;
			lastError = undefined;
			failures = 0;
			unusable = 0;
			due = clock.now() + pollIntervalMs;
			continue;
		}
		const { error } = answer;
		if (!(error instanceof ServiceError) || !error.isTransient) throw error;
		if (error.kind === 'unusableRecord' && ++unusable >= MAX_UNUSABLE_RECORDS) throw error;
		lastError = error;
		const backOff = Math.min(pollIntervalMs * 2 ** failures++, MAX_BACK_OFF_MS);
		due = clock.now() + Math.max(backOff, error.retryAfterMs ?? 0);
	}
}

/** A timer that is set to more goes off at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Sleeps until the clock has really reached a moment: a timer may go off a little early. */
export async function sleepUntil(
	moment: number,
	clock: Clock,
	signal: AbortSignal | undefined,
): Promise<void> {
	for (let left = moment - clock.now(); left > 0; left = moment - clock.now()) {
		await clock.sleep(Math.min(left, MAX_TIMER_MS), signal);
	}
}
