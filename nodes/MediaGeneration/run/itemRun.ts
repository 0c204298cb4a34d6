import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { CreateQueue } from '../create/createQueue';
import type { TaskCreator } from '../create/createTask';
import type { Journal, SentTask } from '../create/journal';
import {
	type CreatePlan,
	isFollowed,
	type ItemPlan,
	type ReadPlan,
	referenceOf,
} from '../plan/itemPlan';
import type { CreatedTaskList } from '../report/createdTaskList';
import { taskJson } from '../report/items';
import { explainRead, failedTask, ofTask, pendingJson } from '../report/outcome';
import type { ServiceError } from '../service/serviceError';
import type { FailedTask, TaskRecord } from '../service/taskRecord';
import { attempt } from '../shared/attempt';
import { type Clock, sleepUntil, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { recordLast } from '../shared/outputJson';
import type { BatchTimes } from './nextTimeHints';
import type { RequestSlots } from '../wait/requestSlots';
import type { ExpectedCallbacks } from '../wait/expectedCallbacks';
import type { SuspendedRun } from '../wait/suspendedRun';
import type { TaskReader } from '../wait/taskReader';
import { redeliverTask } from './redeliverTask';
import { atOnce, type Retry, retryOf } from './retryFailed';

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
	slots: RequestSlots;
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

/** Between two looks whether the node will stop, milliseconds. */
const SECOND = 1000;

/** Milliseconds of the clock. */
interface TaskTimes {
	/** Undefined where an earlier try of n8n has created the task. */
	createdAt?: number;
	firstReadAt: number;
	deadline: number;
}

/** Makes the output items, downloads included: the task itself is finished, and holds no place any more. */
export type Output = () => Promise<INodeExecutionData[]>;

/** The way of one item: its task is created or taken up, waited for, and put out. */
export class ItemRun {
	private readonly calledAt: number;

	constructor(private readonly parts: RunParts) {
		this.calledAt = parts.clock.now();
	}

	/**
	 * @returns what makes the output items; none where the run creates nothing more
	 * @throws ItemError, ServiceError where the item fails
	 * @throws Stopped where the execution was stopped
	 */
	async run(item: ItemPlan): Promise<Output> {
		return await (item.kind === 'create' ? this.create(item) : this.read(item));
	}

	private async create(item: CreatePlan): Promise<Output> {
		const done = await attempt(async () => await this.createUntilDone(item));
		if ('value' in done) return done.value;
		if (done.error instanceof Stopped) throw done.error;
		const error = ItemError.from(done.error);
		throw ItemError.from(error, this.failedBefore(item, error.task.taskId));
	}

	/** Takes up or creates the item's task, and creates it anew where it fails, as often as the item allows. */
	private async createUntilDone(item: CreatePlan): Promise<Output> {
		const { journal, slots, clock, creator } = this.parts;
		let brought = await this.takeUp(item);
		let deadline = item.fromCall ? this.calledAt + item.timeoutMs : Infinity;
		for (;;) {
			if (typeof brought === 'function') return brought;
			if (brought) {
				journal.failed(item);
				await this.pause(brought.at);
			}
			const task = await creator.create(item, Math.min(brought?.until ?? Infinity, deadline));
			if (task === undefined) {
				// Another item has failed, and the node will stop; or it is too late for another task.
				if (brought) throw brought.failure;
				if (clock.now() >= deadline) throw tooLate(item, this.parts.queue.refusal);
				return nothing;
			}
			const createdAt = clock.now();
			deadline = Math.min(deadline, createdAt + item.timeoutMs);
			const firstReadAt = slots.firstReadSlot(createdAt + item.pollIntervalMs);
			brought = await this.follow(item, task, { createdAt, firstReadAt, deadline });
		}
	}

	/** @returns undefined where no earlier try of n8n has created the item's task */
	private async takeUp(item: CreatePlan): Promise<Output | Retry | undefined> {
		const { journal, queue, slots, clock } = this.parts;
		const earlier = journal.find(item);
		if (earlier === undefined || earlier === 'sent') return undefined;
		if (isFollowed(item)) queue.adopt();
		const deadline = clock.now() + item.timeoutMs;
		return await this.follow(item, earlier, { firstReadAt: slots.requestSlot(), deadline });
	}

	/**
	 * Brings a created task to its end at the service, or to where its item leaves the node, and gives back its place.
	 *
	 * @returns what makes the output items; or that it failed, and another is to be created
	 */
	private async follow(
		item: CreatePlan,
		task: SentTask,
		times: TaskTimes,
	): Promise<Output | Retry> {
		const brought = await attempt(async () => await this.bring(item, task, times));
		// First, so that no other item gets the place.
		if ('error' in brought) this.parts.stopCreating();
		if (isFollowed(item)) this.parts.queue.finished(times.createdAt);
		if ('value' in brought) return brought.value;
		const { taskId, sent, record } = task;
		throw ofTask(brought.error, taskId, { ...pendingJson(taskId, sent), record });
	}

	private async bring(
		item: CreatePlan,
		{ taskId, record, sent }: SentTask,
		{ createdAt, firstReadAt, deadline }: TaskTimes,
	): Promise<Output | Retry> {
		const { journal, created, suspended, deliveries, reader, batch, clock } = this.parts;
		created.add(taskId);
		const { estimatedCostUsd } = item;
		const known: IDataObject = {
			...(estimatedCostUsd !== undefined && { estimatedCostUsd }),
			...this.failedBefore(item, taskId),
		};
		if (item.completion === 'suspend') {
			const failed = createdAt === undefined && (await this.failedTask(taskId, firstReadAt));
			if (failed) return atOnce(failed, sent);
			suspended.add({ item, taskId, json: { ...pendingJson(taskId, sent), ...known, record } });
			return nothing;
		}
		if (item.completion !== 'poll') {
			deliveries.add(taskId, item);
			const task: TaskRecord = { taskId, state: 'PENDING', creditsConsumed: null, record };
			const json = recordLast({ ...taskJson(task, sent), ...known });
			return async () => [{ json, pairedItem: { item: item.itemIndex } }];
		}
		const task = await reader.wait(item, taskId, sent, { deadline, firstReadAt });
		if (createdAt !== undefined) batch.finished(createdAt);
		if (task.state === 'FAILURE') {
			if (createdAt === undefined) return atOnce(task, sent);
			const count = journal.failedTaskIds(item).length + 1;
			return retryOf(item, { task, sent, count, createdAt, failedAt: clock.now(), deadline });
		}
		const json = { ...taskJson(task, sent), ...known };
		return async () => await reader.output(item, task, json);
	}

	/** The ids of the item's tasks that failed before its present one. */
	private failedBefore(item: CreatePlan, taskId: unknown): IDataObject {
		const ids = this.parts.journal.failedTaskIds(item).filter((id) => id !== taskId);
		return ids.length > 0 ? { failedTaskIds: ids } : {};
	}

	/** @returns a task that is known to have failed, which cost nothing */
	private async failedTask(taskId: string, readAt: number): Promise<FailedTask | undefined> {
		const answer = await attempt(async () => await this.parts.reader.read(taskId, readAt));
		if ('error' in answer && answer.error instanceof Stopped) throw answer.error;
		return 'value' in answer && answer.value.state === 'FAILURE' ? answer.value : undefined;
	}

	/** Waits until a moment of the clock; a node that stops waits no longer. */
	private async pause(until: number): Promise<void> {
		const { clock, context, isStopping } = this.parts;
		const signal = context.getExecutionCancelSignal();
		while (clock.now() < until && !isStopping()) {
			await sleepUntil(Math.min(until, clock.now() + SECOND), clock, signal);
		}
	}

	private async read(item: ReadPlan): Promise<Output> {
		const { taskId } = item;
		const fields = referenceOf(item);
		const firstReadAt = this.parts.slots.requestSlot();
		if (item.wait) {
			const deadline = firstReadAt + item.timeoutMs;
			// A task that this node did not create costs nothing more if nobody waits for it.
			const isAbandoned = () => this.parts.isStopping();
			const times = { deadline, firstReadAt };
			const waited = await attempt(
				async () => await this.parts.reader.wait(item, taskId, {}, times, isAbandoned),
			);
			// What was not waited for to its end is no reason why the node stops: the other item is.
			if (isAbandoned()) return nothing;
			if ('error' in waited) throw waited.error;
			const task = waited.value;
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

/** Whoever called the node hangs up now, and would not hear of a task. */
const tooLate = ({ timeoutMs }: CreatePlan, refusal: ServiceError | undefined) =>
	new ItemError(refusal?.message ?? 'The service took no task', {
		description: `No task was created within ${timeoutMs / 1000} s. Try again later.`,
	});
