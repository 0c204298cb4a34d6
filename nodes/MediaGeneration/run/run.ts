import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { suspend } from '../callback/suspension';
import { taskJson } from '../output/items';
import type { CreatedTask } from '../service/client';
import { type Connection, connect } from '../service/connect';
import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import { attempt } from '../shared/attempt';
import { type Clock, Stopped, systemClock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { Account } from './account';
import { Creator } from './create';
import { CreatedTasks } from './createdTasks';
import { callbackWarning, showHints, summaryHint } from './hints';
import { echo } from './input';
import { Journal, webhookDigest } from './journal';
import { explainRead, failedTask, type ItemResult, pendingJson } from './outcome';
import { Pace } from './pace';
import { type CreatePlan, type ItemPlan, planRun, type ReadPlan, type RunPlan } from './plan';
import { redeliver } from './redeliver';
import { SuspendedItems } from './suspended';
import { Tasks } from './tasks';

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

	private readonly tasks: Tasks;

	private readonly suspended: SuspendedItems;

	private readonly account: Account;

	private readonly journal: Journal;

	private readonly creator: Creator;

	constructor(
		private readonly context: IExecuteFunctions,
		private readonly connection: Connection,
		private readonly plan: RunPlan,
		private readonly clock: Clock,
	) {
		const { client } = connection;
		this.goesOn = context.continueOnFail();
		this.signal = context.getExecutionCancelSignal();
		const pollIntervalMs = Math.min(
			...plan.items.map((item) => ('kind' in item ? item.pollIntervalMs : Infinity)),
		);
		this.pace = new Pace(clock, pollIntervalMs, Math.min(plan.maxInFlight, plan.items.length));
		this.account = new Account(clock, plan.maxInFlight, this.signal);
		this.journal = new Journal(context);
		this.created = new CreatedTasks(this.journal.taskIds());
		this.tasks = new Tasks(context, client, this.created, clock, this.signal);
		this.suspended = new SuspendedItems(this.tasks, this.created, this.pace, clock);
		this.creator = new Creator(context, client, this.account, this.journal, () =>
			this.stopCreating(),
		);
	}

	async finish(): Promise<INodeExecutionData[]> {
		const { items } = this.plan;
		const warning = callbackWarning(items, this.connection.baseUrl);
		// The hint is shown when the tasks are paid for; the log says it before.
		if (warning) this.context.logger.warn(`${this.context.getNode().name}: ${warning.message}`);
		const results: Array<ItemResult | undefined> = items.map((item) =>
			item instanceof ItemError ? item : undefined,
		);
		// Nothing is paid for a batch that cannot come out whole.
		this.failed = !this.goesOn && results.some((result) => result !== undefined);

		await this.runItems(results);
		const settled = await attempt(async () => await this.suspended.settle(this.failed, results));
		if ('error' in settled) throw this.explainEnd(settled.error);
		const resumeBy = settled.value;

		const index = results.findIndex((result) => result instanceof ItemError);
		const error = results[index];
		if (error instanceof ItemError && !this.goesOn) throw this.stopError(error, index);
		// n8n's Retry On Fail may try on where an item went out with an error, and a suspended execution may be
		// cancelled and retried: then the journal is still needed.
		if (resumeBy === undefined && error === undefined) this.journal.close();
		showHints(this.context, summaryHint(items, results), warning);
		const output = results.flatMap((result, index) => {
			if (result === undefined) return [];
			return result instanceof ItemError
				? [result.toItem(this.context.getNode(), { item: index })]
				: result;
		});
		if (resumeBy === undefined) return output;
		await suspend(this.context, output, resumeBy);
		// What is stored leaves the node later. An `error` in what is returned now would have n8n's Retry On Fail run
		// the suspended node again.
		return output.map(({ json, ...item }) => ({ ...item, json: { ...json, error: undefined } }));
	}

	/** As many items at once as tasks may be in flight, in their order. */
	private async runItems(results: Array<ItemResult | undefined>): Promise<void> {
		const { items, maxInFlight } = this.plan;
		const queue = items.filter((item): item is ItemPlan => !(item instanceof ItemError)).values();
		const worker = async () => {
			for (const item of queue) {
				if (this.failed) return;
				results[item.itemIndex] = await this.tryItem(item);
			}
		};
		const workers = Math.min(maxInFlight, items.length);
		const ends = await Promise.allSettled(Array.from({ length: workers }, worker));
		const broken = ends.find((end) => end.status === 'rejected');
		if (broken) throw this.explainEnd(broken.reason);
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
			this.suspended.add({
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
		const task = await this.tasks.wait(item, taskId, sent, { deadline, firstReadAt });
		if (task.state === 'FAILURE') {
			if (isEarlier) return undefined;
			throw failedTask(task, sent);
		}
		return await this.tasks.output(item, task, { ...taskJson(task, sent), ...estimate });
	}

	private async read(item: ReadPlan): Promise<INodeExecutionData[]> {
		const { taskId } = item;
		const firstReadAt = this.pace.requestSlot();
		if (item.wait) {
			const deadline = firstReadAt + item.timeoutMs;
			// A task that this node did not create costs nothing more if nobody waits for it.
			const isAbandoned = () => this.failed;
			const times = { deadline, firstReadAt };
			const task = await this.tasks.wait(item, taskId, {}, times, isAbandoned);
			if (task.state === 'FAILURE') throw failedTask(task);
			return await this.tasks.output(item, task, {});
		}
		const answer = await attempt(async () => await this.tasks.read(taskId, firstReadAt));
		if ('error' in answer) throw explainRead(answer.error, taskId, { taskId });
		const task = answer.value;
		if (item.redeliverTo === undefined) return await this.tasks.output(item, task, {});
		const delivered = task.state !== 'PENDING';
		if (delivered) await this.redeliver(task, item.redeliverTo);
		return await this.tasks.output(item, task, { delivered });
	}

	private async redeliver(task: FinishedTask, address: string): Promise<void> {
		const sent = await attempt(async () => await redeliver(this.context, task, address));
		if ('error' in sent) throw ItemError.from(sent.error, taskJson(task));
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
