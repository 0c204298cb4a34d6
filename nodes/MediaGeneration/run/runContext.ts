import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { CreateJournal } from '../create/createJournal';
import { CreateQueue } from '../create/createQueue';
import { TaskCreator } from '../create/createTask';
import { CreateThrottle } from '../create/createThrottle';
import { echo } from '../plan/inputFile';
import type { RunPlan } from '../plan/planRun';
import { createsIn, isAwaited, referenceOf, type TaskPlan } from '../plan/planTypes';
import { DOWNLOADS_AT_ONCE } from '../report/download';
import type { ItemResult } from '../report/failedTask';
import { hasTriesLeft } from '../report/ifSomeFail';
import { PaidTaskList } from '../report/paidTaskList';
import type { Connection } from '../service/connect';
import { firstReadGapMs, RequestGap } from '../service/requestGap';
import type { Clock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { isTool } from '../shared/n8nInternals';
import { Semaphore } from '../shared/promises';
import { ExpectedCallbacks } from '../suspend/expectedCallbacks';
import type { HandedOver } from '../suspend/suspendRun';
import { TaskReader } from '../wait/pollTask';
import { SuspendAfter } from '../wait/suspendAfter';

/** Between two reads of tasks whose items left: every second request at most is a read, and not a create. */
export const READ_GAP_MS = 8;

/** Makes the output items, downloads included: the task itself is finished, and holds no place any more. */
export type Output = () => Promise<INodeExecutionData[]>;

/** A task that the run holds no longer. */
interface HandedOverTask extends HandedOver {
	item: TaskPlan;
	/** Waits for the task where n8n does not suspend. */
	goOn: () => Promise<Output | undefined>;
}

/** What the items of one run of the action node share, and what became of each. */
export class RunContext {
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

	readonly paidTasks: PaidTaskList;

	readonly suspendAfter: SuspendAfter;

	readonly reader: TaskReader;

	readonly deliveries: ExpectedCallbacks;

	/** The tasks whose items leave later. */
	readonly handedOver: HandedOverTask[] = [];

	/** What became of each item. */
	readonly results: ItemResult[];

	/** Whether an item has failed, and the node will stop. */
	isStopping: boolean;

	/** Whether n8n's *On Error* lets failed items out. */
	readonly continues: boolean;

	/** Whether an AI agent calls the node: what becomes of its task is an answer then, and no error. */
	readonly isTool: boolean;

	/** Whether n8n tries this run again where it stops. */
	readonly triesLeft: boolean;

	/** The items that are under way at once. */
	readonly places: Semaphore;

	readonly downloads = new Semaphore(DOWNLOADS_AT_ONCE);

	constructor(
		readonly context: IExecuteFunctions,
		{ client, apiKey }: Connection,
		readonly plan: RunPlan,
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
		this.triesLeft = hasTriesLeft(context);
		this.paidTasks = new PaidTaskList(journal.taskIds(), journal.failedTaskIds());
		this.results = items.map((item, index) =>
			item instanceof ItemError ? journal.withTask(item, inputOf[index]) : [],
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
		const { gap, paidTasks } = this;
		const queue = new CreateQueue(clock, new CreateThrottle(), gap, signal, Math.random, most);
		this.queue = queue;
		const stop = () => this.stopCreating();
		this.creator = new TaskCreator(context, client, queue, journal, stop, clock, signal);
		const timer = new SuspendAfter(clock, suspendAfterMs, createsIn(items));
		this.suspendAfter = timer;
		this.reader = new TaskReader(context, client, paidTasks, timer, gap, clock, signal);
		this.deliveries = new ExpectedCallbacks(context, checkIntervalMs, clock);
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
		this.suspendAfter.closeAll();
	}

	/** What is paid for, for the message of whatever ends the run. */
	get paid(): string | undefined {
		return this.paidTasks.describe(this.journal.unanswered());
	}
}
