import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { AccountLimits } from '../create/accountLimits';
import { CreateQueue } from '../create/createQueue';
import { TaskCreator } from '../create/createTask';
import type { Journal } from '../create/journal';
import type { RunPlan } from '../plan/planRun';
import { createsIn, isAwaited, type TaskPlan } from '../plan/taskPlan';
import { CreatedTaskList } from '../report/createdTaskList';
import type { Connection } from '../service/connect';
import { RequestGap, RequestSlots } from '../service/requestPace';
import type { TaskRecord } from '../service/taskRecord';
import type { Clock } from '../shared/clock';
import { ExpectedCallbacks } from '../suspend/expectedCallbacks';
import { Hold } from '../wait/hold';
import { TaskReader } from '../wait/taskReader';

/** Between two reads of tasks whose items left: every second request at most is a read, and not a create. */
export const READ_GAP_MS = 8;

/** Makes the output items, downloads included: the task itself is finished, and holds no place any more. */
export type Output = () => Promise<INodeExecutionData[]>;

/** The output of an item that leaves later, or not at all. */
export const leavesNothing: Output = async () => [];

/** A task that the run holds no longer. */
interface HandedOverTask {
	item: TaskPlan;
	/** The fields of the item that do not come from the task's record, its `taskId` among them. */
	json: IDataObject;
	/** The last record read, if a read brought one. */
	last: TaskRecord | undefined;
	/** When the task's time is up, milliseconds of the clock. */
	deadline: number;
	/** Waits for the task where n8n does not suspend. */
	goOn: () => Promise<Output>;
}

/** What the items of one run share. */
export class RunParts {
	/** Signs requests to a trigger. */
	readonly apiKey: string;

	/** How many items are under way at once at most. */
	readonly atOnce: number;

	readonly slots: RequestSlots;

	readonly queue: CreateQueue;

	readonly creator: TaskCreator;

	readonly created: CreatedTaskList;

	readonly hold: Hold;

	readonly reader: TaskReader;

	readonly deliveries: ExpectedCallbacks;

	readonly handedOver: HandedOverTask[] = [];

	/**
	 * @param isStopping whether an item has failed, and the node will stop
	 * @param stopCreating called where an item fails: a node that stops creates nothing more
	 */
	constructor(
		readonly context: IExecuteFunctions,
		{ client, apiKey }: Connection,
		{ items, maxInFlight, suspendAfterMs, checkIntervalMs }: RunPlan,
		readonly journal: Journal,
		readonly clock: Clock,
		readonly isStopping: () => boolean,
		readonly stopCreating: () => void,
	) {
		const signal = context.getExecutionCancelSignal();
		const planned = items.filter((item): item is TaskPlan => 'kind' in item);
		// The user bounds how many tasks that are waited for are unfinished at once.
		const isBounded = planned.some((item) => item.kind === 'read' || isAwaited(item));
		this.apiKey = apiKey;
		this.atOnce = Math.min(items.length, isBounded ? maxInFlight : Infinity);
		const gap = new RequestGap(clock);
		const least = planned.reduce(
			(ms, { pollIntervalMs }) => Math.min(ms, pollIntervalMs),
			Infinity,
		);
		this.slots = new RequestSlots(gap, least, isBounded ? this.atOnce : least / READ_GAP_MS);
		// A task whose item left is not followed, so it would hold its place for ever.
		const most = planned.some((item) => !isAwaited(item)) ? Infinity : maxInFlight;
		this.queue = new CreateQueue(clock, new AccountLimits(), gap, signal, Math.random, most);
		this.creator = new TaskCreator(
			context,
			client,
			this.queue,
			journal,
			stopCreating,
			clock,
			signal,
		);
		this.created = new CreatedTaskList(journal.taskIds(), journal.failedTaskIds());
		this.hold = new Hold(clock, suspendAfterMs, createsIn(items));
		this.reader = new TaskReader(
			context,
			client,
			this.created,
			this.hold,
			this.slots,
			clock,
			signal,
		);
		this.deliveries = new ExpectedCallbacks(context, checkIntervalMs, clock);
	}

	/** Hands a task over: its item leaves later. */
	handOver(task: HandedOverTask): Output {
		this.handedOver.push(task);
		return leavesNothing;
	}
}
