import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { CreateJournal } from '../create/createJournal';
import { CreateQueue } from '../create/createQueue';
import { TaskCreator } from '../create/createTask';
import { CreateThrottle } from '../create/createThrottle';
import { echo } from '../plan/inputFile';
import type { RunPlan } from '../plan/planRun';
import { createsIn, isAwaited, referenceOf, type TaskPlan } from '../plan/planTypes';
import { Downloader, DOWNLOADS_AT_ONCE } from '../report/download';
import type { ItemResult } from '../report/taskItems';
import type { FailureRule } from '../report/ifSomeFail';
import { PaidTaskList } from '../report/paidTaskList';
import { MIN_READ_INTERVAL_MS } from '../service/client';
import type { Connection } from '../service/connect';
import { firstReadGapMs, RequestGap } from '../service/requestGap';
import type { TaskRecord } from '../service/taskRecord';
import { type Clock, ExpiringCache } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { hangsUp, isTool } from '../shared/n8nInternals';
import { Semaphore } from '../shared/promises';
import { ExpectedCallbacks } from '../suspend/missingCallbacks';
import type { HandedOver } from '../suspend/suspendRun';
import { SuspendAfter } from '../wait/pollTask';

/** Between two reads of tasks whose items left: every second request at most is a read, and not a create. */
export const READ_GAP_MS = 8;

/** So many reads are known at once. */
const MOST_READS = 10_000;

/** Makes the output items, downloads included: the task itself is finished, and holds no place any more. */
export type Output = () => Promise<INodeExecutionData[]>;

/** A task that the run holds no longer. */
interface HandedOverTask extends HandedOver {
	item: TaskPlan;
	/** Waits for the task where n8n does not suspend. */
	goOn: () => Promise<Output | undefined>;
}

export type RunContext = ReturnType<typeof openRun>;

/**
 * What the items of one run of the action node share, and what became of each.
 *
 * @param triesLeft whether n8n tries this run again where it stops
 */
export function openRun(
	context: IExecuteFunctions,
	connection: Connection,
	plan: RunPlan,
	journal: CreateJournal,
	clock: Clock,
	triesLeft: boolean,
) {
	const { items, suspendAfterMs, checkIntervalMs } = plan;
	const creates = createsIn(items);
	const signal = context.getExecutionCancelSignal();
	// The user bounds how many tasks that are waited for are unfinished at once. A task whose item left is not followed,
	// so it would hold its place for ever.
	const isBounded = creates.every(isAwaited);
	const most = isBounded ? plan.maxInFlight : Infinity;
	const leastMs = creates.reduce((ms, item) => Math.min(ms, item.pollIntervalMs), Infinity);
	const readAtOnce = isBounded ? Math.min(items.length, most) : leastMs / READ_GAP_MS;
	const gap = new RequestGap(clock);
	const queue = new CreateQueue(clock, new CreateThrottle(), gap, signal, Math.random, most);
	const suspendAfter = new SuspendAfter(clock, suspendAfterMs, creates);
	const results = items.map((item): ItemResult =>
		item.kind === 'refused' ? journal.withTask(item.error, item.itemIndex) : [],
	);
	const isRefused = results.some((result) => result instanceof ItemError);
	const rule: FailureRule = {
		ifSomeFail: plan.ifSomeFail,
		// What becomes of the task of an AI agent is an answer, and no error.
		continues: context.continueOnFail() || (isTool(context) && !isRefused),
		triesLeft,
	};
	const paidTasks = new PaidTaskList(journal.taskIds(), journal.failedTaskIds());
	const handedOver: HandedOverTask[] = [];
	const run = {
		...connection,
		...{ context, plan, rule, journal, clock, signal, gap, queue, suspendAfter },

		/** When a caller began to wait who hangs up, milliseconds of the clock; Infinity where there is none. */
		calledAt: hangsUp(context) ? clock.now() : Infinity,

		/** Keeps the first reads of created tasks at some distance. */
		firstReads: new RequestGap(clock, firstReadGapMs(leastMs, readAtOnce)),

		/** Several items may name one task: what one of them has just read is good for all. */
		reads: new ExpiringCache<Promise<TaskRecord>>(clock, MIN_READ_INTERVAL_MS, MOST_READS),

		creator: new TaskCreator(context, connection.client, queue, journal, stopCreating, clock),
		paidTasks,
		deliveries: new ExpectedCallbacks(context, checkIntervalMs, clock),
		downloader: new Downloader(context, clock),
		downloads: new Semaphore(DOWNLOADS_AT_ONCE),

		/** The items that are under way at once. */
		places: new Semaphore(most),

		/** The tasks whose items leave later. */
		handedOver,

		/** What became of each item. */
		results,

		/** Whether an item has failed, and the node will stop: nothing is paid for a batch that cannot come out whole. */
		isStopping: isRefused && !rule.continues,

		stopCreating,

		/** The fields of an item's error, or of its output, that neither the request nor the record of its task has. */
		known(item: TaskPlan, taskId: unknown): IDataObject {
			if (item.kind === 'read') return referenceOf(item);
			const { estimatedCostUsd } = item;
			const failedTaskIds = journal.failedTaskIds(item).filter((id) => id !== taskId);
			return {
				...referenceOf(item),
				...(taskId !== undefined && estimatedCostUsd !== undefined && { estimatedCostUsd }),
				...(failedTaskIds.length > 0 && { failedTaskIds }),
				// Where there is no task, what was to be sent tells which item it was.
				...(taskId === undefined && echo(item)),
			};
		},

		/** What is paid for, for the message of whatever ends the run. */
		paid: () => paidTasks.describe(journal.unanswered()),
	};

	/** Called where an item fails: a node that stops creates nothing more. */
	function stopCreating(): void {
		if (rule.continues || rule.ifSomeFail === 'keep') return;
		run.isStopping = true;
		queue.close();
		suspendAfter.closeAll();
	}

	return run;
}
