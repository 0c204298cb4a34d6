import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import type { Journal } from '../create/journal';
import { echo } from '../create/requestInput';
import { isAwaited, type TaskPlan, referenceOf } from '../plan/taskPlan';
import { type RunPlan } from '../plan/planRun';
import { DOWNLOADS_AT_ONCE } from '../report/download';
import { goesOn, stoppingItem } from '../report/failures';
import { withInputs } from '../report/includedInput';
import type { ItemResult } from '../report/outcome';
import { toolAnswer } from '../report/toolAnswer';
import { type Connection } from '../service/connect';
import { storeInput } from '../suspend/suspension';
import { Semaphore, type Settled, settled } from '../shared/concurrency';
import { type Clock, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { isTool } from '../shared/n8nInternals';
import { explainEnd, leavingItems, stopError, describePaid, withEarlierTask } from './runEnd';
import { ItemRun } from './itemRun';
import { makeRunParts, type RunParts } from './runParts';
import {
	callbackHint,
	seeHint,
	WAITING_HINT,
	showHints,
	showWarnings,
	summaryHint,
	triggerHint,
} from './runHints';
import type { Output } from './handedOverTasks';
import { countTry } from './retries';

/** One run of the action node whose parameters are planned: create, wait, output. */
export class TaskRun {
	/** Whether n8n's *On Error* lets failed items out. */
	private readonly continues: boolean;

	/** Whether an AI agent calls the node: what becomes of its task is an answer then, and no error. */
	private readonly isTool: boolean;

	/** Whether the items after a failed one are still to be created. */
	private readonly goesOn: boolean;

	/** Whether n8n tries this run again where it stops. */
	private readonly triesLeft: boolean;

	private readonly signal: AbortSignal | undefined;

	private readonly parts: RunParts;

	private readonly itemRun: ItemRun;

	private readonly outputs = new Semaphore(DOWNLOADS_AT_ONCE);

	/** Whether an item has failed, and the node will stop. */
	private failed = false;

	constructor(
		private readonly context: IExecuteFunctions,
		private readonly connection: Connection,
		private readonly plan: RunPlan,
		private readonly journal: Journal,
		clock: Clock,
	) {
		this.continues = context.continueOnFail();
		this.isTool = isTool(context);
		const { ifSomeFail } = plan;
		this.goesOn = this.isTool || goesOn({ ifSomeFail, continues: this.continues });
		this.triesLeft = countTry(context);
		this.signal = context.getExecutionCancelSignal();
		this.parts = makeRunParts(context, connection, plan, journal, clock, {
			isStopping: () => this.failed,
			stopCreating: () => this.stopCreating(),
		});
		this.itemRun = new ItemRun(this.parts);
	}

	async finish(): Promise<INodeExecutionData[]> {
		const { items, inputOf, warnings } = this.plan;
		showWarnings(this.context, warnings);
		const results: Array<ItemResult | undefined> = items.map((item, index) =>
			item instanceof ItemError
				? withEarlierTask(item, this.journal.taskOf(inputOf[index] ?? 0))
				: undefined,
		);
		// Nothing is paid for a batch that cannot come out whole.
		this.failed = !this.continues && results.some((result) => result !== undefined);

		const broken = await this.runItems(results);
		this.parts.unfinished.stop();
		await this.parts.deliveries.leave();
		if (broken) throw explainEnd(this.context, broken.error, this.paid);
		if (this.signal?.aborted) throw explainEnd(this.context, new Stopped(), this.paid);
		const suspended = await settled(async () => await this.suspend(results));
		if ('error' in suspended) throw explainEnd(this.context, suspended.error, this.paid);
		const isSuspended = suspended.value;

		// Of a suspended run it is decided when all is known.
		const stopping = isSuspended ? undefined : this.stoppingItem(results);
		if (stopping !== undefined)
			throw stopError(this.context.getNode(), results[stopping], inputOf[stopping] ?? 0, this.paid);
		// n8n's Retry On Fail may try on where an item went out with an error, and a suspended execution may be
		// cancelled and retried: then the journal is still needed.
		const hasFailed = results.some((result) => result instanceof ItemError);
		if (!isSuspended && !hasFailed) this.journal.close();
		const where = callbackHint(items, this.connection.baseUrl) ?? triggerHint(items, results);
		const waiting = isSuspended ? WAITING_HINT : undefined;
		const see = seeHint(items, results);
		showHints(this.context, summaryHint(items, results), waiting, where, see);
		const leaving = leavingItems(this.context.getNode(), results, inputOf);
		const output = withInputs(this.context, leaving);
		if (!isSuspended) return this.isTool ? output.map(toolAnswer) : output;
		storeInput(this.context, output);
		// What is stored leaves the node later. An `error` in what is returned now would have n8n's Retry On Fail run
		// the suspended node again.
		return output.map(({ json, ...item }) => ({ ...item, json: { ...json, error: undefined } }));
	}

	/** @returns the index of the item whose error stops the node; undefined where all items leave */
	private stoppingItem(results: ReadonlyArray<ItemResult | undefined>): number | undefined {
		const { triesLeft, plan } = this;
		const continues = this.continues || (this.isTool && !this.failed);
		return stoppingItem(results, { ifSomeFail: plan.ifSomeFail, continues, triesLeft });
	}

	/** @returns what broke the run off, if it did */
	private async runItems(results: Array<ItemResult | undefined>) {
		const { items } = this.plan;
		// The user bounds how many tasks that are waited for are unfinished at once.
		const isBounded = items.some(
			(item) => 'kind' in item && (item.kind === 'read' || isAwaited(item)),
		);
		const atOnce = isBounded ? this.plan.maxInFlight : items.length;
		const queue = items.entries();
		const outputs: Array<Promise<Settled<void>>> = [];
		const put = async (index: number, item: TaskPlan, output: Output) => {
			results[index] = await this.attemptItem(item, async () => await this.outputs.run(output));
		};
		const worker = async () => {
			for (const [index, item] of queue) {
				if (this.failed) return;
				if (item instanceof ItemError) continue;
				const brought = await this.attemptItem(item, async () => await this.itemRun.run(item));
				if (brought instanceof ItemError) results[index] = brought;
				else outputs.push(settled(async () => await put(index, item, brought)));
			}
		};
		const workers = Array.from({ length: Math.min(atOnce, items.length) }, () => worker);
		const ends = await Promise.all(workers.map(async (work) => await settled(work)));
		return [...ends, ...(await Promise.all(outputs))].find((end) => 'error' in end);
	}

	/**
	 * Suspends the execution where tasks were handed over. A node that n8n tries again is not suspended: the next try takes
	 * up its tasks. Where n8n does not suspend, the tasks are waited for to their end.
	 *
	 * @returns whether it is suspended
	 * @throws Stopped where the execution was stopped
	 */
	private async suspend(results: Array<ItemResult | undefined>): Promise<boolean> {
		const { plan } = this;
		const { handedOver, hold } = this.parts;
		const isTriedAgain = this.triesLeft && this.stoppingItem(results) !== undefined;
		if (handedOver.isEmpty || isTriedAgain) return false;
		if (await handedOver.suspend(results, plan)) return true;
		hold.forever();
		await handedOver.goOn(async (item, goOn, index) => {
			results[index] = await this.attemptItem(item, async () => {
				const output = await goOn();
				return await this.outputs.run(output);
			});
		});
		return false;
	}

	/** @throws Stopped alone: any other trouble is the item's result */
	private async attemptItem<T>(item: TaskPlan, work: () => Promise<T>): Promise<T | ItemError> {
		const result = await settled(work);
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
		this.parts.queue.close();
		this.parts.hold.closeAll();
	}

	/** What is paid for, for the message of whatever ends the run. */
	private get paid(): string | undefined {
		return describePaid(this.parts.created, this.journal);
	}
}
