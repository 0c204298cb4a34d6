import { sleepUntil } from '../shared/clock';
import type { SentTask } from '../create/createJournal';
import { type CreatePlan, isAwaited } from '../plan/planTypes';
import { taskJson } from '../report/taskItems';
import { pendingJson } from '../report/failedTask';
import type { ServiceError } from '../service/serviceError';
import type { TaskRecord } from '../service/taskRecord';
import { settled } from '../shared/promises';
import { ItemError, inTableOrder } from '../shared/itemError';
import { FIRST_CREATE, type NextCreate, retryOf } from './retryFailed';
import { type Output, READ_GAP_MS, type RunContext } from './runContext';

/** Between two looks whether the node will stop, milliseconds. */
const SECOND = 1000;

/** Milliseconds of the clock. */
interface TaskTimes {
	/** Undefined where an earlier try of n8n has created the task. */
	createdAt?: number;
	firstReadAt: number;
	deadline: number;
}

/** The way of one item that creates: its task is created or taken up, waited for, and put out. */
export class CreateItem {
	/** When it is too late for a task, milliseconds of the clock. */
	private deadline: number;

	constructor(
		private readonly run: RunContext,
		private readonly item: CreatePlan,
	) {
		this.deadline = item.fromCall ? run.calledAt + item.timeoutMs : Infinity;
	}

	/**
	 * Takes up or creates the item's task, and creates it anew where it fails, as often as the item allows.
	 *
	 * @returns what makes the output items; undefined where none leaves
	 * @throws ItemError, ServiceError where the item fails
	 * @throws Stopped where the execution was stopped
	 */
	async output(): Promise<Output | undefined> {
		const earlier = this.run.journal.find(this.item);
		try {
			let next = typeof earlier === 'object' ? await this.takeUp(earlier) : FIRST_CREATE;
			while (typeof next === 'object') next = await this.create(next);
			return next;
		} finally {
			this.run.suspendAfter.close(this.item);
		}
	}

	/** Follows the task that an earlier try of n8n has created. */
	private async takeUp(task: SentTask): Promise<Output | NextCreate | undefined> {
		const { gap, clock } = this.run;
		const deadline = clock.now() + this.item.timeoutMs;
		return await this.follow(task, { firstReadAt: gap.take(), deadline });
	}

	private async create({ at, until, failure }: NextCreate) {
		const { item, run } = this;
		run.journal.failed(item);
		await this.pause(at);
		const task = await run.creator.create(item, Math.min(until, this.deadline));
		const now = run.clock.now();
		if (task === undefined) {
			// Another item has failed, and the node will stop; or it is too late for another task.
			if (failure) throw failure;
			if (now >= this.deadline) throw tooLate(item, run.queue.refusal);
			return undefined;
		}
		const deadline = Math.min(this.deadline, now + item.timeoutMs);
		this.deadline = deadline;
		run.suspendAfter.created();
		this.closeIfLast();
		const firstReadAt = run.firstReads.take(now + item.pollIntervalMs);
		return await this.follow(task, { createdAt: now, firstReadAt, deadline });
	}

	/** Tells `SuspendAfter` where the item creates no further task, whatever becomes of this one. */
	private closeIfLast(): void {
		const { item, run } = this;
		const isLast = run.journal.failedTaskIds(item).length >= (item.retryFailed ?? 0);
		if (isLast) run.suspendAfter.close(item);
	}

	/**
	 * Brings a created task to its end at the service, or to where its item leaves the node, and gives back its place.
	 *
	 * @returns what makes the output items; or that it failed, and another is to be created
	 */
	private async follow(task: SentTask, times: TaskTimes): Promise<Output | NextCreate | undefined> {
		const { item, run } = this;
		run.paidTasks.add(task.taskId);
		if (!isAwaited(item)) {
			void settled(this.freePlace(task.taskId));
			return this.leave(task);
		}
		const ended = await settled(this.wait(task, times));
		// First, so that no other item gets the place.
		if ('error' in ended) run.stopCreating();
		run.queue.finished();
		if ('error' in ended) throw ended.error;
		return ended.value;
	}

	/** The item leaves while its task is pending. */
	private leave({ taskId, record, sent }: SentTask): Output {
		const { item, run } = this;
		const { webhookUrl, timeoutMs, itemIndex } = item;
		if (webhookUrl !== undefined) run.deliveries.add(taskId, webhookUrl, timeoutMs);
		const task: TaskRecord = { taskId, state: 'PENDING', creditsConsumed: null, record };
		const json = inTableOrder({ ...taskJson(task, sent), ...run.known(item, taskId) });
		return async () => [{ json, pairedItem: { item: itemIndex } }];
	}

	private async wait(
		task: SentTask,
		times: TaskTimes,
	): Promise<Output | Required<NextCreate> | undefined> {
		const { item, run } = this;
		const { taskId, record, sent } = task;
		const { deadline } = times;
		let { createdAt } = times;
		const onUnfinished = () => {
			// From now on it is a task like those of this try.
			createdAt ??= times.firstReadAt;
			this.closeIfLast();
		};
		const ended = await run.reader.wait(item, taskId, { ...sent, record }, times, { onUnfinished });
		const known = run.known(item, taskId);
		if (!('taskId' in ended)) {
			const json = { ...pendingJson(taskId, sent), ...known, record };
			const goOn = async () => {
				const end = await this.wait(task, { ...times, firstReadAt: run.gap.take() });
				if (typeof end === 'object') throw end.failure;
				return end;
			};
			run.handedOver.push({ item, json, last: ended.last, deadline, goOn });
			return undefined;
		}
		if (ended.state === 'FAILURE') {
			const count = run.journal.failedTaskIds(item).length + 1;
			const failedAt = run.clock.now();
			return retryOf(item, { task: ended, sent, count, createdAt, failedAt, deadline });
		}
		const fields = { ...sent, ...known };
		return async () => await run.reader.output(item, ended, fields, deadline);
	}

	/**
	 * Reads a task whose item has left, so that the end of the task frees its place at the account for the next create.
	 * Nothing is read before the service has refused a create, nor when nothing is left to create.
	 */
	private async freePlace(taskId: string): Promise<void> {
		const { item } = this;
		const { queue, reader, firstReads, clock } = this.run;
		const readableAt = clock.now() + item.pollIntervalMs;
		await queue.limited;
		const pollIntervalMs = Math.max(item.pollIntervalMs, READ_GAP_MS * queue.throttle.unfinished);
		const firstReadAt = firstReads.take(Math.max(clock.now(), readableAt));
		const times = { firstReadAt, deadline: Infinity };
		const hooks = { isAbandoned: () => !queue.isCreating };
		await settled(reader.wait({ ...item, pollIntervalMs }, taskId, {}, times, hooks));
		queue.finished();
	}

	/** Waits until a moment of the clock; a node that stops waits no longer. */
	private async pause(until: number): Promise<void> {
		const { run } = this;
		const { clock } = run;
		while (clock.now() < until && !run.isStopping) {
			await sleepUntil(Math.min(until, clock.now() + SECOND), clock, run.signal);
		}
	}
}

/** Whoever called the node hangs up now, and would not hear of a task. */
const tooLate = ({ timeoutMs }: CreatePlan, refusal: ServiceError | undefined) =>
	new ItemError(refusal?.message ?? 'The service took no task', {
		description: `No task was created within ${timeoutMs / 1000} s. Try again later.`,
	});
