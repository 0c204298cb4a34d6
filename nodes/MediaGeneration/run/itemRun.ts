import type { IDataObject } from 'n8n-workflow';
import type { SentTask } from '../create/journal';
import { type CreatePlan, isAwaited, type TaskPlan } from '../plan/taskPlan';
import { taskJson } from '../report/items';
import { ofTask, pendingJson } from '../report/outcome';
import type { ServiceError } from '../service/serviceError';
import type { TaskRecord } from '../service/taskRecord';
import { settled } from '../shared/concurrency';
import { sleepUntil, Stopped } from '../shared/clock';
import { ItemError, inTableOrder } from '../shared/itemError';
import { atOnce, type Retry, retryOf } from './retries';
import { readItem } from './readItem';
import { leavesNothing, type Output, READ_GAP_MS, type RunParts } from './runParts';

/** Between two looks whether the node will stop, milliseconds. */
const SECOND = 1000;

/** Milliseconds of the clock. */
interface TaskTimes {
	/** Undefined where an earlier try of n8n has created the task. */
	createdAt?: number;
	firstReadAt: number;
	deadline: number;
}

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
	async run(item: TaskPlan): Promise<Output> {
		return await (item.kind === 'create' ? this.create(item) : readItem(this.parts, item));
	}

	private async create(item: CreatePlan): Promise<Output> {
		try {
			return await this.withKnown(item, async () => await this.createUntilDone(item));
		} finally {
			this.parts.hold.close(item);
		}
	}

	/** @throws ItemError that also carries what is known of the item beside its task */
	private async withKnown(item: CreatePlan, work: () => Promise<Output>): Promise<Output> {
		const done = await settled(work);
		if ('value' in done) return done.value;
		if (done.error instanceof Stopped) throw done.error;
		const error = ItemError.from(done.error);
		throw ItemError.from(error, this.known(item, error.task.taskId));
	}

	/** Takes up or creates the item's task, and creates it anew where it fails, as often as the item allows. */
	private async createUntilDone(item: CreatePlan): Promise<Output> {
		const { journal, slots, clock, creator } = this.parts;
		let brought = await this.takeUp(item);
		let deadline = item.fromCall ? this.calledAt + item.timeoutMs : Infinity;
		for (;;) {
			if (brought && isOutput(brought)) return brought;
			if (brought) {
				journal.failed(item);
				this.parts.hold.reopen(item);
				await this.pause(brought.at);
			}
			const task = await creator.create(item, Math.min(brought?.until ?? Infinity, deadline));
			if (task === undefined) {
				// Another item has failed, and the node will stop; or it is too late for another task.
				if (brought) throw brought.failure;
				if (clock.now() >= deadline) throw tooLate(item, this.parts.queue.refusal);
				return leavesNothing;
			}
			const createdAt = clock.now();
			this.noteCreated(item);
			deadline = Math.min(deadline, createdAt + item.timeoutMs);
			const firstReadAt = slots.firstReadSlot(createdAt + item.pollIntervalMs);
			brought = await this.follow(item, task, { createdAt, firstReadAt, deadline });
		}
	}

	/** @returns undefined where no earlier try of n8n has created the item's task */
	private async takeUp(item: CreatePlan): Promise<Output | Retry | undefined> {
		const { journal, slots, clock } = this.parts;
		const earlier = journal.find(item);
		if (earlier === undefined || earlier === 'sent') return undefined;
		this.noteCreated(item);
		const deadline = clock.now() + item.timeoutMs;
		return await this.follow(item, earlier, { firstReadAt: slots.requestSlot(), deadline });
	}

	/** Tells the hold whether the item may still create another task. */
	private noteCreated(item: CreatePlan): void {
		const { hold, journal } = this.parts;
		hold.created(item, journal.failedTaskIds(item).length >= (item.retryFailed ?? 0));
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
		const brought = await settled(async () => await this.bring(item, task, times));
		// First, so that no other item gets the place.
		if ('error' in brought) this.parts.stopCreating();
		const isLeaving = !isAwaited(item) && 'value' in brought && isOutput(brought.value);
		if (isLeaving) void settled(async () => await this.freePlace(item, task.taskId));
		else this.parts.queue.finished();
		if ('value' in brought) return brought.value;
		const { taskId, sent, record } = task;
		throw ofTask(brought.error, taskId, { ...pendingJson(taskId, sent), record });
	}

	private async bring(
		item: CreatePlan,
		{ taskId, record, sent }: SentTask,
		{ createdAt, firstReadAt, deadline }: TaskTimes,
	): Promise<Output | Retry> {
		const { journal, created, deliveries, reader, clock, slots } = this.parts;
		created.add(taskId);
		const known = this.known(item, taskId);
		if (item.completion !== 'wait') {
			const { webhookUrl, timeoutMs } = item;
			if (webhookUrl !== undefined) deliveries.add(taskId, webhookUrl, timeoutMs);
			const task: TaskRecord = { taskId, state: 'PENDING', creditsConsumed: null, record };
			const json = inTableOrder({ ...taskJson(task, sent), ...known });
			return async () => [{ json, pairedItem: { item: item.itemIndex } }];
		}
		const task = await reader.wait(item, taskId, sent, { deadline, firstReadAt });
		if (!('taskId' in task)) {
			const json = { ...pendingJson(taskId, sent), ...known, record };
			const goOn = async () => {
				const times = { firstReadAt: slots.requestSlot(), deadline };
				return await this.withKnown(item, async () =>
					asOutput(await this.bring(item, { taskId, record, sent }, times)),
				);
			};
			return this.parts.handOver({ item, json, last: task.last, deadline, goOn });
		}
		if (task.state === 'FAILURE') {
			if (createdAt === undefined) return atOnce(task, sent);
			const count = journal.failedTaskIds(item).length + 1;
			return retryOf(item, { task, sent, count, createdAt, failedAt: clock.now(), deadline });
		}
		const json = { ...taskJson(task, sent), ...known };
		return async () => await reader.output(item, task, json, deadline);
	}

	/**
	 * Reads a task whose item has left, so that the end of the task frees its place at the account for the next create.
	 * Nothing is read before the service has refused a create, nor when nothing is left to create.
	 */
	private async freePlace(item: CreatePlan, taskId: string): Promise<void> {
		const { queue, reader, slots, clock } = this.parts;
		const readableAt = clock.now() + item.pollIntervalMs;
		await queue.limited;
		const pollIntervalMs = Math.max(item.pollIntervalMs, READ_GAP_MS * queue.limits.unfinished);
		const firstReadAt = slots.firstReadSlot(Math.max(clock.now(), readableAt));
		const times = { firstReadAt, deadline: Infinity };
		const isAbandoned = () => !queue.isCreating;
		await settled(
			async () => await reader.wait({ ...item, pollIntervalMs }, taskId, {}, times, isAbandoned),
		);
		queue.finished();
	}

	/** The fields of the item that neither the request nor the record of its task has. */
	private known(item: CreatePlan, taskId: unknown): IDataObject {
		const { estimatedCostUsd } = item;
		const failedTaskIds = this.parts.journal.failedTaskIds(item).filter((id) => id !== taskId);
		return {
			...(taskId !== undefined && estimatedCostUsd !== undefined && { estimatedCostUsd }),
			...(failedTaskIds.length > 0 && { failedTaskIds }),
		};
	}

	/** Waits until a moment of the clock; a node that stops waits no longer. */
	private async pause(until: number): Promise<void> {
		const { clock, context, isStopping } = this.parts;
		const signal = context.getExecutionCancelSignal();
		while (clock.now() < until && !isStopping()) {
			await sleepUntil(Math.min(until, clock.now() + SECOND), clock, signal);
		}
	}
}

const isOutput = (brought: Output | Retry): brought is Output => typeof brought === 'function';

/** A task that was handed over has no retry left. */
function asOutput(brought: Output | Retry): Output {
	if (isOutput(brought)) return brought;
	throw brought.failure;
}

/** Whoever called the node hangs up now, and would not hear of a task. */
const tooLate = ({ timeoutMs }: CreatePlan, refusal: ServiceError | undefined) =>
	new ItemError(refusal?.message ?? 'The service took no task', {
		description: `No task was created within ${timeoutMs / 1000} s. Try again later.`,
	});
