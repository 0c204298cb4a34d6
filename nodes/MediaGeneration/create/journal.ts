import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { executionIdOf, internalsOf, isSupplied, nodeContext, retriedBy } from '../n8n/internals';
import { JOURNAL } from '../n8n/storedExecution';
import { stretchOf } from '../n8n/stretch';
import type { RunPlan, RunSettings } from '../plan/planRun';
import { triesOf } from '../report/ifSomeFail';
import type { CreatedTask } from '../service/client';
import { clock } from '../shared/clock';
import { readStored } from '../shared/json';
import { type Beginning, beginningOf, executionsBefore } from './executionsBefore';
import { replanned } from './replanned';
import {
	endedRun,
	newRun,
	revivedEntries,
	revivedSettings,
	sleepingRun,
	type Stored,
	type StoredRun,
	type TurnBefore,
	type TurnId,
	VERSION,
} from './storedJournal';
import { mayOrder, readAgain, reopened, type TaskEntry, taskIdsIn } from './taskEntry';

/** The name of the function that gives the whole journal to the next try in the same process. */
const WHOLE = 'whole';

/**
 * What is stored of a node, or what this process knows of it.
 *
 * @throws UserError if another version of this package wrote it
 */
function storedIn({ [JOURNAL]: kept }: IDataObject): Stored {
	if (kept === undefined) return { version: VERSION, runs: {}, executions: [] };
	const { [WHOLE]: whole } = kept as { [WHOLE]?: () => unknown };
	const present = typeof whole === 'function' ? whole() : kept;
	return readStored<Stored>(JSON.parse(JSON.stringify(present)), VERSION);
}

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

	/** Whether what has failed is tried again. */
	private mayFailAgain = true;

	private readonly run: StoredRun;
	private readonly node: Stored;
	private readonly execution: string;

	/** How many orders this turn has sent that the service has certainly not refused. */
	private ordered = 0;

	/** To be set when all items leave, and with them what nobody needs any more. */
	isEnded = false;

	/** To be set if the run is refused because nothing is known of what it has ordered before. */
	isLost = false;

	/** @throws UserError if another version of this package wrote the journal */
	constructor(
		private readonly context: IExecuteFunctions,
		now = clock.now(),
	) {
		// Calls of a supplied tool at the same time may share a run, and n8n repeats such a call as another run.
		const store = isSupplied(context) ? {} : nodeContext(context);
		// *Task ID* may name this execution, from this workflow only.
		store.workflowId = context.getWorkflow().id;
		const stored = storedIn(store);
		const present = internalsOf(context).runIndex ?? 0;
		const known = stored.runs[present];
		const execution = String(executionIdOf(context));
		const earlier = executionsBefore(context, execution);
		this.execution = execution;
		this.node = { ...stored, executions: [...earlier, execution] };
		this.beginning = beginningOf(known, execution);
		this.run = known ?? newRun(execution, stretchOf(context).isStored, now);
		const { isAsleep, wakeAt } = this.run;
		this.isLater = isAsleep || (this.run.execution === execution && wakeAt !== undefined);
		this.entries = revivedEntries(context, this.run);
		this.begin(earlier, now);
		// n8n stores what this says when it stores the execution. It does not go back to an earlier run.
		store[JOURNAL] = {
			executions: this.node.executions,
			toJSON: () => this.toStored(present, this.isEnded && !this.hasTriesLeft),
			// n8n may try once more, after a wake, what has had all its tries.
			[WHOLE]: () => this.toStored(present, false),
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

	/** An execution has tries of its own, a time limit of its own, and turns of its own, which have notes. */
	private beginInAnotherExecution(now: number): void {
		const { run } = this;
		Object.assign(run, { tries: 0, startedAt: now, turn: Math.max(1, run.turn) });
		// A retry that n8n has killed before it stored anything has left the state of the execution that it retried.
		const retried = retriedBy(this.context) ?? run.execution;
		this.goOnFrom([...new Set([run.execution, retried])], run.turn);
		this.entries = this.entries.map(readAgain);
	}

	/** @param executions each one was retried by the next one, and the last one by this one */
	private goOnFrom(executions: readonly string[], turn: number): void {
		this.run.before.push(
			...executions.map((execution, index) => ({
				execution,
				turn,
				claimant: executions[index + 1] ?? this.execution,
			})),
		);
	}

	private toStored(present: number, isEnded: boolean): Stored {
		const { entries, rows, before } = this;
		const run = { ...this.run, rows, before };
		const stored = isEnded ? endedRun(run, entries) : sleepingRun(run, entries);
		return { ...this.node, runs: this.isLost ? {} : { [present]: stored } };
	}

	/** To be called when the run goes on in this execution: a try that fails before leaves all as it was. */
	takeUp(): void {
		Object.assign(this.run, { execution: this.execution, isAsleep: false });
	}

	/** Whether n8n tries this run again if it stops (*Retry On Fail*). */
	get hasTriesLeft(): boolean {
		return this.run.tries + 1 < triesOf(this.context.getNode());
	}

	/** The turns that this run goes on from. When it has ordered something, nobody else goes on from them. */
	get before(): TurnBefore[] {
		return this.hasOrdered ? [] : this.run.before;
	}

	/** Whether this turn has ordered something, or may have. */
	get hasOrdered(): boolean {
		return this.ordered > 0;
	}

	/** Whether something may be ordered, now or when a task has failed. */
	get mayOrder(): boolean {
		const { entries, hasTriesLeft } = this;
		return entries.some(
			(entry) => mayOrder(entry) || (hasTriesLeft && entry.plan?.kind === 'create'),
		);
	}

	/** Leaves the turn to another wake, which has begun it. */
	standAside(turn: number, wakeAt: number): void {
		this.run.before.push({ execution: this.execution, turn, hasBegun: true });
		this.fallAsleep(wakeAt);
	}

	/** Takes up a plan that was made anew. */
	plan({ items, ...settings }: Omit<RunPlan, 'isDry'>): void {
		this.run.settings = settings;
		this.entries = replanned(this.entries, items, this.mayFailAgain);
	}

	get settings(): RunSettings {
		return revivedSettings(this.run);
	}

	get startedAt(): number {
		return this.run.startedAt;
	}

	/** When the execution began, as far as was known when the run went to sleep. */
	get executionStartedAt(): number {
		return this.run.executionStartedAt ?? this.run.startedAt;
	}

	get turn(): number {
		return this.run.turn;
	}

	/** What was known when the run went to sleep last. */
	get lastSleep(): Pick<StoredRun, 'wakeAt' | 'idleMs'> {
		return this.run;
	}

	/** What the queue of creates knows, and a later turn needs. */
	get queue(): Pick<StoredRun, 'quietSince' | 'pausedUntil' | 'breaker' | 'limits'> {
		return { ...this.run, pausedUntil: this.node.pausedUntil };
	}

	set queue({ quietSince, pausedUntil, breaker, limits }) {
		Object.assign(this.run, { quietSince, breaker, limits });
		this.node.pausedUntil = pausedUntil;
	}

	/** The entries of an item. */
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

	/** The ids of the tasks that this run has created. */
	ownTaskIds(): string[] {
		return this.entries.flatMap((entry) => (entry.sent ? taskIdsIn(entry) : (entry.failed ?? [])));
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

	/** @param wakeAt milliseconds of the clock @param idleMs as `StoredRun` has it */
	fallAsleep(wakeAt: number, idleMs?: number): void {
		const { run } = this;
		const { startedAt: executionStartedAt } = stretchOf(this.context);
		Object.assign(run, { isAsleep: true, wakeAt, idleMs, executionStartedAt, turn: run.turn + 1 });
	}

	/**
	 * The turns whose rows n8n needs no more at the end. As long as this run has ordered nothing, another retry may need the
	 * notes of the turns before.
	 */
	get rows(): TurnId[] {
		const { rows, before } = this.run;
		const over = before.map(({ execution, turn }): TurnId => [execution, turn]);
		return this.hasOrdered ? [...rows, ...over] : rows;
	}

	/** To be called when this turn has written its row. */
	noteRow(): void {
		this.run.rows.push([this.execution, this.turn]);
	}

	/** @returns the rows but for that of this turn: n8n has stored what the turns before have done */
	dropEarlierRows(): TurnId[] {
		const { run, execution } = this;
		const isPresent = ([of, turn]: TurnId) => of === execution && turn === run.turn;
		const earlier = run.rows.filter((row) => !isPresent(row));
		run.rows = run.rows.filter(isPresent);
		return earlier;
	}
}
