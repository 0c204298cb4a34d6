import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import type { CreateJournal } from '../create/createJournal';
import { CreateQueue } from '../create/createQueue';
import { TaskCreator } from '../create/createTask';
import { CreateThrottle } from '../create/createThrottle';
import { echo } from '../plan/inputFile';
import type { RunPlan } from '../plan/planRun';
import { createsIn, isAwaited, referenceOf, type TaskPlan } from '../plan/planTypes';
import { Downloader } from '../report/download';
import type { ItemResult } from '../report/taskItems';
import type { FailureRule } from '../report/ifSomeFail';
import { PaidTaskList } from '../report/paidTaskList';
import { firstReadGapMs, MIN_READ_INTERVAL_MS, RequestGap } from '../service/client';
import type { Connection } from '../service/connect';
import type { TaskRecord } from '../service/taskRecord';
import { ExpiringCache } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { hangsUp, isTool } from '../n8n/internals';
import { Semaphore } from '../shared/promises';
import { ExpectedCallbacks } from '../suspend/missingCallbacks';
import type { HandedOver } from '../suspend/suspendRun';
import { SuspendAfter } from '../wait/pollTask';

/** Between two reads of tasks whose items have left, milliseconds for each of them: half of the requests at most. */
export const READ_GAP_MS = 8;

/** Makes the output items, with the downloads. The task is finished by then, and holds no place. */
export type Output = () => Promise<INodeExecutionData[]>;

/** A task that the run no longer holds. */
interface HandedOverTask extends HandedOver {
	item: TaskPlan;
	/** Goes on waiting for the task if n8n does not suspend the execution. */
	goOn: () => Promise<Output | undefined>;
}

export type RunContext = ReturnType<typeof openRun>;

/**
 * What the items of a run of the action node share.
 *
 * @param triesLeft whether n8n tries this run again if it stops
 * @param startedAt when n8n began this run, milliseconds of the clock
 */
export function openRun(
	context: IExecuteFunctions,
	connection: Connection,
	plan: RunPlan,
	journal: CreateJournal,
	triesLeft: boolean,
	startedAt: number,
) {
	const { items, suspendAfterMs, checkIntervalMs } = plan;
	const creates = createsIn(items);
	const signal = context.getExecutionCancelSignal();
	// *Max Tasks at the Same Time* bounds a wait only. If an item leaves at once, its task would hold a place for ever.
	const isBounded = creates.every(isAwaited);
	const most = isBounded ? plan.maxInFlight : Infinity;
	const leastMs = creates.reduce((ms, item) => Math.min(ms, item.pollIntervalMs), Infinity);
	const readAtOnce = isBounded ? Math.min(items.length, most) : leastMs / READ_GAP_MS;
	const gap = new RequestGap();
	const queue = new CreateQueue(new CreateThrottle(), gap, signal, Math.random, most);
	const suspendAfter = new SuspendAfter(suspendAfterMs, creates);
	const results = items.map((item): ItemResult =>
		item.kind === 'refused' ? journal.withTask(item.error, item.itemIndex) : [],
	);
	const isRefused = results.some((result) => result instanceof ItemError);
	const rule: FailureRule = {
		ifSomeFail: plan.ifSomeFail,
		// For an AI agent the failure of its task is an answer, and not an error.
		continues: context.continueOnFail() || (isTool(context) && !isRefused),
		triesLeft,
	};
	const paidTasks = new PaidTaskList(journal.taskIds(), journal.failedTaskIds());
	const handedOver: HandedOverTask[] = [];
	const run = {
		...connection,
		...{ context, plan, rule, journal, signal, gap, queue, suspendAfter },

		/** When a caller that hangs up began to wait, milliseconds of the clock. */
		calledAt: hangsUp(context) ? startedAt : Infinity,

		/** Spreads the first reads of created tasks. */
		firstReads: new RequestGap(firstReadGapMs(leastMs, readAtOnce)),

		/** Several items may name one task, and share a read of a moment ago. */
		reads: new ExpiringCache<Promise<TaskRecord>>(MIN_READ_INTERVAL_MS),

		creator: new TaskCreator(context, connection.client, queue, journal, stopCreating),
		paidTasks,
		deliveries: new ExpectedCallbacks(context, checkIntervalMs),
		downloader: new Downloader(context),

		/** Bounds the items that are under way at once. */
		places: new Semaphore(most),

		handedOver,
		results,

		/** Whether an item has failed, so that the node will stop: nothing more is paid for a batch that must fail. */
		isStopping: isRefused && !rule.continues,

		stopCreating,

		/** The fields of an item's error or output that neither the request nor the task's record has. */
		known(item: TaskPlan, taskId: unknown): IDataObject {
			if (item.kind === 'read') return referenceOf(item);
			const { estimatedCostUsd } = item;
			const failedTaskIds = journal.failedTaskIds(item).filter((id) => id !== taskId);
			return {
				...referenceOf(item),
				...(taskId !== undefined && estimatedCostUsd !== undefined && { estimatedCostUsd }),
				...(failedTaskIds.length > 0 && { failedTaskIds }),
				// Without a task the request shows which item it was.
				...(taskId === undefined && echo(item)),
			};
		},

		/** The tasks that are paid for, as the message that ends the run names them. */
		paid: () => paidTasks.describe(journal.unanswered()),
	};

	/** Called when an item fails: a node that will stop creates nothing more. */
	function stopCreating(): void {
		if (rule.continues || rule.ifSomeFail === 'keep') return;
		run.isStopping = true;
		queue.close();
		suspendAfter.closeAll();
	}

	return run;
}
