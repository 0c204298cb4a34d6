import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { CreateQueue } from '../create/createQueue';
import type { TaskCreator } from '../create/createTask';
import type { Journal, SentTask } from '../create/journal';
import { type CreatePlan, type ItemPlan, type ReadPlan, referenceOf } from '../plan/itemPlan';
import type { CreatedTaskList } from '../report/createdTaskList';
import { taskJson } from '../report/items';
import { explainRead, failedTask, ofTask, pendingJson } from '../report/outcome';
import type { TaskRecord } from '../service/taskRecord';
import { attempt } from '../shared/attempt';
import { type Clock, Stopped } from '../shared/clock';
import { recordLast } from '../shared/outputJson';
import type { BatchTimes } from './nextTimeHints';
import type { ReadPace } from '../wait/readPace';
import type { ExpectedCallbacks } from '../wait/expectedCallbacks';
import type { SuspendedRun } from '../wait/suspendedRun';
import type { TaskReader } from '../wait/taskReader';
import { redeliverTask } from './redeliverTask';

/** What the items of one run share. */
export interface RunParts {
	context: IExecuteFunctions;
	/** Signs requests to a trigger. */
	apiKey: string;
	clock: Clock;
	queue: CreateQueue;
	creator: TaskCreator;
	journal: Journal;
	created: CreatedTaskList;
	pace: ReadPace;
	reader: TaskReader;
	suspended: SuspendedRun;
	deliveries: ExpectedCallbacks;
	/** How long the tasks take that are waited for. */
	batch: BatchTimes;
	/** Whether an item has failed, and the node will stop. */
	isStopping: () => boolean;
	/** Called where an item fails: a node that stops creates nothing more. */
	stopCreating: () => void;
}

/** Makes the output items, downloads included: the task itself is finished, and holds no place any more. */
export type Output = () => Promise<INodeExecutionData[]>;

/** The way of one item: its task is created or taken up, waited for, and put out. */
export class ItemRun {
	constructor(private readonly parts: RunParts) {}

	/**
	 * @returns what makes the output items; none where the run creates nothing more
	 * @throws ItemError, ServiceError where the item fails
	 * @throws Stopped where the execution was stopped
	 */
	async run(item: ItemPlan): Promise<Output> {
		return await (item.kind === 'create' ? this.create(item) : this.read(item));
	}

	private async create(item: CreatePlan): Promise<Output> {
		const earlier = this.parts.journal.find(item);
		if (earlier !== undefined && earlier !== 'sent') {
			this.parts.queue.adopt();
			const output = await this.follow(item, earlier, this.parts.pace.requestSlot(), true);
			if (output !== undefined) return output;
			// It failed in an earlier try, and cost nothing.
			this.parts.journal.failed(item);
		}
		const created = await this.parts.creator.create(item);
		// Another item failed in the meantime, and the node will stop.
		if (created === undefined) return nothing;
		const firstReadAt = this.parts.pace.firstReadSlot(this.parts.clock.now() + item.pollIntervalMs);
		return (await this.follow(item, created, firstReadAt, false)) ?? nothing;
	}

	/**
	 * Brings a created task to its end at the service, or to where its item leaves the node, and gives back its place.
	 *
	 * @returns what makes the output items; undefined for an earlier try's task that failed at the service
	 */
	private async follow(
		item: CreatePlan,
		task: SentTask,
		...when: [firstReadAt: number, isEarlier: boolean]
	): Promise<Output | undefined> {
		const brought = await attempt(async () => await this.bring(item, task, ...when));
		// First, so that no other item gets the place.
		if ('error' in brought) this.parts.stopCreating();
		this.parts.queue.finished();
		if ('value' in brought) return brought.value;
		const { taskId, sent, record } = task;
		throw ofTask(brought.error, taskId, { ...pendingJson(taskId, sent), record });
	}

	/** @param isEarlier whether an earlier try created the task */
	private async bring(
		item: CreatePlan,
		{ taskId, record, sent }: SentTask,
		firstReadAt: number,
		isEarlier: boolean,
	): Promise<Output | undefined> {
		this.parts.created.add(taskId);
		const { estimatedCostUsd } = item;
		const estimate: IDataObject = estimatedCostUsd === undefined ? {} : { estimatedCostUsd };
		if (item.completion === 'suspend') {
			if (isEarlier && (await this.hasFailed(taskId, firstReadAt))) return undefined;
			this.parts.suspended.add({
				item,
				taskId,
				json: { ...pendingJson(taskId, sent), ...estimate, record },
			});
			return nothing;
		}
		if (item.completion !== 'poll') {
			this.parts.deliveries.add(taskId, item);
			const task: TaskRecord = { taskId, state: 'PENDING', creditsConsumed: null, record };
			const json = recordLast({ ...taskJson(task, sent), ...estimate });
			return async () => [{ json, pairedItem: { item: item.itemIndex } }];
		}
		const deadline = this.parts.clock.now() + item.timeoutMs;
		const createdAt = this.parts.clock.now();
		const task = await this.parts.reader.wait(item, taskId, sent, { deadline, firstReadAt });
		if (!isEarlier) this.parts.batch.finished(createdAt);
		if (task.state === 'FAILURE') {
			if (isEarlier) return undefined;
			throw failedTask(task, sent);
		}
		const json = { ...taskJson(task, sent), ...estimate };
		return async () => await this.parts.reader.output(item, task, json);
	}

	/** Whether a task is known to have failed, which cost nothing. */
	private async hasFailed(taskId: string, readAt: number): Promise<boolean> {
		const answer = await attempt(async () => await this.parts.reader.read(taskId, readAt));
		if ('error' in answer && answer.error instanceof Stopped) throw answer.error;
		return 'value' in answer && answer.value.state === 'FAILURE';
	}

	private async read(item: ReadPlan): Promise<Output> {
		const { taskId } = item;
		const fields = referenceOf(item);
		const firstReadAt = this.parts.pace.requestSlot();
		if (item.wait) {
			const deadline = firstReadAt + item.timeoutMs;
			// A task that this node did not create costs nothing more if nobody waits for it.
			const isAbandoned = () => this.parts.isStopping();
			const times = { deadline, firstReadAt };
			const task = await this.parts.reader.wait(item, taskId, {}, times, isAbandoned);
			if (task.state === 'FAILURE') throw failedTask(task);
			return async () => await this.parts.reader.output(item, task, fields);
		}
		const read = await attempt(async () => await this.parts.reader.read(taskId, firstReadAt));
		if ('error' in read) throw explainRead(read.error, taskId, { taskId });
		const task = read.value;
		const { redeliverTo } = item;
		if (redeliverTo !== undefined) {
			const { context, apiKey } = this.parts;
			Object.assign(fields, await redeliverTask(context, item, task, redeliverTo, apiKey));
		}
		return async () => await this.parts.reader.output(item, task, fields);
	}
}

const nothing: Output = async () => [];
