import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { storeInput } from '../callback/suspension';
import { AccountLimits } from '../create/accountLimits';
import { CreateQueue } from '../create/createQueue';
import { TaskCreator } from '../create/createTask';
import { Journal } from '../create/journal';
import { type ItemPlan, referenceOf } from '../plan/itemPlan';
import { planRun, type RunPlan } from '../plan/plan';
import type { CreatedTaskList } from '../report/createdTaskList';
import { DOWNLOADS_AT_ONCE } from '../report/download';
import type { ItemResult } from '../report/outcome';
import { type Connection, connect } from '../service/connect';
import { RequestGap } from '../service/requestGap';
import { AtMost } from '../shared/atMost';
import { type Attempt, attempt } from '../shared/attempt';
import { type Clock, Stopped, systemClock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { ReadPace } from '../wait/readPace';
import { ExpectedCallbacks } from '../wait/expectedCallbacks';
import { SuspendedRun } from '../wait/suspendedRun';
import { TaskReader } from '../wait/taskReader';
import { dryRun } from './dryRun';
import { ItemRun, type Output } from './itemRun';
import { createdTasks, describePaid, withEarlierTask } from './paidTasks';
import { settleSuspended } from './settleSuspended';
import { callbackHint, showHints, summaryHint, triggerHint, warnOfSize } from './runHints';

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
	let journal: Journal | undefined;
	try {
		journal = new Journal(context);
		connection = await connect(context);
		plan = planRun(context, connection);
	} catch (error) {
		const refused = ItemError.from(error);
		if (!context.continueOnFail()) {
			const paid = journal && describePaid(createdTasks(journal), journal);
			const description = [refused.description, paid].filter(Boolean).join('\n\n');
			throw refused.toNodeError(context.getNode(), undefined, description || undefined);
		}
		return context.getInputData().map((_, item) => {
			const error = withEarlierTask(refused, journal?.taskOf(item));
			return error.toItem(context.getNode(), { item });
		});
	}
	if (plan.isDry) return dryRun(context, plan);
	const run = new Run(context, connection, plan, journal, clock);
	return run.finish();
}

class Run {
	private readonly goesOn: boolean;

	private readonly signal: AbortSignal | undefined;

	private readonly created: CreatedTaskList;

	private readonly suspended: SuspendedRun;

	private readonly deliveries = new ExpectedCallbacks();

	private readonly queue: CreateQueue;

	private readonly outputs = new AtMost(DOWNLOADS_AT_ONCE);

	private readonly itemRun: ItemRun;

	/** Whether an item has failed, and the node will stop. */
	private failed = false;

	constructor(
		private readonly context: IExecuteFunctions,
		private readonly connection: Connection,
		private readonly plan: RunPlan,
		private readonly journal: Journal,
		clock: Clock,
	) {
		const { client } = connection;
		this.goesOn = context.continueOnFail();
		this.signal = context.getExecutionCancelSignal();
		const pollIntervalMs = plan.items.reduce(
			(least, item) => ('kind' in item ? Math.min(least, item.pollIntervalMs) : least),
			Infinity,
		);
		const gap = new RequestGap(clock);
		const pace = new ReadPace(gap, pollIntervalMs, Math.min(plan.maxInFlight, plan.items.length));
		const stopCreating = () => this.stopCreating();
		const limits = new AccountLimits(plan.maxInFlight, plan.items.length, clock.now());
		this.queue = new CreateQueue(clock, limits, gap, this.signal);
		this.created = createdTasks(journal);
		const reader = new TaskReader(context, client, this.created, clock, this.signal);
		this.suspended = new SuspendedRun(reader, this.created, pace, clock);
		this.itemRun = new ItemRun({
			context,
			apiKey: connection.apiKey,
			clock,
			queue: this.queue,
			creator: new TaskCreator(
				context,
				client,
				this.queue,
				journal,
				stopCreating,
				clock,
				this.signal,
			),
			journal,
			created: this.created,
			pace,
			reader,
			suspended: this.suspended,
			deliveries: this.deliveries,
			isStopping: () => this.failed,
			stopCreating,
		});
	}

	async finish(): Promise<INodeExecutionData[]> {
		const { items, inputOf } = this.plan;
		const large = warnOfSize(this.context, items);
		const results: Array<ItemResult | undefined> = items.map((item, index) =>
			item instanceof ItemError
				? withEarlierTask(item, this.journal.taskOf(inputOf[index] ?? 0))
				: undefined,
		);
		// Nothing is paid for a batch that cannot come out whole.
		this.failed = !this.goesOn && results.some((result) => result !== undefined);

		await this.runItems(results);
		if (this.signal?.aborted) throw this.explainEnd(new Stopped());
		await this.deliveries.watch(this.context, this.plan.watchIntervalMs);
		const settled = await attempt(
			async () =>
				await settleSuspended(this.context, this.suspended, results, {
					isStopping: this.failed,
					watchIntervalMs: this.plan.watchIntervalMs,
				}),
		);
		if ('error' in settled) throw this.explainEnd(settled.error);
		const isSuspended = settled.value;

		const index = results.findIndex((result) => result instanceof ItemError);
		const error = results[index];
		if (error instanceof ItemError && !this.goesOn) throw this.stopError(error, index);
		// n8n's Retry On Fail may try on where an item went out with an error, and a suspended execution may be
		// cancelled and retried: then the journal is still needed.
		if (!isSuspended && error === undefined) this.journal.close();
		const where = callbackHint(items, this.connection.baseUrl) ?? triggerHint(items, results);
		showHints(this.context, summaryHint(items, results), large, where);
		const output = this.itemsOf(results);
		if (!isSuspended) return output;
		storeInput(this.context, output);
		// What is stored leaves the node later. An `error` in what is returned now would have n8n's Retry On Fail run
		// the suspended node again.
		return output.map(({ json, ...item }) => ({ ...item, json: { ...json, error: undefined } }));
	}

	private itemsOf(results: ReadonlyArray<ItemResult | undefined>): INodeExecutionData[] {
		return results.flatMap((result, index) => {
			if (!(result instanceof ItemError)) return result ?? [];
			return [result.toItem(this.context.getNode(), { item: this.plan.inputOf[index] ?? 0 })];
		});
	}

	/** As many items at once as tasks may be in flight, in their order. */
	private async runItems(results: Array<ItemResult | undefined>): Promise<void> {
		const { items, maxInFlight } = this.plan;
		const queue = items.entries();
		const outputs: Array<Promise<Attempt<void>>> = [];
		const put = async (index: number, item: ItemPlan, output: Output) => {
			results[index] = await this.attemptItem(item, async () => await this.outputs.run(output));
		};
		const worker = async () => {
			for (const [index, item] of queue) {
				if (this.failed) return;
				if (item instanceof ItemError) continue;
				const brought = await this.attemptItem(item, async () => await this.itemRun.run(item));
				if (brought instanceof ItemError) results[index] = brought;
				else outputs.push(attempt(async () => await put(index, item, brought)));
			}
		};
		const workers = Array.from({ length: Math.min(maxInFlight, items.length) }, () => worker);
		const ends = await Promise.all(workers.map(async (work) => await attempt(work)));
		const broken = [...ends, ...(await Promise.all(outputs))].find((end) => 'error' in end);
		if (broken && 'error' in broken) throw this.explainEnd(broken.error);
	}

	/** @throws Stopped alone: any other trouble is the item's result */
	private async attemptItem<T>(item: ItemPlan, work: () => Promise<T>): Promise<T | ItemError> {
		const result = await attempt(work);
		if ('value' in result) return result.value;
		if (result.error instanceof Stopped || this.signal?.aborted) throw new Stopped();
		this.stopCreating();
		return ItemError.from(result.error, referenceOf(item));
	}

	/** Called where an item fails: a node that stops creates nothing more. */
	private stopCreating() {
		if (this.goesOn) return;
		this.failed = true;
		this.queue.close();
	}

	/** The error that stops the node: it names every task that was created, so that nothing paid for is lost. */
	private stopError(error: ItemError, index: number): Error {
		const node = this.context.getNode();
		const description = [error.description, describePaid(this.created, this.journal)]
			.filter(Boolean)
			.join('\n\n');
		return error.toNodeError(node, this.plan.inputOf[index], description || undefined);
	}

	/** Why the run ended before its items did: it was stopped, as a rule. */
	private explainEnd(reason: unknown): Error {
		const node = this.context.getNode();
		const error = ItemError.from(reason);
		const tasks = describePaid(this.created, this.journal);
		// n8n does not keep the error of a node that was stopped, so its log is where the ids can be found.
		if (tasks !== undefined) this.context.logger.warn(`${node.name}: ${error.message}. ${tasks}`);
		return error.toNodeError(node, undefined, tasks);
	}
}
