import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { executionIdOf, internalsOf, isSupplied, nodeContext, retriedBy } from '../n8n/internals';
import { rememberState } from '../n8n/newestState';
import { JOURNAL } from '../n8n/storedExecution';
import { stretchOf } from '../n8n/stretch';
import type { RunPlan, RunSettings } from '../plan/planRun';
import { triesOf } from '../report/ifSomeFail';
import type { CreatedTask } from '../service/client';
import { clock, MINUTE_MS } from '../shared/clock';
import { type Beginning, beginningOf, executionsBefore, newestOf, WHOLE } from './beginning';
import type { QueueState } from './createQueue';
import {
	endedRun,
	newRun,
	replanned,
	revivedEntries,
	revivedSettings,
	sleepingRun,
	type Stored,
	type StoredRun,
} from './storedJournal';
import { mayOrder, readAgain, reopened, type TaskEntry, taskIdsIn } from './taskEntry';

/** A window has so many orders at least: as many as *Max Tasks at the Same Time* lets be unfinished, as a rule. */
const LEAST_WINDOW = 10;

/** A window has this many times what the turn before has ordered in a minute. */
const WINDOW_FACTOR = 2;

/** A created task with the model and the input that were sent, as the output shows them. */
export type SentTask = CreatedTask & { sent: IDataObject };

/**
 * All that is known of this run of the node: the plan, and what was sent, created, read and downloaded. n8n stores it with
 * the execution, when the execution sleeps and when it ends. So a run that is woken, tried again by *Retry On Fail*, or
 * retried from the list of executions takes up what it finds here, and pays for nothing twice.
 *
 * An entry belongs to a run of the node (a loop has many), an input item, and a task of the item. n8n hands a run that is
 * woken or repeated the same input, so nothing else tells an entry.
 */
export class Journal {
	readonly beginning: Beginning;

	/** Whether the run has slept. */
	readonly isLater: boolean;

	/** In the order of the items. */
	entries: TaskEntry[];

	/** Whether n8n has handed out an older state than that of the last sleep, which the process remembers. */
	readonly isOutdated: boolean;

	/** Whether what has failed is tried again. */
	private mayFailAgain = true;

	private readonly run: StoredRun;
	private readonly node: Stored;
	private readonly execution: string;
	private readonly runIndex: number;

	/** How many orders this turn has sent that the service has certainly not refused. */
	private ordered = 0;

	/** To be set when all items leave, and with them what nobody needs any more. */
	isEnded = false;

	/** To be set if the run is refused because nothing is known of what it has ordered before. */
	isLost = false;

	/** When the turn began, milliseconds of the clock. */
	private readonly begunAt = clock.now();

	/** @throws UserError if another version of this package wrote the journal */
	constructor(private readonly context: IExecuteFunctions) {
		const { begunAt } = this;
		// Calls of a supplied tool at the same time may share a run, and n8n repeats such a call as another run.
		const store = isSupplied(context) ? {} : nodeContext(context);
		// *Task ID* may name this execution, from this workflow only.
		store.workflowId = context.getWorkflow().id;
		const runIndex = internalsOf(context).runIndex ?? 0;
		const execution = String(executionIdOf(context));
		const { stored, isOutdated } = newestOf(context, store, runIndex, execution);
		const known = stored.runs[runIndex];
		const earlier = executionsBefore(context, execution);
		this.runIndex = runIndex;
		this.execution = execution;
		this.node = { ...stored, executions: [...earlier, execution] };
		this.beginning = beginningOf(known, execution);
		this.run = known ?? newRun(execution, stretchOf(context).isStored, begunAt);
		this.isOutdated = isOutdated;
		const { isAsleep, wakeAt } = this.run;
		this.isLater = isAsleep || (this.run.execution === execution && wakeAt !== undefined);
		this.entries = revivedEntries(context, this.run);
		this.begin(earlier, begunAt);
		// n8n stores what this says when it stores the execution. It does not go back to an earlier run.
		store[JOURNAL] = {
			executions: this.node.executions,
			toJSON: () => this.toStored(this.isEnded && !this.hasTriesLeft),
			// n8n may try once more, after a wake, what has had all its tries.
			[WHOLE]: () => this.toStored(false),
		};
	}

	/** What follows from how the run begins. @param earlier the executions that this one goes on from, oldest first */
	private begin(earlier: readonly string[], now: number): void {
		const { run, beginning } = this;
		if (beginning === 'woken') return;
		if (beginning === 'first') {
			this.goOnFrom(earlier, 1);
			return;
		}
		if (beginning === 'again') run.tries++;
		else this.beginInAnotherExecution(now);
		// n8n counts its tries anew when it wakes a run. Without an end to them a task would be waited for for ever.
		this.mayFailAgain = run.tries < triesOf(this.context.getNode());
		if (this.mayFailAgain) this.entries = this.entries.map(reopened);
	}

	/** An execution has tries of its own, a time limit of its own, and turns of its own, which have rows. */
	private beginInAnotherExecution(now: number): void {
		const { run } = this;
		this.kept.push(run.execution);
		const turn = Math.max(1, run.turn);
		Object.assign(run, { tries: 0, startedAt: now, turn, hasEnded: undefined });
		// A retry that n8n has killed before it stored anything has left the state of the execution that it retried.
		const retried = retriedBy(this.context) ?? run.execution;
		this.goOnFrom([...new Set([run.execution, retried])], run.turn);
		this.entries = this.entries.map(readAgain);
	}

	/** @param executions each one was retried by the next one, and the last one by this one */
	private goOnFrom(executions: readonly string[], turn: number): void {
		const { window } = this.run;
		this.run.before.push(...executions.map((execution) => ({ execution, turn, window })));
	}

	private toStored(isEnded: boolean): Stored {
		const { entries, run } = this;
		const stored = isEnded ? endedRun(run, entries) : sleepingRun(run, entries);
		return { ...this.node, runs: this.isLost ? {} : { [this.runIndex]: stored } };
	}

	/** To be called when the run goes on in this execution: a try that fails before leaves all as it was. */
	takeUp(): void {
		Object.assign(this.run, { execution: this.execution, isAsleep: false });
	}

	/** Whether n8n tries this run again if it stops (*Retry On Fail*). */
	get hasTriesLeft(): boolean {
		return this.run.tries + 1 < triesOf(this.context.getNode());
	}

	/** What n8n stores of the run itself. */
	get state(): Readonly<StoredRun> {
		return this.run;
	}

	/** The retried executions of which n8n has stored a state of the node: their first turns are over. */
	get kept(): string[] {
		return this.node.kept;
	}

	/** The retried executions whose orders this execution has claimed: a second question could lose the claim. */
	get claimed(): string[] {
		return this.node.claimed;
	}

	/** Whether something may be ordered, now or when a task has failed. */
	get mayOrder(): boolean {
		const { entries, hasTriesLeft } = this;
		return entries.some(
			(entry) => mayOrder(entry) || (hasTriesLeft && entry.plan?.kind === 'create'),
		);
	}

	/** Leaves the turn to another wake, which has begun it. @param wakeAt milliseconds of the clock */
	standAside(wakeAt: number): void {
		const { turn, window } = this.run;
		this.run.before.push({ execution: this.execution, turn, window, hasBegun: true });
		this.sleepUntil(wakeAt, window);
	}

	/** Takes up a plan that was made anew. */
	plan({ items, ...settings }: Omit<RunPlan, 'isDry'>): void {
		this.run.settings = settings;
		this.entries = replanned(this.entries, items, this.mayFailAgain);
	}

	get settings(): RunSettings {
		return revivedSettings(this.run);
	}

	/** When the execution began, as far as was known when the run went to sleep. */
	get executionStartedAt(): number {
		return this.run.executionStartedAt ?? this.run.startedAt;
	}

	/** What the queue of creates knows, and a later turn needs. */
	get queue(): QueueState & Pick<StoredRun, 'limits'> {
		const { pausedUntil, breaker } = this.node;
		return { ...this.run, pausedUntil, breaker };
	}

	set queue({ quietSince, pausedUntil, breaker, limits }) {
		Object.assign(this.run, { quietSince, limits });
		Object.assign(this.node, { pausedUntil, breaker });
	}

	entriesOf(itemIndex: number): TaskEntry[] {
		return this.entries.filter((entry) => entry.itemIndex === itemIndex);
	}

	/** The ids of all tasks of this run, of earlier tries as well. */
	taskIds(): string[] {
		return this.entries.flatMap(taskIdsIn);
	}

	/** Whether the run has a task, or may have one. */
	get isBegun(): boolean {
		return this.entries.some((entry) => entry.state === 'sent' || taskIdsIn(entry).length > 0);
	}

	/** To be called before the request leaves: without an answer the service may have taken the task. */
	sending(entry: TaskEntry, costUsd: number | undefined): void {
		Object.assign(entry, { state: 'sent', costUsd });
		this.ordered++;
	}

	/** Whether the service has taken a task of this node, in an earlier round of a loop or an earlier execution as well. */
	get hasCreated(): boolean {
		return this.node.hasCreated === true || this.taskIds().length > 0;
	}

	/** To be called the moment the id is known. */
	created(entry: TaskEntry, { taskId, record, sent }: SentTask): void {
		this.node.hasCreated = true;
		Object.assign(entry, { state: 'created', taskId, record, sent, createdAt: clock.now() });
		delete entry.again;
		delete entry.refused;
		delete entry.task;
	}

	/** The item certainly has no task. */
	forget(entry: TaskEntry): void {
		entry.state = 'free';
		this.ordered--;
	}

	/** To be called before the run sleeps at the end of its turn. @param wakeAt milliseconds of the clock */
	fallAsleep(wakeAt: number): void {
		const minutes = Math.max(1, (clock.now() - this.begunAt) / MINUTE_MS);
		const twice = Math.ceil((WINDOW_FACTOR * this.ordered) / minutes);
		this.sleepUntil(wakeAt, Math.max(LEAST_WINDOW, twice));
		rememberState(this.context, this.run.turn, this.toStored(false));
	}

	/** To be called before a run sleeps so that n8n stores it before it orders. @param wakeAt milliseconds of the clock */
	sleepFirst(wakeAt: number): void {
		this.sleepUntil(wakeAt, this.run.window ?? LEAST_WINDOW);
		rememberState(this.context, this.run.turn, this.toStored(false));
	}

	private sleepUntil(wakeAt: number, window: number | undefined): void {
		const { startedAt: executionStartedAt } = stretchOf(this.context);
		const turn = this.run.turn + 1;
		Object.assign(this.run, { isAsleep: true, wakeAt, executionStartedAt, turn, window });
	}

	/** To be called when a run ends: n8n may run an older state of the execution later. */
	rememberEnd(): void {
		// n8n has no older state of an execution that it has never stored.
		if (!this.isLater && !stretchOf(this.context).isStored) return;
		const turn = this.run.turn + 1;
		const ended = { ...sleepingRun(this.run, this.entries), isAsleep: true, hasEnded: true, turn };
		rememberState(this.context, turn, { ...this.node, runs: { [this.runIndex]: ended } });
	}

	/** To be called when it is settled what the turns before may have ordered. */
	noteSettled(): void {
		this.run.before = [];
	}

	/** To be called when this turn has written a row. @param windows how many windows of orders it has begun */
	noteBegun(windows: number): void {
		this.run.begun = { execution: this.execution, turn: this.run.turn, windows };
	}
}
