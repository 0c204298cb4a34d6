import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { TaskPlan } from '../plan/taskPlan';
import type { RunPlan } from '../plan/planRun';
import type { ItemResult } from '../report/outcome';
import type { TaskRecord } from '../service/taskRecord';
import type { Clock } from '../shared/clock';
import { suspensionWarnings } from '../suspend/canSuspend';
import { type HandedOver, suspendRun } from '../suspend/suspendRun';
import type { RequestSlots } from '../service/requestPace';

/** Makes the output items, downloads included: the task itself is finished, and holds no place any more. */
export type Output = () => Promise<INodeExecutionData[]>;

/** The output of an item that leaves later, or not at all. */
export const leavesNothing: Output = async () => [];

/** Waits for a task once more, and makes its output. */
type GoOn = () => Promise<Output>;

/** What is known of a task that is handed over. */
interface Known {
	/** The fields of the item that do not come from the task's record, its `taskId` among them. */
	json: IDataObject;
	/** The last record read, if a read brought one. */
	last: TaskRecord | undefined;
	/** When the task's time is up, milliseconds of the clock. */
	deadline: number;
}

/** The tasks that a run holds no longer. */
export class HandedOverTasks {
	private readonly entries: Array<{ item: TaskPlan; task: HandedOver; goOn: GoOn }> = [];

	constructor(
		private readonly context: IExecuteFunctions,
		private readonly slots: RequestSlots,
		private readonly clock: Clock,
	) {}

	/**
	 * @param goOn waits for the task where n8n does not suspend; takes when to read first, milliseconds of the clock
	 * @returns no output for now
	 */
	add(
		item: TaskPlan,
		{ json, last, deadline }: Known,
		goOn: (firstReadAt: number) => Promise<Output>,
	): Output {
		const { itemIndex, timeoutMs } = item;
		const leftMs = Math.max(0, deadline - this.clock.now());
		this.entries.push({
			item,
			task: { itemIndex, json, last, timeoutMs, leftMs },
			goOn: async () => await goOn(this.slots.requestSlot()),
		});
		return leavesNothing;
	}

	get isEmpty(): boolean {
		return this.entries.length === 0;
	}

	/**
	 * Suspends the execution until the tasks are finished.
	 *
	 * @param results what became of each item; takes the items that n8n shows meanwhile
	 * @returns whether n8n suspended it
	 */
	async suspend(
		results: Array<ItemResult | undefined>,
		{ checkIntervalMs, ifSomeFail }: RunPlan,
	): Promise<boolean> {
		const { context, entries } = this;
		const [first] = entries;
		if (first === undefined) return false;
		for (const warning of suspensionWarnings(context)) {
			context.logger.info(`${context.getNode().name}: ${warning}`);
		}
		const tasks = entries.map(({ task }) => task);
		const { output } = first.item;
		return await suspendRun(context, tasks, results, { checkIntervalMs, ifSomeFail, output });
	}

	/** @param work called for each task, with what goes on waiting for it and the index of its result */
	async goOn(work: (item: TaskPlan, goOn: GoOn, index: number) => Promise<void>): Promise<void> {
		await Promise.all(
			this.entries.map(async ({ item, task, goOn }) => await work(item, goOn, task.itemIndex)),
		);
	}
}
