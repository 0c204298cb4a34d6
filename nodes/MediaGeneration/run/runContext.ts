import type { IExecuteFunctions } from 'n8n-workflow';

import { ExpectedCallbacks } from '../callback/delivery';
import { AccountLimits } from '../create/accountLimits';
import { CreateQueue } from '../create/createQueue';
import { TaskCreator } from '../create/createTask';
import type { Journal } from '../create/journal';
import { holdsPlace, type TaskEntry, toOrderIn } from '../create/taskEntry';
import { calledSince, hangsUp, isTool, modeOf, stopSignal } from '../n8n/internals';
import { stretchOf } from '../n8n/stretch';
import { TurnRow } from '../n8n/turnRow';
import type { RunSettings } from '../plan/planRun';
import { isAwaited, isDelivered } from '../plan/planTypes';
import { isNearLimit } from '../plan/planWait';
import { readPauseMs, ReadWindow } from '../read/readWindow';
import { Downloader } from '../report/download';
import type { FailureRule } from '../report/ifSomeFail';
import { MIN_READ_INTERVAL_MS, ServiceClient } from '../service/client';
import { connect, type Connection } from '../service/connect';
import { ServiceError } from '../service/serviceError';
import { SPECIFICATION } from '../service/services';
import type { TaskRecord } from '../service/taskRecord';
import { anyOf, clock, ExpiringCache, settled } from '../shared/clock';
import { messageOf, writeLog } from '../shared/itemError';
import { type RunView, timeOf } from './nextStep';
import { Turn } from './turn';

/** Between two reads of one task, milliseconds for each task that is read: half of the requests at most. */
const READ_GAP_MS = 8;

/** What the items of a turn share. */
export class RunContext {
	/** Aborted when the execution was stopped, or its caller. */
	readonly signal: AbortSignal;
	readonly settings: RunSettings;
	/** What is learnt of the account, in earlier turns as well. */
	readonly limits: AccountLimits;
	readonly queue: CreateQueue;
	readonly creator: TaskCreator;
	readonly turn: Turn;
	readonly window: ReadWindow;
	readonly downloader: Downloader;
	readonly expectedCallbacks: ExpectedCallbacks;
	readonly rule: FailureRule;

	/** When a caller that hangs up began to wait, milliseconds of the clock; Infinity if nobody hangs up. */
	readonly calledAt: number;

	/** Whether an item has failed, so that the node will stop: nothing more is paid for a batch that must fail. */
	isStopping = false;

	/** What was to be ordered when the turn began, and what of that this turn may order. */
	private readonly toOrder: readonly TaskEntry[];
	private inWindow: ReadonlySet<TaskEntry>;

	readonly loading = new Map<TaskEntry, Promise<{ value: boolean } | { error: unknown }>>();

	private readonly end = new AbortController();

	private readonly waiting = new Set<TaskEntry>();

	/** The entries whose task holds a place at the account. */
	private readonly holding = new Set<TaskEntry>();

	/** Several items may name one task, and share a read of a moment ago. */
	private readonly reads = new ExpiringCache<Promise<TaskRecord | undefined>>(MIN_READ_INTERVAL_MS);

	/** @param startedAt when this turn began, milliseconds of the clock */
	constructor(
		readonly context: IExecuteFunctions,
		readonly connection: RunConnection,
		readonly journal: Journal,
		startedAt: number,
	) {
		const { entries, settings, isLater } = journal;
		const { limitAt, maxInFlight, ifSomeFail } = settings;
		const suspendAfterMs = isNearLimit(limitAt) ? Infinity : settings.suspendAfterMs;
		this.settings = settings;
		this.signal = anyOf(stopSignal(context), this.end.signal);
		const isWatched = modeOf(context) === 'manual';
		this.turn = new Turn({
			startedAt,
			hasSlept: isLater,
			suspendAfterMs,
			stretch: stretchOf(context),
			signal: this.signal,
		});
		const isLeft = suspendAfterMs === Infinity && hangsUp(context);
		const calledAt = clock.now() + calledSince(context) - Date.now();
		this.calledAt = isLeft ? Math.min(startedAt, calledAt) : Infinity;
		const { window, hasEnded } = journal.state;
		const toOrder = hasEnded || connection.isBroken ? [] : toOrderIn(entries);
		this.toOrder = toOrder;
		this.inWindow = new Set(toOrder.slice(0, window));
		// *Max Tasks at the Same Time* bounds a wait only. If an item leaves at once, its task would hold a place for ever.
		const most = toOrder.every(({ plan }) => plan && isAwaited(plan)) ? maxInFlight : Infinity;
		const { limits, ...state } = journal.queue;
		if (connection.isBroken) state.quietSince ??= clock.now();
		this.limits = limits ? AccountLimits.fromStored(limits) : new AccountLimits();
		const { turn, signal } = this;
		const stopsAtFailure = ifSomeFail === 'stop' && !context.continueOnFail();
		const onFailure = () => this.stopOrdering();
		const rules = { most, stopsAtFailure, isWatched, onFailure };
		this.queue = new CreateQueue(this.limits, turn, signal, state, rules);
		this.creator = new TaskCreator(context, connection.client, this.queue, journal, signal);
		this.window = new ReadWindow(signal);
		this.downloader = new Downloader(context, connection.openFile);
		this.expectedCallbacks = new ExpectedCallbacks(context);
		// A mistake in the parameters stops the run before its first order. Later it is an error of its item.
		const isMistake = !journal.isBegun && entries.some(({ plan }) => plan === undefined);
		// For an AI agent the failure of its task is an answer, and not an error.
		const continues = context.continueOnFail() || (isTool(context) && !isMistake);
		const rule = isMistake ? 'stop' : ifSomeFail;
		this.rule = { ifSomeFail: rule, continues, triesLeft: journal.hasTriesLeft };
		if (isMistake || entries.some(({ end }) => end === 'error')) this.stopOrdering();
		// Tasks of earlier turns and tries may be unfinished. They are counted before another task is created.
		this.holding = new Set(entries.filter(holdsPlace));
		this.limits.unfinished += this.holding.size;
		for (const entry of entries) {
			const { plan, end, taskId } = entry;
			const isRead = plan !== undefined && isAwaited(plan) && end === undefined;
			if (isRead && (taskId !== undefined || plan.kind === 'read')) this.waiting.add(entry);
		}
		turn.begin(this.isStopping ? [] : toOrder);
	}

	/** To be called when a stop is found that n8n tells nobody of: all that waits ends. */
	stop(): void {
		this.end.abort();
	}

	/** Called when an item fails: a node that will stop orders nothing more. */
	stopOrdering(): void {
		if (this.isStopping || this.rule.continues || this.rule.ifSomeFail === 'keep') return;
		this.isStopping = true;
		this.queue.close();
		for (const entry of this.journal.entries) this.turn.noteLeft(entry, false);
		this.turn.alarm.wakeAll();
	}

	/** Whether this turn may order an entry. Where a turn has a window, a failed task is ordered again in the next turn. */
	mayOrder(entry: TaskEntry): boolean {
		const hasWindow = this.turn.maySleep && this.journal.state.window !== undefined;
		const isAgain = entry.again !== undefined && !hasWindow && !this.connection.isBroken;
		return isAgain || this.inWindow.has(entry);
	}

	/**
	 * Lets a turn that goes on order as much again. A row tells a retry so.
	 *
	 * @returns whether there is more to order
	 * @throws the database's error, if n8n's store fails for long
	 */
	async widen(): Promise<boolean> {
		const { context, journal, toOrder, inWindow, isStopping } = this;
		const { window = Infinity, turn, begun } = journal.state;
		const windows = begun?.windows ?? 1;
		if (isStopping || toOrder.length === inWindow.size) return false;
		if (!(await new TurnRow(context, turn).begin(windows))) return false;
		journal.noteBegun(windows + 1);
		this.inWindow = new Set(toOrder.slice(0, inWindow.size + window));
		return true;
	}

	/** To be called when a task of an entry was created. */
	noteOrdered(entry: TaskEntry): void {
		this.turn.noteLeft(entry, false);
		this.holding.add(entry);
		if (entry.plan && isAwaited(entry.plan)) this.waiting.add(entry);
	}

	/** To be called when an entry has ended. */
	noteEnd(entry: TaskEntry): void {
		this.turn.noteLeft(entry, false);
		this.waiting.delete(entry);
		this.freePlace(entry);
	}

	/** To be called when the task of an entry holds its place at the account no more. */
	freePlace(entry: TaskEntry): void {
		if (!this.holding.delete(entry)) return;
		// A run that stops lets no other item have the place.
		if (entry.end === 'error') this.stopOrdering();
		this.queue.finished();
	}

	/** What of the run concerns a task. */
	viewOf({ plan, sent, createdAt, until }: TaskEntry): RunView {
		// Of a task that another run has created only its first read is known.
		const bornAt = createdAt ?? (plan && until !== undefined ? until - timeOf(plan) : Infinity);
		const patienceMs = plan?.kind === 'create' ? plan.patienceMs : Infinity;
		const { isBroken } = this.connection;
		const brokenUntil = this.turn.maySleep ? this.queue.quietFrom + patienceMs : -Infinity;
		return {
			orderUntil: isBroken ? brokenUntil : this.calledAt + patienceMs,
			whyNotTaken: isBroken
				? NO_CREDENTIAL
				: (this.queue.refusal?.message ?? 'The service took no task'),
			readIntervalMs: Math.max(readPauseMs(clock.now() - bornAt), READ_GAP_MS * this.waiting.size),
			isOwn: plan?.kind === 'create' || isDelivered(plan) || sent !== undefined,
			turnStartedAt: this.turn.wentOnAt,
			endsAt: this.settings.endsAt,
			readsPausedUntil: this.window.pausedUntil,
			hangsUp: this.calledAt < Infinity,
			isStopping: this.isStopping,
		};
	}

	/**
	 * Reads a task when the window of the turn lets the read in.
	 *
	 * @param giveUpAt a read that would begin after this moment is not sent, milliseconds of the clock
	 * @param limitMs milliseconds until the read itself fails
	 * @returns the record, or why the read failed; undefined if it was not sent
	 * @throws Stopped if the execution was stopped
	 */
	async read(
		taskId: string,
		giveUpAt: number,
		limitMs?: number,
	): Promise<TaskRecord | ServiceError | undefined> {
		const { client } = this.connection;
		const send = async () => await client.readTask(taskId, limitMs);
		const reading = this.reads.get(taskId) ?? this.window.read(send, giveUpAt);
		this.reads.set(taskId, reading);
		const read = await settled(reading);
		if ('value' in read) return read.value;
		if (read.error instanceof ServiceError) return read.error;
		throw read.error;
	}
}

/** Why nothing is sent without the credential. */
export const NO_CREDENTIAL = 'The credential cannot be used';

/** The service with the node's credential; or without it, so that nothing can be sent. */
type RunConnection = Connection & { isBroken: boolean };

/**
 * Connects a run with the service. A run that has slept, and whose credential cannot be used any more, goes on without
 * it: nothing is sent, and its tasks are tried again in each turn, until their time is up.
 *
 * @param hasSlept whether the run has slept
 * @throws UserError if the credential cannot be used
 */
export async function connectRun(
	context: IExecuteFunctions,
	hasSlept: boolean,
): Promise<RunConnection> {
	const connected = await settled(connect(context));
	if ('value' in connected) return { ...connected.value, isBroken: false };
	const { error } = connected;
	if (!hasSlept) throw error;
	const message = messageOf(error);
	writeLog(context, 'warn', `the credential cannot be used. ${message}`);
	const baseUrl = 'https://credential.invalid';
	const refuse = async () => await Promise.reject(new ServiceError('unreachable', message));
	const client = new ServiceClient(refuse, baseUrl, []);
	const account = { client, service: SPECIFICATION, apiKey: '', baseUrl };
	return { ...account, models: [], openFile: () => undefined, isBroken: true };
}
