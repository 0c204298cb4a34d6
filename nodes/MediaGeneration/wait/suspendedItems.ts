import type { IDataObject } from 'n8n-workflow';

import { pendingItem } from '../callback/suspension';
import { taskJson } from '../report/items';
import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import { attempt } from '../shared/attempt';
import { type Clock, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import type { CreatedTaskList } from '../report/createdTaskList';
import { failedTask, failureText, isFinished, type ItemResult } from '../report/outcome';
import type { ReadPace } from './readPace';
import type { CreatePlan } from '../plan/itemPlan';
import type { TaskReader } from './taskReader';

/** Reads at once, before the execution is suspended; they are spread out besides. */
const PARALLEL_READS = 25;

interface SuspendedItem {
	item: CreatePlan;
	taskId: string;
	/** The fields of the item, as far as they are known. */
	json: IDataObject;
}

/** The created tasks whose items leave the node when the execution is resumed. */
export class SuspendedItems {
	private readonly entries: SuspendedItem[] = [];

	constructor(
		private readonly tasks: TaskReader,
		private readonly created: CreatedTaskList,
		private readonly pace: ReadPace,
		private readonly clock: Clock,
	) {}

	add(entry: SuspendedItem): void {
		this.entries.push(entry);
	}

	/**
	 * Reads the tasks once, in case they are finished already, and decides what becomes of the run: it is suspended
	 * where one is not. A node that stops cannot be suspended, so then they are waited for.
	 *
	 * @param isStopping whether the node stops with an error
	 * @param results takes the result of each item
	 * @returns until when to suspend the execution at most; undefined where it is not to be suspended
	 * @throws Stopped where the execution was stopped
	 */
	async settle(
		isStopping: boolean,
		results: Array<ItemResult | undefined>,
	): Promise<Date | undefined> {
		const startedAt = this.clock.now();
		const states = await mapParallel(this.entries, PARALLEL_READS, async (entry) => {
			const firstReadAt = this.pace.requestSlot();
			return isStopping
				? await this.wait(entry, startedAt, firstReadAt)
				: await this.look(entry, firstReadAt);
		});
		const isSuspended = !isStopping && states.some((task) => !isFinished(task));
		for (const [index, entry] of this.entries.entries()) {
			results[entry.item.itemIndex] = await this.result(entry, states[index], isSuspended);
		}
		if (!isSuspended) return undefined;
		const longest = this.entries.reduce((most, { item }) => Math.max(most, item.timeoutMs), 0);
		// n8n goes by the calendar here.
		return new Date(Date.now() + longest);
	}

	/** @returns the task; undefined where it could not be read */
	private async look({ taskId }: SuspendedItem, readAt: number): Promise<TaskRecord | undefined> {
		const answer = await attempt(async () => await this.tasks.read(taskId, readAt));
		if ('value' in answer) return answer.value;
		if (answer.error instanceof Stopped) throw answer.error;
		// Whatever kept the read from working, the callback is still to come.
		return undefined;
	}

	private async wait(
		{ item, taskId, json }: SuspendedItem,
		startedAt: number,
		firstReadAt: number,
	): Promise<FinishedTask | ItemError> {
		// However many are waited for: the tasks are under way together, and each is read once at least.
		const deadline = Math.max(startedAt + item.timeoutMs, firstReadAt);
		const waited = await attempt(
			async () => await this.tasks.wait(item, taskId, json, { deadline, firstReadAt }),
		);
		if ('value' in waited) return waited.value;
		if (waited.error instanceof Stopped) throw waited.error;
		return ItemError.from(waited.error);
	}

	private async result(
		{ item, taskId, json }: SuspendedItem,
		task: TaskRecord | ItemError | undefined,
		isSuspended: boolean,
	): Promise<ItemResult> {
		if (task instanceof ItemError) return task;
		if (!isFinished(task)) {
			return [pendingItem({ ...json, ...(task && { record: task.record }) }, item.itemIndex)];
		}
		this.created.note(taskId, task.state);
		const fields = { ...json, ...taskJson(task) };
		if (task.state === 'SUCCESS') return await this.tasks.output(item, task, fields);
		// An execution that is suspended cannot fail any more for one of its items.
		if (!isSuspended) return ItemError.from(failedTask(task), json);
		return [
			{ json: { ...fields, error: failureText(task) }, pairedItem: { item: item.itemIndex } },
		];
	}
}

/** Does something for each of a list, at most so many at once, and brings the results in order. */
async function mapParallel<T, R>(
	list: readonly T[],
	parallel: number,
	work: (entry: T) => Promise<R>,
): Promise<R[]> {
	const results: R[] = [];
	const queue = list.entries();
	const worker = async () => {
		for (const [index, entry] of queue) results[index] = await work(entry);
	};
	await Promise.all(Array.from({ length: Math.min(parallel, list.length) }, worker));
	return results;
}
