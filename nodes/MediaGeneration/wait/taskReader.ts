import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { Downloader } from '../report/download';
import { taskJson } from '../report/taskItems';
import type { ServiceClient } from '../service/client';
import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import { settled } from '../shared/promises';
import { type Clock, sleepUntil } from '../shared/clock';
import type { PaidTasks } from '../report/paidTasks';
import { ofTask, pendingJson, timedOut, type Unfinished } from '../report/taskErrors';
import type { TaskPlan } from '../plan/planTypes';
import type { SuspendTimer } from './suspendTimer';
import { type WaitOptions, pollTask } from './pollTask';
import type { RequestGap } from '../service/requestGap';

/** The tasks of one run: reads them, waits for them, and turns them into output items. */
export class TaskReader {
	private readonly downloader: Downloader;

	/**
	 * @param suspendTimer says when unfinished tasks are handed over
	 * @param signal aborted when the execution is stopped
	 */
	constructor(
		context: IExecuteFunctions,
		private readonly client: ServiceClient,
		private readonly created: PaidTasks,
		private readonly suspendTimer: SuspendTimer,
		private readonly gap: RequestGap,
		private readonly clock: Clock,
		private readonly signal: AbortSignal | undefined,
	) {
		this.downloader = new Downloader(context, clock);
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
		return await this.client.readTask(taskId);
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
		const { client, clock, signal, suspendTimer, created, gap } = this;
		const known = pendingJson(taskId, sent);
		const ended = await settled(
			pollTask({
				...times,
				...hooks,
				...{ taskId, clock, signal, suspendTimer },
				read: async (id) => await client.readTask(id),
				pollIntervalMs: item.pollIntervalMs,
				isOwn: created.has(taskId),
				nextSlot: () => gap.take(),
			}),
		);
		if ('error' in ended) throw ofTask(ended.error, taskId, known);
		const task = ended.value;
		if (!('taskId' in task)) {
			if (task.isHandedOver) return task;
			throw timedOut(taskId, item.timeoutMs, task, known);
		}
		created.note(taskId, task.state, task.creditsConsumed);
		return task;
	}

	/**
	 * @param json fields that the items have beside those of the task
	 * @param deadline from then on no download is tried again, milliseconds of the clock
	 * @throws ItemError where a result cannot be downloaded
	 */
	async output(
		item: TaskPlan,
		task: TaskRecord,
		json: IDataObject,
		deadline?: number,
	): Promise<INodeExecutionData[]> {
		const fields = { ...taskJson(task), ...json };
		const { output, itemIndex } = item;
		const pairedItem = { item: itemIndex };
		return await this.downloader.itemsOf(task, fields, output, pairedItem, deadline);
	}
}
