import type { TaskRecord } from '../service/taskRecord';
import { Semaphore } from '../shared/concurrency';
import { type Clock, sleepUntil } from '../shared/clock';

/** The specification's least time between two reads of one task (section 4.2). */
const MIN_READ_INTERVAL_MS = 2_000;

/** Reads at once, where many tasks turn out to be finished whose callbacks were lost or went to another process. */
const MAX_PARALLEL_READS = 25;

type Read = (taskId: string) => Promise<TaskRecord>;

/**
 * What this process has heard of the tasks of one suspended run. It only spares checks that would find nothing: what this
 * process does not know or has forgotten costs reads.
 */
export class RunProgress {
	private readonly finished = new Set<string>();

	private readonly turns = new Semaphore(1);

	/** The look at the tasks that has not begun yet. */
	private next: Promise<boolean> | undefined;

	/** When a task was found pending, on the clock's time. */
	private pendingAt = -Infinity;

	/** @param checkUrl where the sub-execution is told to check; empty where that is not known */
	constructor(
		readonly taskIds: readonly string[],
		readonly checkUrl: string,
		private readonly clock: Clock,
	) {}

	/**
	 * Whether all tasks of the run are finished, as far as can be told. One that is found pending is proof that they are
	 * not, so a look costs one read as a rule.
	 *
	 * @param told the task whose callback has come
	 * @throws whatever a read throws
	 */
	async isComplete(told: string, read: Read): Promise<boolean> {
		this.finished.add(told);
		if (this.unfinished().length === 0) return true;
		// Whoever comes joins no look that is under way: it may have missed what the callback tells.
		this.next ??= this.turns.run(async () => {
			await sleepUntil(this.pendingAt + MIN_READ_INTERVAL_MS, this.clock, undefined);
			this.next = undefined;
			return await this.look(read);
		});
		return await this.next;
	}

	private async look(read: Read): Promise<boolean> {
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
