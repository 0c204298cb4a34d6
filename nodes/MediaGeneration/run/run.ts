import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { failureText, pendingItem, suspend } from '../callback/suspension';
import { download } from '../output/download';
import { taskItems, taskJson } from '../output/items';
import type { CreatedTask } from '../service/client';
import { type Connection, connect } from '../service/connect';
import { ServiceError } from '../service/serviceError';
import type { FailedTask, FinishedTask, TaskRecord } from '../service/taskRecord';
import { attempt } from '../shared/attempt';
import { type Clock, Stopped, systemClock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { Account } from './account';
import { Creator } from './create';
import { CreatedTasks } from './createdTasks';
import { echo } from './input';
import { Journal, webhookDigest } from './journal';
import { Pace } from './pace';
import { type CreatePlan, type ItemPlan, planRun, type RunPlan } from './plan';
import { redeliver } from './redeliver';
import { sleepUntil, type Unfinished, waitForTask } from './wait';

/** Reads at once, before the execution is suspended; they are spread out besides. */
const PARALLEL_READS = 25;

interface SuspendedItem {
	item: CreatePlan;
	taskId: string;
	/** The fields of the item, as far as they are known. */
	json: IDataObject;
}

type ItemResult = INodeExecutionData[] | ItemError;

/**
 * One run of the action node: plan, create, wait, output.
 *
 * @returns the output items, in the order of the input items
 * @throws NodeApiError, NodeOperationError for the first item that failed, unless the node's *On Error* setting
 *   lets failed items out
 */
export async function runTasks(
	context: IExecuteFunctions,
	clock: Clock = systemClock,
): Promise<INodeExecutionData[]> {
	let connection: Connection;
	let plan: RunPlan;
	try {
		connection = await connect(context);
		plan = planRun(context, connection.apiKey);
	} catch (error) {
		const refused = ItemError.from(error);
		if (!context.continueOnFail()) {
			const earlier = new CreatedTasks(new Journal(context).taskIds()).describe();
			const description = [refused.description, earlier].filter(Boolean).join('\n\n');
			throw refused.toNodeError(context.getNode(), undefined, description || undefined);
		}
		return context.getInputData().map((_, item) => refused.toItem(context.getNode(), { item }));
	}
	const run = new Run(context, connection, plan, clock);
	return run.finish();
}

class Run {
	private readonly goesOn: boolean;

	private readonly signal: AbortSignal | undefined;

	private readonly pace: Pace;

	private readonly created: CreatedTasks;

	private failed = false;

	/** The created tasks whose items leave the node when the execution is resumed. */
	private readonly suspended: SuspendedItem[] = [];

	/** Set where the run ends with suspending the execution. */
	private resumeBy: Date | undefined;

	private readonly account: Account;

	private readonly journal: Journal;

	private readonly creator: Creator;

	constructor(
		private readonly context: IExecuteFunctions,
		private readonly connection: Connection,
		private readonly plan: RunPlan,
		private readonly clock: Clock,
	) {
		this.goesOn = context.continueOnFail();
		this.signal = context.getExecutionCancelSignal();
		const pollIntervalMs = Math.min(
			...plan.items.map((item) => ('kind' in item ? item.pollIntervalMs : Infinity)),
		);
		this.pace = new Pace(clock, pollIntervalMs, Math.min(plan.maxInFlight, plan.items.length));
		this.account = new Account(clock, plan.maxInFlight, this.signal);
		this.journal = new Journal(context);
		this.created = new CreatedTasks(this.journal.taskIds());
		this.creator = new Creator(context, connection.client, this.account, this.journal, () =>
			this.stopCreating(),
		);
	}

	async finish(): Promise<INodeExecutionData[]> {
		const { items } = this.plan;
		const results: Array<ItemResult | undefined> = items.map((item) =>
			item instanceof ItemError ? item : undefined,
		);
		// Nothing is paid for a batch that cannot come out whole.
		this.failed = !this.goesOn && results.some((result) => result !== undefined);

		const queue = items.filter((item): item is ItemPlan => !(item instanceof ItemError)).values();
		const worker = async () => {
			for (const item of queue) {
				if (this.failed) return;
				results[item.itemIndex] = await this.tryItem(item);
			}
		};
		const workers = Math.min(this.plan.maxInFlight, items.length);
		const ends = await Promise.allSettled(Array.from({ length: workers }, worker));
		const broken = ends.find((end) => end.status === 'rejected');
		if (broken) throw this.explainEnd(broken.reason);
		if (this.suspended.length > 0) {
			const settled = await attempt(async () => await this.settleSuspended(results));
			if ('error' in settled) throw this.explainEnd(settled.error);
		}

		if (!this.goesOn) {
			const index = results.findIndex((result) => result instanceof ItemError);
			const error = results[index];
			if (error instanceof ItemError) throw this.stopError(error, index);
		}
		// n8n's Retry On Fail may try on where an item went out with an error, and a suspended execution may be
		// cancelled and retried: then the journal is still needed.
		const isOver = this.resumeBy === undefined;
		if (isOver && !results.some((result) => result instanceof ItemError)) this.journal.close();
		const output = results.flatMap((result, index) => {
			if (result === undefined) return [];
			return result instanceof ItemError
				? [result.toItem(this.context.getNode(), { item: index })]
				: result;
		});
		if (this.resumeBy === undefined) return output;
		await suspend(this.context, output, this.resumeBy);
		// What is stored leaves the node later. An `error` in what is returned now would have n8n's Retry On Fail run
		// the suspended node again.
		return output.map(({ json, ...item }) => ({ ...item, json: { ...json, error: undefined } }));
	}

	/**
	 * Reads the tasks of `completion: suspend` once, in case they are finished already, and decides what becomes of
	 * the run: it is suspended where one is not. A node that stops cannot be suspended, so then they are waited for.
	 */
	private async settleSuspended(results: Array<ItemResult | undefined>): Promise<void> {
		const waitsHere = this.failed;
		const startedAt = this.clock.now();
		const states = await mapParallel(this.suspended, PARALLEL_READS, async (entry) => {
			const firstReadAt = this.pace.requestSlot();
			if (waitsHere) return await this.waitHere(entry, startedAt, firstReadAt);
			await sleepUntil(firstReadAt, this.clock, this.signal);
			const { taskId } = entry;
			const answer = await attempt(async () => await this.connection.client.readTask(taskId));
			// Whatever kept the read from working, the callback is still to come.
			return 'value' in answer ? answer.value : undefined;
		});
		const isSuspended = !waitsHere && states.some((task) => !isFinished(task));
		for (const [index, { item, taskId, json }] of this.suspended.entries()) {
			const task = states[index];
			if (task instanceof ItemError) {
				results[item.itemIndex] = task;
			} else if (isFinished(task)) {
				this.created.note(taskId, task.state);
				results[item.itemIndex] = await this.settle(item, task, json, isSuspended);
			} else {
				results[item.itemIndex] = [
					pendingItem({ ...json, ...(task && { record: task.record }) }, item.itemIndex),
				];
			}
		}
		if (!isSuspended) return;
		const longest = Math.max(...this.suspended.map(({ item }) => item.timeoutMs));
		this.resumeBy = new Date(this.clock.now() + longest);
	}

	private async waitHere(
		{ item, taskId, json }: SuspendedItem,
		startedAt: number,
		firstReadAt: number,
	): Promise<FinishedTask | ItemError> {
		// However many are waited for: the tasks are under way together, and each is read once at least.
		const deadline = Math.max(startedAt + item.timeoutMs, firstReadAt);
		const waited = await attempt(
			async () => await this.awaitTask(item, taskId, json, { deadline, firstReadAt }),
		);
		if ('value' in waited) return waited.value;
		if (waited.error instanceof Stopped) throw waited.error;
		return ItemError.from(waited.error);
	}

	/** The result of a task that needs no callback any more. */
	private async settle(
		item: CreatePlan,
		task: FinishedTask,
		json: IDataObject,
		isSuspended: boolean,
	): Promise<ItemResult> {
		const fields = { ...json, ...taskJson(task) };
		if (task.state === 'SUCCESS') return await this.output(item, task, fields);
		// An execution that is suspended cannot fail any more for one of its items.
		if (!isSuspended) return ItemError.from(failedTask(task), json);
		return [
			{ json: { ...fields, error: failureText(task) }, pairedItem: { item: item.itemIndex } },
		];
	}

	/** @throws Stopped alone: any other trouble is the item's result */
	private async tryItem(item: ItemPlan): Promise<ItemResult> {
		const result = await attempt(
			async () => await (item.kind === 'create' ? this.create(item) : this.read(item)),
		);
		if ('value' in result) return result.value;
		if (result.error instanceof Stopped || this.signal?.aborted) throw new Stopped();
		this.stopCreating();
		return ItemError.from(result.error);
	}

	/** Called where an item fails: a node that stops creates nothing more. */
	private stopCreating() {
		if (this.goesOn) return;
		this.failed = true;
		this.account.close();
	}

	private async create(item: CreatePlan): Promise<INodeExecutionData[]> {
		const earlier = this.journal.find(item);
		if (earlier !== undefined && earlier !== 'sent') {
			this.account.adopt();
			// The service calls the execution back that created the task: this one must look for itself.
			const isForeign = earlier.webhook !== webhookDigest(item);
			const completion = item.completion === 'suspend' && isForeign ? 'poll' : item.completion;
			const output = await this.follow(
				{ ...item, completion },
				earlier,
				this.pace.requestSlot(),
				true,
			);
			if (output !== undefined) return output;
			// It failed in an earlier try, and cost nothing.
			this.journal.forget(item);
		}
		const created = await this.creator.create(item);
		// Another item failed in the meantime, and the node will stop.
		if (created === undefined) return [];
		const firstReadAt = this.pace.firstReadSlot(this.clock.now() + item.pollIntervalMs);
		return (await this.follow(item, created, firstReadAt, false)) ?? [];
	}

	/**
	 * Brings a created task to where its item leaves the node, and gives back its place.
	 *
	 * @returns the output items; undefined for an earlier try's task that failed at the service
	 */
	private async follow(
		...task: Parameters<Run['bring']>
	): Promise<INodeExecutionData[] | undefined> {
		const brought = await attempt(async () => await this.bring(...task));
		// First, so that no other item gets the place.
		if ('error' in brought) this.stopCreating();
		this.account.finished();
		if ('error' in brought) throw brought.error;
		return brought.value;
	}

	/** @param isEarlier whether an earlier try created the task */
	private async bring(
		item: CreatePlan,
		{ taskId, record }: CreatedTask,
		firstReadAt: number,
		isEarlier: boolean,
	): Promise<INodeExecutionData[] | undefined> {
		this.created.add(taskId);
		const sent = await echo(this.context, item);
		const { estimatedCostUsd } = item;
		const estimate: IDataObject = estimatedCostUsd === undefined ? {} : { estimatedCostUsd };
		if (item.completion === 'suspend') {
			this.suspended.push({
				item,
				taskId,
				json: { ...pendingJson(taskId, sent), ...estimate, record },
			});
			return [];
		}
		if (item.completion !== 'poll') {
			const task: TaskRecord = { taskId, state: 'PENDING', creditsConsumed: null, record };
			const json = { ...taskJson(task, sent), ...estimate };
			return [{ json, pairedItem: { item: item.itemIndex } }];
		}
		const deadline = this.clock.now() + item.timeoutMs;
		const task = await this.awaitTask(item, taskId, sent, { deadline, firstReadAt });
		if (task.state === 'FAILURE') {
			if (isEarlier) return undefined;
			throw failedTask(task, sent);
		}
		return await this.output(item, task, { ...taskJson(task, sent), ...estimate });
	}

	private async read(item: Extract<ItemPlan, { kind: 'read' }>): Promise<INodeExecutionData[]> {
		const firstReadAt = this.pace.requestSlot();
		if (item.wait) {
			const deadline = firstReadAt + item.timeoutMs;
			const task = await this.awaitTask(item, item.taskId, {}, { deadline, firstReadAt });
			if (task.state === 'FAILURE') throw failedTask(task);
			return await this.output(item, task, {});
		}
		await sleepUntil(firstReadAt, this.clock, this.signal);
		const { taskId } = item;
		const answer = await attempt(async () => await this.connection.client.readTask(taskId));
		if ('error' in answer) throw explainRead(answer.error, taskId, { taskId });
		const task = answer.value;
		if (item.redeliverTo === undefined) return await this.output(item, task, {});
		const delivered = task.state !== 'PENDING';
		if (delivered) await this.redeliver(task, item.redeliverTo);
		return await this.output(item, task, { delivered });
	}

	private async redeliver(task: FinishedTask, address: string): Promise<void> {
		const sent = await attempt(async () => await redeliver(this.context, task, address));
		if ('error' in sent) throw ItemError.from(sent.error, taskJson(task));
	}

	/** @throws ItemError where the task is not finished in time, or cannot be read */
	private async awaitTask(
		item: ItemPlan,
		taskId: string,
		sent: IDataObject,
		times: { deadline: number; firstReadAt: number },
	): Promise<FinishedTask> {
		const known = pendingJson(taskId, sent);
		const ended = await attempt(
			async () =>
				await waitForTask({
					taskId,
					read: async (id) => await this.connection.client.readTask(id),
					clock: this.clock,
					pollIntervalMs: item.pollIntervalMs,
					signal: this.signal,
					// A task that this node did not create costs nothing more if nobody waits for it.
					isAbandoned: () => item.kind === 'read' && this.failed,
					...times,
				}),
		);
		if ('error' in ended) throw explainRead(ended.error, taskId, known);
		const task = ended.value;
		if (!('taskId' in task)) throw timedOut(taskId, item.timeoutMs, task, known);
		this.created.note(taskId, task.state);
		return task;
	}

	private async output(
		item: ItemPlan,
		task: TaskRecord,
		json: IDataObject,
	): Promise<INodeExecutionData[]> {
		const fields = { ...taskJson(task), ...json };
		try {
			const downloads =
				item.output.download && task.state === 'SUCCESS'
					? await download(this.context, task.resultUrls, task.taskId)
					: undefined;
			return taskItems(task, fields, item.output, downloads, { item: item.itemIndex });
		} catch (error) {
			throw ItemError.from(error, fields);
		}
	}

	/** The error that stops the node: it names every task that was created, so that nothing paid for is lost. */
	private stopError(error: ItemError, index: number): Error {
		const node = this.context.getNode();
		const description = [error.description, this.created.describe()].filter(Boolean).join('\n\n');
		return error.toNodeError(node, index, description || undefined);
	}

	/** Why the run ended before its items did: it was stopped, as a rule. */
	private explainEnd(reason: unknown): Error {
		const node = this.context.getNode();
		const error = ItemError.from(reason);
		const tasks = this.created.describe();
		// n8n does not keep the error of a node that was stopped, so its log is where the ids can be found.
		if (tasks !== undefined) this.context.logger.warn(`${node.name}: ${error.message}. ${tasks}`);
		return error.toNodeError(node, undefined, tasks);
	}
}

/** What is known of a task before it is read. */
function pendingJson(taskId: string, sent: IDataObject): IDataObject {
	return { taskId, state: 'PENDING', resultUrls: [], creditsConsumed: null, ...sent };
}

function failedTask(task: FailedTask, sent: IDataObject = {}): ItemError {
	return new ItemError(failureText(task), {
		description:
			'A failed task costs nothing. Change the prompt or the input of this item and run it again.',
		task: taskJson(task, sent),
	});
}

/** What ended the reads of a task before it was finished, named by the task: in a batch it is of no use else. */
function explainRead(error: unknown, taskId: string, known: IDataObject): unknown {
	if (!(error instanceof ServiceError)) return error;
	const message = error.message.includes(taskId)
		? error.message
		: `Task ${taskId}: ${error.message}`;
	const { description, statusCode } = error;
	return new ItemError(message, { description, statusCode, task: known });
}

function timedOut(
	taskId: string,
	timeoutMs: number,
	{ last, lastError }: Unfinished,
	known: IDataObject,
): ItemError {
	const state = typeof last?.record.state === 'string' ? last.record.state : 'not read';
	const trouble = lastError === undefined ? '' : ` The last read ended so: ${lastError.message}.`;
	return new ItemError(
		`Task ${taskId} is not finished after ${timeoutMs / 1000} s (last state: ${state})`,
		{
			description: `It goes on at the service and is billed if it succeeds. Fetch it with the operation Task → Wait, or raise 'Timeout' in the options.${trouble}`,
			task: { ...known, ...(last && { record: last.record }), timedOut: true },
		},
	);
}

function isFinished(task: TaskRecord | ItemError | undefined): task is FinishedTask {
	return task !== undefined && 'state' in task && task.state !== 'PENDING';
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
