import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { ExpectedCallbacks } from '../callback/expectedCallbacks';
import { CreateQueue } from '../create/createQueue';
import { TaskCreator } from '../create/createTask';
import { AccountLimits } from '../create/accountLimits';
import { type Journal, keyOf } from '../create/journal';
import type { TaskEntry } from '../create/taskEntry';
import { hangsUp, isTool, stopSignal } from '../n8n/internals';
import { echo } from '../plan/inputFile';
import type { RunPlan } from '../plan/planRun';
import { createsIn, isAwaited, referenceOf, type TaskPlan } from '../plan/planTypes';
import { Downloader } from '../report/download';
import type { FailureRule } from '../report/ifSomeFail';
import { describePaidTasks, type PaidTask } from '../report/paidTaskList';
import { MIN_READ_INTERVAL_MS, RequestGap } from '../service/client';
import type { TaskRecord } from '../service/taskRecord';
import { clock, ExpiringCache } from '../shared/clock';
import { ReadWindow } from '../wait/readWindow';
import type { RunConnection } from './connectAnyway';
import { Turn } from './turn';

/** Between two reads of one task, milliseconds for each task that is read: half of the requests at most. */
const READ_GAP_MS = 8;

/** What the items of a turn share. */
export class RunContext {
	readonly signal: AbortSignal | undefined;
	/** What is learnt of the account, in earlier turns as well. */
	readonly limits: AccountLimits;
	readonly queue: CreateQueue;
	readonly creator: TaskCreator;
	readonly turn: Turn;
	readonly window: ReadWindow;
	readonly downloader: Downloader;
	readonly expectedCallbacks: ExpectedCallbacks;
	readonly rule: FailureRule;

	/** When a caller that hangs up began to wait, milliseconds of the clock. */
	readonly calledAt: number;

	/** Whether an item has failed, so that the node will stop: nothing more is paid for a batch that must fail. */
	isStopping = false;

	/** The tasks that are read at the moment. */
	reading = 0;

	/** Several items may name one task, and share a read of a moment ago. */
	private readonly reads = new ExpiringCache<Promise<TaskRecord | undefined>>(MIN_READ_INTERVAL_MS);

	/** The entries that this turn may create; undefined if it may create all. */
	private readonly announced: Set<string> | undefined;

	private readonly ownIds: Set<string>;

	/** When this turn began, milliseconds since 1970. */
	readonly begunAt = Date.now();

	/** Whether this turn may create anything at all: with *Survive Restarts After* 0 the first turn may not. */
	readonly canCreate: boolean;

	/** @param startedAt when this turn began, milliseconds of the clock */
	constructor(
		readonly context: IExecuteFunctions,
		readonly connection: RunConnection,
		readonly plan: RunPlan,
		readonly journal: Journal,
		startedAt: number,
	) {
		const { items, suspendAfterMs, ifSomeFail } = plan;
		this.signal = stopSignal(context);
		this.turn = new Turn(startedAt, suspendAfterMs, journal.isLater);
		this.calledAt = hangsUp(context) ? startedAt : Infinity;
		// *Max Tasks at the Same Time* bounds a wait only. If an item leaves at once, its task would hold a place for ever.
		const most = createsIn(items).every(isAwaited) ? plan.maxInFlight : Infinity;
		const { limits } = journal;
		this.limits = limits ? AccountLimits.fromStored(limits) : new AccountLimits();
		this.queue = new CreateQueue(this.limits, new RequestGap(), this.signal, Math.random, most);
		this.creator = new TaskCreator(context, connection.client, this.queue, journal, () =>
			this.stopCreating(),
		);
		this.window = new ReadWindow(this.signal);
		this.downloader = new Downloader(context);
		this.expectedCallbacks = new ExpectedCallbacks(context);
		const announced = journal.beginTurn();
		this.canCreate = announced ? announced.size > 0 : suspendAfterMs > 0;
		this.announced = connection.isBroken ? new Set() : announced;
		this.ownIds = new Set(journal.ownTaskIds());
		// A mistake in the parameters stops the run before its first create. Later it is an error of its item.
		const isMistake = !journal.isBegun && items.some(({ kind }) => kind === 'refused');
		// For an AI agent the failure of its task is an answer, and not an error.
		const continues = context.continueOnFail() || (isTool(context) && !isMistake);
		const rule = isMistake ? 'stop' : ifSomeFail;
		this.rule = { ifSomeFail: rule, continues, triesLeft: journal.hasTriesLeft };
		if (isMistake || journal.entries().some(({ end }) => end === 'error')) this.stopCreating();
	}

	/** Called when an item fails: a node that will stop creates nothing more. */
	stopCreating(): void {
		if (this.rule.continues || this.rule.ifSomeFail === 'keep') return;
		this.isStopping = true;
		this.queue.close();
	}

	/** Whether this turn may create the task of an entry. */
	mayCreate(item: TaskPlan): boolean {
		return !this.isStopping && (this.announced?.has(keyOf(item)) ?? true);
	}

	/** Whether a task is this node's own, so that it certainly exists and is paid for. */
	isOwn(taskId: string): boolean {
		return this.ownIds.has(taskId);
	}

	/** To be called when this node has created a task. */
	noteOwn(taskId: string): void {
		this.ownIds.add(taskId);
	}

	/** The time between two reads of a task, milliseconds: a large batch is read less often. */
	intervalOf({ pollIntervalMs }: TaskPlan): number {
		return Math.max(pollIntervalMs, READ_GAP_MS * this.reading);
	}

	/**
	 * Reads a task when the window of the turn has room.
	 *
	 * @param giveUpAt a read that would begin after this moment is not sent, milliseconds of the clock
	 * @param limitMs milliseconds until the read itself fails
	 * @returns undefined if it was not sent
	 * @throws ServiceError
	 */
	async read(taskId: string, giveUpAt: number, limitMs?: number): Promise<TaskRecord | undefined> {
		const known = this.reads.get(taskId);
		if (known) return await known;
		const { client } = this.connection;
		const read = this.window.read(async () => await client.readTask(taskId, limitMs), giveUpAt);
		this.reads.set(taskId, read);
		return await read;
	}

	/** A moment of the clock, from milliseconds since 1970. */
	momentOf(time: number): number {
		return clock.now() + (time - Date.now());
	}

	/**
	 * The fields of an item's error or output that the task's record does not have: what was sent, the reference, the
	 * estimate, and the tasks that failed before.
	 */
	ownFields(item: TaskPlan, entry: TaskEntry): IDataObject {
		if (item.kind === 'read') return { ...referenceOf(item), ...entry.fields };
		const { sent, costUsd, failed = [], taskId } = entry;
		// The fields that were sent win: in a second try an expression may give another value.
		const request = sent ?? (taskId === undefined ? echo(item) : {});
		return {
			...request,
			...(sent?.reference === undefined && referenceOf(item)),
			...(taskId !== undefined && costUsd !== undefined && { estimatedCostUsd: costUsd }),
			...(failed.length > 0 && { failedTaskIds: failed }),
		};
	}
}

/** The tasks that a run has paid for, as a message names them; undefined if there are none. */
export function describePaid(journal: Journal): string | undefined {
	const { abandoned } = journal;
	const tasks = journal
		.entries()
		.flatMap(({ sent, taskId, failed = [], task }): PaidTask[] => [
			...failed.map((id) => ({ taskId: id, state: 'FAILURE' })),
			...(sent && taskId
				? [{ taskId, state: task?.state ?? 'PENDING', credits: task?.creditsConsumed }]
				: []),
		]);
	return describePaidTasks(
		[...abandoned.map((taskId) => ({ taskId })), ...tasks],
		journal.unanswered(),
	);
}
