import type { CreateQueue } from '../create/createQueue';
import type { RequestGap } from '../service/requestPace';
import { settled } from '../shared/concurrency';
import type { Clock } from '../shared/clock';
import { Hold } from '../wait/hold';
import { waitForTask } from '../wait/pollTask';
import type { TaskReader } from '../wait/taskReader';

/** Between two reads of different tasks: every second request at most is a read, and not a create. */
const READ_GAP_MS = 8;

/**
 * Reads the tasks whose items left at once, so that the end of a task frees its place at the account for the next
 * create. Nothing is read before the service has refused a create, nor when nothing is left to create.
 */
export class UnfinishedTasks {
	private count = 0;

	private nextFirstRead = -Infinity;

	private readonly over = new AbortController();

	constructor(
		private readonly queue: CreateQueue,
		private readonly reader: TaskReader,
		private readonly gap: RequestGap,
		private readonly clock: Clock,
	) {}

	/**
	 * @param taskId a task that the queue counts as unfinished
	 * @param pollIntervalMs the shortest time between two reads of the task, milliseconds
	 */
	add(taskId: string, pollIntervalMs: number): void {
		void settled(
			async () => await this.follow(taskId, this.clock.now() + pollIntervalMs, pollIntervalMs),
		);
	}

	/** Nothing is left to create. */
	stop(): void {
		this.over.abort();
	}

	private async follow(taskId: string, notBefore: number, pollIntervalMs: number): Promise<void> {
		const { queue, reader, gap, clock } = this;
		await queue.limited;
		this.count++;
		const firstReadAt = Math.max(clock.now(), notBefore, this.nextFirstRead);
		this.nextFirstRead = firstReadAt + READ_GAP_MS;
		await settled(
			async () =>
				await waitForTask({
					taskId,
					read: async (id) => await reader.read(id, gap.take()),
					clock,
					firstReadAt,
					deadline: Infinity,
					pollIntervalMs: Math.max(pollIntervalMs, READ_GAP_MS * this.count),
					signal: this.over.signal,
					isOwn: true,
					hold: new Hold(clock, Infinity, []),
					nextSlot: () => gap.take(),
					isAbandoned: () => !queue.isCreating,
				}),
		);
		this.count--;
		queue.finished();
	}
}
