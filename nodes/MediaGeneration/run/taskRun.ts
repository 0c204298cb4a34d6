import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import type { Journal, SentTask } from '../create/journal';
import { echo } from '../plan/itemFile';
import { type TaskPlan, referenceOf } from '../plan/taskPlan';
import { type RunPlan } from '../plan/planRun';
import { DOWNLOADS_AT_ONCE } from '../report/download';
import { describeStop, stoppingItem } from '../report/failures';
import { withInputs } from '../report/includedInput';
import { type ItemResult, pendingJson } from '../report/outcome';
import { toolAnswer } from '../report/toolAnswer';
import { type Connection } from '../service/connect';
import { suspensionWarnings } from '../suspend/canSuspend';
import { suspendRun } from '../suspend/suspendRun';
import { storeInput } from '../suspend/suspension';
import { Semaphore, type Settled, settled } from '../shared/concurrency';
import { type Clock, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { isTool } from '../shared/n8nInternals';
import { ItemRun } from './itemRun';
import { type Output, RunParts } from './runParts';
import {
	callbackHint,
	seeHint,
	WAITING_HINT,
	showHints,
	showWarnings,
	summaryHint,
	triggerHint,
} from './runHints';
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
		this.goesOn = this.isTool || this.continues || plan.ifSomeFail === 'keep';
		this.triesLeft = countTry(context);
		this.signal = context.getExecutionCancelSignal();
		this.parts = new RunParts(
			context,
			connection,
			plan,
			journal,
			clock,
			() => this.failed,
			() => this.stopCreating(),
		);
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

		const ended = await settled(async () => {
			const broken = await this.runItems(results);
			await this.parts.deliveries.leave();
			if (broken) throw broken.error;
			if (this.signal?.aborted) throw new Stopped();
			return await this.suspend(results);
		});
		if ('error' in ended) throw this.explainEnd(ended.error);
		const isSuspended = ended.value;
		const node = this.context.getNode();

		// Of a suspended run it is decided when all is known.
		const stopping = isSuspended ? undefined : this.stoppingItem(results);
		if (stopping !== undefined) {
			const error = ItemError.from(results[stopping]);
			throw error.toNodeError(node, inputOf[stopping], describeStop(error, this.paid));
		}
		// n8n's Retry On Fail may try on where an item went out with an error, and a suspended execution may be
		// cancelled and retried: then the journal is still needed.
		const hasFailed = results.some((result) => result instanceof ItemError);
		if (!isSuspended && !hasFailed) this.journal.close();
		const where = callbackHint(items, this.connection.baseUrl) ?? triggerHint(items, results);
		const waiting = isSuspended ? WAITING_HINT : undefined;
		const see = seeHint(items, results);
		showHints(this.context, summaryHint(items, results), waiting, where, see);
		const leaving = results.flatMap((result, index) => {
			if (!(result instanceof ItemError)) return result ?? [];
			return [result.toItem(node, { item: inputOf[index] ?? 0 })];
		});
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
		const entries = [...items.entries()];
		const earlier = new Set(entries.filter(([, item]) => this.isCreated(item)));
		const queue = entries.filter((entry) => !earlier.has(entry)).values();
		const outputs: Array<Promise<Settled<void>>> = [];
		const put = async (index: number, item: TaskPlan, output: Output) => {
			results[index] = await this.attemptItem(item, async () => await this.outputs.run(output));
		};
		const work = async (some: Iterable<[number, TaskPlan | ItemError]>) => {
			for (const [index, item] of some) {
				if (this.failed) return;
				if (item instanceof ItemError) continue;
				const brought = await this.attemptItem(item, async () => await this.itemRun.run(item));
				if (brought instanceof ItemError) results[index] = brought;
				else outputs.push(settled(async () => await put(index, item, brought)));
			}
		};
		// What earlier tries have created may be unfinished: it is counted before another task is created, and is read at once.
		earlier.forEach(() => this.parts.queue.limits.adopt());
		const workers = [
			...[...earlier].map((entry) => [entry]),
			...Array.from({ length: this.parts.atOnce }, () => queue),
		];
		const ends = await Promise.all(workers.map(async (some) => await settled(work(some))));
		return [...ends, ...(await Promise.all(outputs))].find((end) => 'error' in end);
	}

	/** Whether an earlier try of n8n has created the item's task. */
	private isCreated(item: TaskPlan | ItemError): boolean {
		if (item instanceof ItemError || item.kind !== 'create') return false;
		return typeof this.journal.find(item) === 'object';
	}

	/**
	 * Suspends the execution where tasks were handed over. A node that n8n tries again is not suspended: the next try takes
	 * up its tasks. Where n8n does not suspend, the tasks are waited for to their end.
	 *
	 * @returns whether it is suspended
	 * @throws Stopped where the execution was stopped
	 */
	private async suspend(results: Array<ItemResult | undefined>): Promise<boolean> {
		const { plan, context } = this;
		const { handedOver, hold, clock } = this.parts;
		const [first] = handedOver;
		const isTriedAgain = this.triesLeft && this.stoppingItem(results) !== undefined;
		if (first === undefined || isTriedAgain) return false;
		for (const warning of suspensionWarnings(context)) {
			context.logger.info(`${context.getNode().name}: ${warning}`);
		}
		const tasks = handedOver.map(({ item: { itemIndex, timeoutMs }, deadline, ...task }) => {
			const leftMs = Math.max(0, deadline - clock.now());
			return { ...task, itemIndex, timeoutMs, leftMs };
		});
		const { output } = first.item;
		if (await suspendRun(context, tasks, results, { ...plan, output })) return true;
		hold.forever();
		const goOn = handedOver.map(async ({ item, goOn }) => {
			results[item.itemIndex] = await this.attemptItem(item, async () => {
				const output = await goOn();
				return await this.outputs.run(output);
			});
		});
		await Promise.all(goOn);
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

	/** Why the run ended before its items did: it was stopped, as a rule. */
	private explainEnd(reason: unknown): Error {
		const node = this.context.getNode();
		const { paid } = this;
		const error = ItemError.from(reason);
		// n8n does not keep the error of a node that was stopped, so its log is where the ids can be found.
		if (paid !== undefined) this.context.logger.warn(`${node.name}: ${error.message}. ${paid}`);
		return error.toNodeError(node, undefined, paid);
	}

	/** What is paid for, for the message of whatever ends the run. */
	private get paid(): string | undefined {
		return this.parts.created.describe(this.journal.unanswered());
	}
}

/** An item that cannot be planned this time names the task that an earlier try created for it. */
export function withEarlierTask(error: ItemError, task: SentTask | undefined): ItemError {
	return task ? ItemError.from(error, pendingJson(task.taskId, task.sent)) : error;
}
