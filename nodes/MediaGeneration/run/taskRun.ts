import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import { CreateThrottle } from '../create/createThrottle';
import { CreateQueue } from '../create/createQueue';
import { TaskCreator } from '../create/createTask';
import type { CreateJournal } from '../create/createJournal';
import { echo } from '../plan/itemFile';
import type { RunPlan } from '../plan/planRun';
import { createsIn, isAwaited, referenceOf, type TaskPlan } from '../plan/planTypes';
import { PaidTasks } from '../report/paidTasks';
import { DOWNLOADS_AT_ONCE } from '../report/download';
import { stoppingItem } from '../report/ifSomeFail';
import type { ItemResult } from '../report/taskErrors';
import type { Connection } from '../service/connect';
import { firstReadGapMs, RequestGap } from '../service/requestGap';
import { type Clock, Stopped } from '../shared/clock';
import { Semaphore, type Settled, settled } from '../shared/promises';
import { ItemError } from '../shared/itemError';
import { isTool } from '../shared/n8nInternals';
import { suspensionWarnings } from '../suspend/canSuspend';
import { ExpectedCallbacks } from '../suspend/expectedCallbacks';
import { type HandedOver, suspendRun } from '../suspend/suspendRun';
import { SuspendTimer } from '../wait/suspendTimer';
import { TaskReader } from '../wait/taskReader';
import { CreateItem, READ_GAP_MS } from './createItem';
import { readItem } from './readItem';
import { countTry, withEarlierTask } from './retryOnFail';

/** Makes the output items, downloads included: the task itself is finished, and holds no place any more. */
export type Output = () => Promise<INodeExecutionData[]>;

/** A task that the run holds no longer. */
interface HandedOverTask extends HandedOver {
	item: TaskPlan;
	/** Waits for the task where n8n does not suspend. */
	goOn: () => Promise<Output | undefined>;
}

/** The items of one run of the action node, each from its plan to its result, and what they share. */
export class TaskRun {
	/** Milliseconds of the clock. */
	readonly calledAt: number;

	/** Signs requests to a trigger. */
	readonly apiKey: string;

	readonly signal: AbortSignal | undefined;

	readonly gap: RequestGap;

	/** Keeps the first reads of created tasks at some distance. */
	readonly firstReads: RequestGap;

	readonly queue: CreateQueue;

	readonly creator: TaskCreator;

	readonly created: PaidTasks;

	readonly suspendTimer: SuspendTimer;

	readonly reader: TaskReader;

	readonly deliveries: ExpectedCallbacks;

	/** The tasks whose items leave later. */
	readonly handedOver: HandedOverTask[] = [];

	/** What became of each item. */
	readonly results: ItemResult[];

	/** Whether an item has failed, and the node will stop. */
	isStopping: boolean;

	/** Whether n8n's *On Error* lets failed items out. */
	private readonly continues: boolean;

	/** Whether an AI agent calls the node: what becomes of its task is an answer then, and no error. */
	private readonly isTool: boolean;

	/** Whether n8n tries this run again where it stops. */
	private readonly triesLeft: boolean;

	/** The items that are under way at once. */
	private readonly places: Semaphore;

	private readonly downloads = new Semaphore(DOWNLOADS_AT_ONCE);

	constructor(
		readonly context: IExecuteFunctions,
		{ client, apiKey }: Connection,
		private readonly plan: RunPlan,
		readonly journal: CreateJournal,
		readonly clock: Clock,
	) {
		const { items, inputOf, maxInFlight, suspendAfterMs, checkIntervalMs } = plan;
		const signal = context.getExecutionCancelSignal();
		this.calledAt = clock.now();
		this.apiKey = apiKey;
		this.signal = signal;
		this.continues = context.continueOnFail();
		this.isTool = isTool(context);
		this.triesLeft = countTry(context);
		this.created = new PaidTasks(journal.taskIds(), journal.failedTaskIds());
		this.results = items.map((item, index) =>
			item instanceof ItemError ? withEarlierTask(item, journal, inputOf[index]) : [],
		);
		// Nothing is paid for a batch that cannot come out whole.
		this.isStopping = !this.continues && this.results.some((result) => result instanceof ItemError);
		const planned = items.filter((item): item is TaskPlan => 'kind' in item);
		// The user bounds how many tasks that are waited for are unfinished at once. A task whose item left is not followed,
		// so it would hold its place for ever.
		const isBounded = planned.every((item) => item.kind === 'read' || isAwaited(item));
		const most = isBounded ? maxInFlight : Infinity;
		this.places = new Semaphore(most);
		this.gap = new RequestGap(clock);
		const least = planned.reduce((ms, plan) => Math.min(ms, plan.pollIntervalMs), Infinity);
		const readAtOnce = isBounded ? Math.min(items.length, most) : least / READ_GAP_MS;
		this.firstReads = new RequestGap(clock, firstReadGapMs(least, readAtOnce));
		const queue = new CreateQueue(clock, new CreateThrottle(), this.gap, signal, Math.random, most);
		this.queue = queue;
		const stop = () => this.stopCreating();
		this.creator = new TaskCreator(context, client, queue, journal, stop, clock, signal);
		const suspendTimer = new SuspendTimer(clock, suspendAfterMs, createsIn(items));
		this.suspendTimer = suspendTimer;
		this.reader = new TaskReader(
			context,
			client,
			this.created,
			suspendTimer,
			this.gap,
			clock,
			signal,
		);
		this.deliveries = new ExpectedCallbacks(context, checkIntervalMs, clock);
	}

	/** @returns the index of the item whose error stops the node; undefined where all items leave */
	stoppingItem(): number | undefined {
		const { triesLeft, plan } = this;
		const continues = this.continues || (this.isTool && !this.isStopping);
		return stoppingItem(this.results, { ifSomeFail: plan.ifSomeFail, continues, triesLeft });
	}

	/**
	 * Brings each item to its result, or hands its task over.
	 *
	 * @throws Stopped where the execution was stopped
	 */
	async bringItems(): Promise<void> {
		const { items } = this.plan;
		const earlier = new Set(items.filter((item) => this.isCreated(item)));
		// What earlier tries have created may be unfinished: it is counted before another task is created, and is read at once.
		earlier.forEach(() => this.queue.throttle.adopt());
		const ends = items.map(async (item, index): Promise<Settled<void>> => {
			if (item instanceof ItemError) return { value: undefined };
			const begin = async () => await this.begin(item);
			const work = earlier.has(item) ? begin : async () => await this.places.run(begin);
			return await settled(async () => await this.putOut(item, index, work));
		});
		const broken = (await Promise.all(ends)).find((end) => 'error' in end);
		await this.deliveries.leave();
		if (broken) throw broken.error;
		if (this.signal?.aborted) throw new Stopped();
	}

	/** Whether an earlier try of n8n has created the item's task. */
	private isCreated(item: TaskPlan | ItemError): boolean {
		if (item instanceof ItemError || item.kind !== 'create') return false;
		return typeof this.journal.find(item) === 'object';
	}

	private async begin(item: TaskPlan): Promise<Output | undefined> {
		if (this.signal?.aborted) throw new Stopped();
		if (this.isStopping) return undefined;
		return item.kind === 'read'
			? await readItem(this, item)
			: await new CreateItem(this, item).output();
	}

	/**
	 * Suspends the execution where tasks were handed over. A node that n8n tries again is not suspended: the next try takes
	 * up its tasks. Where n8n does not suspend, the tasks are waited for to their end.
	 *
	 * @returns whether it is suspended
	 * @throws Stopped where the execution was stopped
	 */
	async suspend(): Promise<boolean> {
		const { plan, context, handedOver, suspendTimer, clock, results } = this;
		const [first] = handedOver;
		const isTriedAgain = this.triesLeft && this.stoppingItem() !== undefined;
		if (first === undefined || isTriedAgain) return false;
		for (const warning of suspensionWarnings(context)) {
			context.logger.info(`${context.getNode().name}: ${warning}`);
		}
		const options = { ...plan, output: first.item.output };
		if (await suspendRun(context, handedOver, results, options, clock.now())) return true;
		suspendTimer.switchOff();
		const all = handedOver.map(
			async ({ item, goOn }) => await this.putOut(item, item.itemIndex, goOn),
		);
		await Promise.all(all);
		return false;
	}

	/** @throws Stopped alone: any other trouble is the item's result */
	private async putOut(item: TaskPlan, index: number, work: HandedOverTask['goOn']): Promise<void> {
		const ended = await settled(async () => {
			const output = await work();
			return output ? await this.downloads.run(output) : [];
		});
		if ('value' in ended) {
			this.results[index] = ended.value;
			return;
		}
		if (ended.error instanceof Stopped || this.signal?.aborted) throw new Stopped();
		this.stopCreating();
		const error = ItemError.from(ended.error);
		this.results[index] = ItemError.from(error, this.known(item, error.task.taskId));
	}

	/** The fields of an item's error, or of its output, that neither the request nor the record of its task has. */
	known(item: TaskPlan, taskId: unknown): IDataObject {
		if (item.kind === 'read') return referenceOf(item);
		const { estimatedCostUsd } = item;
		const failedTaskIds = this.journal.failedTaskIds(item).filter((id) => id !== taskId);
		return {
			...referenceOf(item),
			...(taskId !== undefined && estimatedCostUsd !== undefined && { estimatedCostUsd }),
			...(failedTaskIds.length > 0 && { failedTaskIds }),
			// Where there is no task, what was to be sent tells which item it was.
			...(taskId === undefined && echo(item)),
		};
	}

	/** Called where an item fails: a node that stops creates nothing more. */
	stopCreating(): void {
		if (this.isTool || this.continues || this.plan.ifSomeFail === 'keep') return;
		this.isStopping = true;
		this.queue.close();
		this.suspendTimer.closeAll();
	}

	/** What is paid for, for the message of whatever ends the run. */
	get paid(): string | undefined {
		return this.created.describe(this.journal.unanswered());
	}
}
