import type { TaskRecord } from '../service/taskRecord';
import { settled } from '../shared/concurrency';
import type { Clock } from '../shared/clock';

/** The specification's least time between two reads of one task (section 4.2). */
const MIN_READ_INTERVAL_MS = 2_000;

/** Reads at once, where many tasks turn out to be finished whose callbacks were lost or went to another process. */
const MAX_PARALLEL_READS = 25;

/** Ids of tasks of all runs together, and for how long after the last callback: of more, those of the oldest go. */
const MAX_REMEMBERED_TASKS = 20_000;
const MAX_AGE_MS = 3_600_000;

type Read = (taskId: string) => Promise<TaskRecord>;

/**
 * Work that callbacks share. Whoever comes joins a run that has not begun yet, and never one that is under way: it
 * may have missed what the callback tells.
 */
class Shared<T> {
	private last: Promise<T> | undefined;

	private next: Promise<T> | undefined;

	/** @param ready ends when the work may begin */
	async run(ready: () => Promise<void>, work: () => Promise<T>): Promise<T> {
		if (this.next !== undefined) return await this.next;
		const before = this.last;
		this.next = settled(async () => await before).then(async () => {
			await ready();
			this.next = undefined;
			return await work();
		});
		this.last = this.next;
		return await this.next;
	}
}

/**
 * What this process has heard of the tasks of one suspended run. It only spares checks that would find nothing: what this
 * process does not know or has forgotten costs reads.
 */
export class RunProgress {
	private readonly finished = new Set<string>();

	private readonly checks = new Shared<boolean>();

	/** When a task was found pending, on the clock's time. */
	private pendingAt = -Infinity;

	usedAt: number;

	/** @param checkUrl where the sub-execution is told to check; empty where that is not known */
	constructor(
		readonly taskIds: readonly string[],
		readonly checkUrl: string,
		private readonly clock: Clock,
	) {
		this.usedAt = clock.now();
	}

	/**
	 * Whether all tasks of the run are finished, as far as can be told. One that is found pending is proof that they are
	 * not, so a check costs one read as a rule.
	 *
	 * @param told the task whose callback has come
	 * @throws whatever a read throws
	 */
	async isComplete(told: string, read: Read): Promise<boolean> {
		this.usedAt = this.clock.now();
		this.finished.add(told);
		if (this.unfinished().length === 0) return true;
		return await this.checks.run(
			async () => {
				const left = this.pendingAt + MIN_READ_INTERVAL_MS - this.clock.now();
				if (left > 0) await this.clock.sleep(left, undefined);
			},
			async () => await this.check(read),
		);
	}

	private async check(read: Read): Promise<boolean> {
		for (let parallel = 1; ; parallel = Math.min(2 * parallel, MAX_PARALLEL_READS)) {
			const unknown = this.unfinished();
			if (unknown.length === 0) return true;
			const tasks = await Promise.all(unknown.slice(0, parallel).map(read));
			for (const { taskId, state } of tasks) if (state !== 'PENDING') this.finished.add(taskId);
			if (tasks.some(({ state }) => state === 'PENDING')) {
				this.pendingAt = this.clock.now();
				return false;
			}
		}
	}

	private unfinished(): string[] {
		return this.taskIds.filter((taskId) => !this.finished.has(taskId));
	}
}

/** The suspended runs that this process has had callbacks for. */
export class SuspendedRuns {
	/** In the order of their first callbacks. */
	private readonly runs = new Map<string, RunProgress>();

	constructor(private readonly clock: Clock) {}

	/**
	 * @param place names the execution and the node
	 * @returns the run there that waits for a task, if it is known: to ask n8n for what it has stored takes long
	 */
	find(place: string, taskId: string): RunProgress | undefined {
		const run = this.runs.get(place);
		return run?.taskIds.includes(taskId) ? run : undefined;
	}

	/**
	 * Notes a run; in a loop there is one after the other at the same place.
	 *
	 * @param taskIds what it waits for
	 * @param checkUrl where the sub-execution is told to check; empty where that is not known
	 */
	begin(place: string, taskIds: readonly string[], checkUrl: string): RunProgress {
		const run = new RunProgress(taskIds, checkUrl, this.clock);
		this.runs.delete(place);
		this.runs.set(place, run);
		this.forgetOldest();
		return run;
	}

	forget(place: string): void {
		this.runs.delete(place);
	}

	private forgetOldest(): void {
		let tasks = 0;
		for (const { taskIds } of this.runs.values()) tasks += taskIds.length;
		for (const [place, { taskIds, usedAt }] of this.runs) {
			const isOld = this.clock.now() - usedAt > MAX_AGE_MS;
			if (this.runs.size === 1 || (!isOld && tasks <= MAX_REMEMBERED_TASKS)) return;
			this.runs.delete(place);
			tasks -= taskIds.length;
		}
	}
}
