import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { pendingItem } from '../callback/suspension';
import type { CreatePlan } from '../plan/itemPlan';
import type { CreatedTaskList } from '../report/createdTaskList';
import { taskJson } from '../report/items';
import { failedTask, failureText, isFinished, type ItemResult } from '../report/outcome';
import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import { attempt } from '../shared/attempt';
import { type Clock, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import type { RequestSlots } from './requestSlots';
import type { TaskReader } from './taskReader';
import { WATCH_VERSION, type ResultsWatch, type WatchedItem } from './watchState';

/** Reads at once, before the execution is suspended; they are spread out besides. */
const PARALLEL_READS = 25;

/** A run that cannot be suspended holds on to n8n's process: no longer than polling does by default. */
const LONGEST_WAIT_HERE_MS = 600_000;

interface SuspendedItem {
	item: CreatePlan;
	taskId: string;
	/** The fields of the item, as far as they are known. */
	json: IDataObject;
}

/** The created tasks of a run that is to be suspended until all of them are finished. */
export class SuspendedRun {
	private readonly entries: SuspendedItem[] = [];

	/** What is known of each task, in the order of `entries`. */
	private tasks: Array<TaskRecord | undefined> = [];

	/** @param now the time of day, milliseconds since 1970: what is stored is read by other processes */
	constructor(
		private readonly reader: TaskReader,
		private readonly created: CreatedTaskList,
		private readonly slots: RequestSlots,
		private readonly clock: Clock,
		private readonly now: () => number = Date.now,
	) {}

	add(entry: SuspendedItem): void {
		this.entries.push(entry);
	}

	get isEmpty(): boolean {
		return this.entries.length === 0;
	}

	/**
	 * Reads the tasks once, in case they are finished already.
	 *
	 * @returns whether one is not
	 * @throws Stopped where the execution was stopped
	 */
	async isUnfinished(): Promise<boolean> {
		this.tasks = await mapParallel(this.entries, PARALLEL_READS, async ({ taskId }) => {
			const readAt = this.slots.requestSlot();
			const answer = await attempt(async () => await this.reader.read(taskId, readAt));
			if ('value' in answer) return answer.value;
			if (answer.error instanceof Stopped) throw answer.error;
			// Whatever kept the read from working, there will be other looks.
			return undefined;
		});
		return this.tasks.some((task) => !isFinished(task));
	}

	/** The items that n8n shows and stores while the execution is suspended. */
	pendingResults(results: Array<ItemResult | undefined>): void {
		for (const [index, { item, json }] of this.entries.entries()) {
			const task = this.tasks[index];
			const fields = task === undefined ? json : { ...json, ...taskJson(task) };
			const pairedItem = { item: item.itemIndex };
			const error = task?.state === 'FAILURE' && { error: failureText(task) };
			results[item.itemIndex] = isFinished(task)
				? [{ json: { ...fields, ...error }, pairedItem }]
				: [pendingItem(fields, item.itemIndex)];
		}
	}

	/**
	 * The state with which the sub-execution of this run begins.
	 *
	 * @param results what became of the items that wait for nothing
	 */
	state(
		context: IExecuteFunctions,
		results: ReadonlyArray<ItemResult | undefined>,
		intervalMs: number,
		ifSomeFail = 'keep',
	): ResultsWatch {
		const items = results.flatMap((result, item): WatchedItem[] =>
			result instanceof ItemError ? [{ item, json: result.task, failure: failureOf(result) }] : [],
		);
		for (const [index, { item, taskId, json }] of this.entries.entries()) {
			const task = this.tasks[index];
			const until = this.now() + item.timeoutMs;
			items.push({
				item: item.itemIndex,
				json,
				taskId,
				...(task && { record: task.record }),
				...(!isFinished(task) && { waitsFor: { taskId, until } }),
			});
		}
		const [first] = this.entries;
		return {
			version: WATCH_VERSION,
			purpose: 'results',
			nodeName: context.getNode().name,
			parentExecutionId: context.getExecutionId(),
			startedAt: this.now(),
			intervalMs,
			onError: onErrorOf(context),
			ifSomeFail,
			output: first?.item.output ?? { download: false, split: false, binaryField: 'data' },
			items: items.sort((one, other) => one.item - other.item),
		};
	}

	/**
	 * Waits by polling, where the execution cannot be suspended: the node stops with an error, or n8n refuses.
	 *
	 * @param results takes the result of each item
	 * @throws Stopped where the execution was stopped
	 */
	async waitHere(results: Array<ItemResult | undefined>): Promise<void> {
		const startedAt = this.clock.now();
		const tasks = await mapParallel(this.entries, PARALLEL_READS, async (entry) => {
			return await this.wait(entry, startedAt, this.slots.requestSlot());
		});
		await this.putOut(tasks, results);
	}

	/** Puts out the items of tasks that were all finished at the first look. */
	async finish(results: Array<ItemResult | undefined>): Promise<void> {
		await this.putOut(this.tasks.filter(isFinished), results);
	}

	private async putOut(
		tasks: ReadonlyArray<FinishedTask | ItemError>,
		results: Array<ItemResult | undefined>,
	): Promise<void> {
		for (const [index, { item, taskId, json }] of this.entries.entries()) {
			const task = tasks[index];
			if (task === undefined) continue;
			if (task instanceof ItemError) {
				results[item.itemIndex] = task;
				continue;
			}
			this.created.note(taskId, task.state, task.creditsConsumed);
			const output = await attempt(async () =>
				task.state === 'FAILURE'
					? ItemError.from(failedTask(task), json)
					: await this.reader.output(item, task, { ...json, ...taskJson(task) }),
			);
			results[item.itemIndex] = 'value' in output ? output.value : ItemError.from(output.error);
		}
	}

	private async wait(
		{ item, taskId, json }: SuspendedItem,
		startedAt: number,
		firstReadAt: number,
	): Promise<FinishedTask | ItemError> {
		// However many are waited for: the tasks are under way together, and each is read once at least.
		const timeoutMs = Math.min(item.timeoutMs, LONGEST_WAIT_HERE_MS);
		const deadline = Math.max(startedAt + timeoutMs, firstReadAt);
		const waited = await attempt(
			async () =>
				await this.reader.wait({ ...item, timeoutMs }, taskId, json, { deadline, firstReadAt }),
		);
		if ('value' in waited) return waited.value;
		if (waited.error instanceof Stopped) throw waited.error;
		return ItemError.from(waited.error);
	}
}

function failureOf({ message, description, statusCode }: ItemError) {
	return {
		message,
		...(description !== undefined && { description }),
		...(statusCode !== undefined && { statusCode }),
	};
}

/** What the node does where items fail; before n8n had the setting there was a switch. */
function onErrorOf(context: IExecuteFunctions): string {
	const { onError } = context.getNode();
	return onError ?? (context.continueOnFail() ? 'continueRegularOutput' : 'stopWorkflow');
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
