import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { storeInput } from '../callback/suspension';
import { CreatePace } from '../create/limits/createPace';
import { CreateQueue } from '../create/createQueue';
import { TaskCreator } from '../create/createTask';
import { Journal } from '../create/journal';
import { echo } from '../create/requestInput';
import { type ItemPlan, referenceOf } from '../plan/itemPlan';
import { planRun, type RunPlan } from '../plan/planRun';
import type { CreatedTaskList } from '../report/createdTaskList';
import { DOWNLOADS_AT_ONCE } from '../report/download';
import { describeStop, goesOn, stoppingItem } from '../report/failures';
import type { ItemResult } from '../report/outcome';
import { toolAnswer } from '../report/toolAnswer';
import { type Connection, connect } from '../service/connect';
import { RequestGap } from '../service/requestGap';
import { AtMost } from '../shared/atMost';
import { type Attempt, attempt } from '../shared/attempt';
import { type Clock, Stopped, systemClock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { isTool } from '../shared/tool';
import { RequestSlots } from '../wait/requestSlots';
import { ExpectedCallbacks } from '../wait/expectedCallbacks';
import { SuspendedRun } from '../wait/suspendedRun';
import { TaskReader } from '../wait/taskReader';
import { dryRun } from './dryRun';
import { explainEnd, leavingItems, stopError } from './ending';
import { ItemRun, type Output } from './itemRun';
import { BatchTimes, seeHint } from './nextTimeHints';
import { createdTasks, describePaid, withEarlierTask } from './paidTasks';
import { settleSuspended } from './settleSuspended';
import { callbackHint, showHints, summaryHint, triggerHint, warnOfSize } from './runHints';
import { countTry } from './retryOnFail';

/**
 * One run of the action node: plan, create, wait, output.
 *
 * @returns the output items, in the order of the input items
 * @throws NodeApiError, NodeOperationError for the first item that failed, unless the option *If Some Items Fail* or
 *   the node's *On Error* setting lets failed items out
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
		plan = await planRun(context, connection, clock);
	} catch (error) {
		const refused = ItemError.from(error);
		if (!context.continueOnFail()) {
			const paid = journal && describePaid(createdTasks(journal), journal);
			throw refused.toNodeError(context.getNode(), undefined, describeStop(refused, paid));
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
	/** Whether n8n's *On Error* lets failed items out. */
	private readonly continues: boolean;

	/** Whether an AI agent calls the node: what becomes of its task is an answer then, and no error. */
	private readonly isTool: boolean;

	/** Whether the items after a failed one are still to be created. */
	private readonly goesOn: boolean;

	/** Whether n8n tries this run again where it stops. */
	private readonly triesLeft: boolean;

	private readonly signal: AbortSignal | undefined;

	private readonly created: CreatedTaskList;

	private readonly suspended: SuspendedRun;

	private readonly deliveries: ExpectedCallbacks;

	private readonly queue: CreateQueue;

	private readonly outputs = new AtMost(DOWNLOADS_AT_ONCE);

	private readonly itemRun: ItemRun;

	private readonly batch: BatchTimes;

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
		this.continues = context.continueOnFail();
		this.isTool = isTool(context);
		const { ifSomeFail } = plan;
		this.goesOn = this.isTool || goesOn({ ifSomeFail, continues: this.continues });
		this.triesLeft = countTry(context);
		this.signal = context.getExecutionCancelSignal();
		const intervals = plan.items.map((item) => ('kind' in item ? item.pollIntervalMs : undefined));
		const least = intervals.reduce((a: number, b) => Math.min(a, b ?? a), Infinity);
		const most = intervals.reduce((a: number, b) => Math.max(a, b ?? a), 0);
		this.batch = new BatchTimes(clock, plan.maxInFlight);
		const gap = new RequestGap(clock);
		const slots = new RequestSlots(gap, least, Math.min(plan.maxInFlight, plan.items.length));
		const stopCreating = () => this.stopCreating();
		const pace = new CreatePace(plan.maxInFlight, plan.items.length, most, clock.now());
		this.queue = new CreateQueue(clock, pace, gap, this.signal);
		this.created = createdTasks(journal);
		const reader = new TaskReader(context, client, this.created, clock, this.signal);
		this.suspended = new SuspendedRun(reader, this.created, slots, clock);
		this.deliveries = new ExpectedCallbacks(context, plan.watchIntervalMs, clock);
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
			slots,
			reader,
			suspended: this.suspended,
			deliveries: this.deliveries,
			batch: this.batch,
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
		this.failed = !this.continues && results.some((result) => result !== undefined);

		const broken = await this.runItems(results);
		await this.deliveries.watch();
		if (broken) throw explainEnd(this.context, broken.error, this.paid);
		if (this.signal?.aborted) throw explainEnd(this.context, new Stopped(), this.paid);
		const settled = await attempt(
			async () =>
				await settleSuspended(this.context, this.suspended, results, {
					isStopping: this.failed,
					watchIntervalMs: this.plan.watchIntervalMs,
					ifSomeFail: this.plan.ifSomeFail,
				}),
		);
		if ('error' in settled) throw explainEnd(this.context, settled.error, this.paid);
		const isSuspended = settled.value;

		const { triesLeft } = this;
		const continues = this.continues || (this.isTool && !this.failed);
		// Of a suspended run it is decided when all is known.
		const stopping = isSuspended
			? undefined
			: stoppingItem(results, { ifSomeFail: this.plan.ifSomeFail, continues, triesLeft });
		if (stopping !== undefined)
			throw stopError(this.context.getNode(), results[stopping], inputOf[stopping] ?? 0, this.paid);
		// n8n's Retry On Fail may try on where an item went out with an error, and a suspended execution may be
		// cancelled and retried: then the journal is still needed.
		const hasFailed = results.some((result) => result instanceof ItemError);
		if (!isSuspended && !hasFailed) this.journal.close();
		const where = callbackHint(items, this.connection.baseUrl) ?? triggerHint(items, results);
		const next = [seeHint(items, results), this.queue.refusal ? undefined : this.batch.hint()];
		showHints(this.context, summaryHint(items, results), large, where, ...next);
		const output = leavingItems(this.context.getNode(), results, inputOf);
		if (!isSuspended) return this.isTool ? output.map(toolAnswer) : output;
		storeInput(this.context, output);
		// What is stored leaves the node later. An `error` in what is returned now would have n8n's Retry On Fail run
		// the suspended node again.
		return output.map(({ json, ...item }) => ({ ...item, json: { ...json, error: undefined } }));
	}

	/** As many items at once as tasks may be in flight, in their order. @returns what broke the run off, if it did */
	private async runItems(results: Array<ItemResult | undefined>) {
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
		return [...ends, ...(await Promise.all(outputs))].find((end) => 'error' in end);
	}

	/** @throws Stopped alone: any other trouble is the item's result */
	private async attemptItem<T>(item: ItemPlan, work: () => Promise<T>): Promise<T | ItemError> {
		const result = await attempt(work);
		if ('value' in result) return result.value;
		if (result.error instanceof Stopped || this.signal?.aborted) throw new Stopped();
		this.stopCreating();
		const error = ItemError.from(result.error, referenceOf(item));
		// Where there is no task, what was to be sent tells which item it was.
		const isTold = error.task.taskId !== undefined || item.kind !== 'create';
		return isTold ? error : ItemError.from(error, echo(item));
	}

	/** Called where an item fails: a node that stops creates nothing more. */
	private stopCreating() {
		if (this.goesOn) return;
		this.failed = true;
		this.queue.close();
	}

	/** What is paid for, for the message of whatever ends the run. */
	private get paid(): string | undefined {
		return describePaid(this.created, this.journal);
	}
}
