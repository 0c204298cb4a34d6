import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { executionIdOf, internalsOf, isSupplied, nodeContext } from '../n8n/internals';
import { JOURNAL } from '../n8n/storedExecution';
import { reviveFiles } from '../plan/inputFile';
import type { RunPlan, RunSettings } from '../plan/planRun';
import type { TaskPlan } from '../plan/planTypes';
import { triesOf } from '../report/ifSomeFail';
import type { CreatedTask } from '../service/client';
import { clock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { readStored } from '../shared/json';
import {
	clockIsBehind,
	endedRun,
	type RowOf,
	setClock,
	sleepingRun,
	type Stored,
	type StoredRun,
	VERSION,
} from './storedJournal';
import {
	begunAnew,
	createNoneAgain,
	fail,
	lacksFile,
	placeOf,
	reopened,
	replanned,
	type StoredError,
	type TaskEntry,
	taskIdsIn,
} from './taskEntry';

/** The name of the function that gives the whole journal to the next try in the same process. */
const WHOLE = 'whole';

/** What is stored of a node, or what this process knows of it, as plain data. */
function wholeOf(kept: unknown): unknown {
	const { [WHOLE]: whole } = kept as { [WHOLE]?: () => unknown };
	return JSON.parse(JSON.stringify(typeof whole === 'function' ? whole() : kept));
}

/** A created task with the model and the input that were sent, as the output shows them. */
export type SentTask = CreatedTask & { sent: IDataObject };

/**
 * How a run of the node begins. `first`: nothing is known of it. `woken`: it was asleep. `killed`: it was asleep or awake
 * when its execution was killed or stopped, and another execution goes on with it (*Retry execution*). `retried`: it had
 * ended with an error, and another execution tries it again. `again`: this execution does so (*Retry On Fail*).
 */
export type Beginning = 'first' | 'woken' | 'killed' | 'retried' | 'again';

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

	/** The execution that wrote this before, if that was another one. */
	readonly earlier: string;

	/** Whether the run has slept. */
	readonly isLater: boolean;

	/** In the order of the items. */
	entries: TaskEntry[];

	/** Whether what has failed is tried again. */
	private mayFailAgain = true;

	private readonly run: StoredRun;
	private readonly node: Stored;

	/** Whether this is of a wake that left its turn to another one: what the other wake has done is not in it. */
	isAside: boolean;

	/** To be set when all items leave, and with them what nobody needs any more. */
	isEnded = false;

	/** @throws UserError if another version of this package wrote the journal */
	constructor(
		private readonly context: IExecuteFunctions,
		now = clock.now(),
	) {
		// Calls of a supplied tool at the same time may share a run, and n8n repeats such a call as another run.
		const store = isSupplied(context) ? {} : nodeContext(context);
		// *Task ID* may name this execution, from this workflow only.
		store.workflowId = context.getWorkflow().id;
		const present = internalsOf(context).runIndex ?? 0;
		const isNew = store[JOURNAL] === undefined;
		const stored = isNew
			? { version: VERSION, runs: {}, clockIsBehind: clockIsBehind() }
			: readStored<Stored>(wholeOf(store[JOURNAL]), VERSION);
		const known = stored.runs[present];
		setClock(stored, known);
		const execution = String(executionIdOf(context));
		this.node = stored;
		this.run = known ?? {
			execution,
			startedAt: now,
			isAsleep: false,
			tries: 0,
			sleeps: 0,
			rows: [],
			entries: [],
		};
		this.earlier = this.run.execution;
		this.isAside = this.run.isAside === true;
		delete this.run.isAside;
		this.entries = this.run.entries.map((entry) => this.revived(entry));
		this.isLater = this.run.isAsleep || (this.earlier === execution && this.run.sleeps > 0);
		this.beginning = this.begin(known, execution, now);
		// n8n stores what this says when it stores the execution. It does not go back to an earlier run.
		store[JOURNAL] = {
			toJSON: () => this.toStored(present, this.isEnded && !this.hasTriesLeft),
			// n8n may try once more, after a wake, what has had all its tries.
			[WHOLE]: () => this.toStored(present, false),
		};
	}

	private begin(known: StoredRun | undefined, execution: string, now: number): Beginning {
		if (known === undefined) return 'first';
		const isOther = known.execution !== execution;
		if (known.isAsleep && !isOther) return 'woken';
		known.tries = isOther ? 0 : known.tries + 1;
		// Another execution has a time limit of its own.
		if (isOther) known.startedAt = now;
		// A retry is a turn of its own: what it sends before n8n stores it is noted in the row of that turn.
		if (isOther) known.sleeps = Math.max(1, known.sleeps);
		if (isOther) {
			// Links perish, so what is not downloaded is read again.
			const hasLeft = ({ end, task, files, plan }: TaskEntry) =>
				end === 'result' && task !== undefined && !(plan?.output.download && files);
			this.entries = this.entries.map((entry) => (hasLeft(entry) ? begunAnew(entry) : entry));
		}
		// n8n counts its tries anew when it wakes a run. Without an end to them a task would be waited for for ever.
		this.mayFailAgain = known.tries < triesOf(this.context.getNode());
		if (this.mayFailAgain) this.entries = this.entries.map(reopened);
		if (known.isAsleep) return 'killed';
		return isOther ? 'retried' : 'again';
	}

	/** An entry as n8n has stored it, with its plan and its files. */
	private revived(stored: TaskEntry): TaskEntry {
		const entry = lacksFile(stored) ? begunAnew(stored) : stored;
		if (!entry.plan) return entry;
		entry.plan = { ...this.run.common, ...entry.plan } as TaskPlan;
		const { plan, state } = entry;
		if (plan.kind !== 'create' || plan.input === undefined) return entry;
		try {
			plan.input = reviveFiles(this.context, plan);
		} catch (error) {
			if (state === 'free') fail(entry, ItemError.from(error));
			// The task goes on without its file. It cannot be created again.
			else createNoneAgain(entry);
		}
		return entry;
	}

	private toStored(present: number, isEnded: boolean): Stored {
		const { entries, isAside } = this;
		const run = { ...this.run, ...(isAside && { isAside }) };
		const stored = isEnded ? endedRun(run, entries) : sleepingRun(run, entries);
		return { ...this.node, clockIsBehind: clockIsBehind(), runs: { [present]: stored } };
	}

	/** To be called when it is settled what this execution may order: a try that fails before leaves all as it was. */
	takeUp(): void {
		Object.assign(this.run, { execution: String(executionIdOf(this.context)), isAsleep: false });
		this.isAside = false;
	}

	/** Whether n8n tries this run again if it stops (*Retry On Fail*). */
	get hasTriesLeft(): boolean {
		return this.run.tries + 1 < triesOf(this.context.getNode());
	}

	/** Why this execution must not order, if it must not. */
	get refusal(): StoredError | undefined {
		return this.node.refusal;
	}

	set refusal(refusal: StoredError | undefined) {
		this.node.refusal = refusal;
	}

	/** @param places orders that a killed turn may have sent @param execution the execution whose turn it was */
	putInDoubt(places: readonly string[], execution: string): void {
		const inDoubt = new Set(places);
		for (const entry of this.entries) {
			if (entry.state !== 'free' || !inDoubt.has(placeOf(entry))) continue;
			Object.assign(entry, { state: 'sent', doubtIn: execution });
		}
	}

	/** Takes up a plan that was made anew. */
	plan({ items, ...settings }: Omit<RunPlan, 'isDry'>): void {
		this.run.settings = settings;
		this.entries = replanned(this.entries, items, this.mayFailAgain);
		// Whoever orders in place of this execution creates failed tasks again, too.
		if (this.refusal) this.entries.forEach(createNoneAgain);
	}

	get settings(): RunSettings {
		const { settings } = this.run;
		// JSON has no Infinity.
		const { limitAt, endsAt, suspendAfterMs } = settings ?? {};
		return {
			maxInFlight: 1,
			ifSomeFail: 'keep',
			warnings: [],
			...settings,
			limitAt: limitAt ?? Infinity,
			endsAt: endsAt ?? Infinity,
			suspendAfterMs: suspendAfterMs ?? Infinity,
		};
	}

	get startedAt(): number {
		return this.run.startedAt;
	}

	get sleeps(): number {
		return this.run.sleeps;
	}

	/** What was known when the run went to sleep last. */
	get lastSleep(): Pick<StoredRun, 'wakeAt' | 'idleMs'> {
		return this.run;
	}

	/** What the queue of creates knows, and a later turn needs. */
	get queue(): Pick<StoredRun, 'quietSince' | 'pausedUntil' | 'inVain' | 'limits'> {
		return { ...this.run, pausedUntil: this.node.pausedUntil };
	}

	set queue({ quietSince, pausedUntil, inVain, limits }) {
		Object.assign(this.run, { quietSince, inVain, limits });
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
	sending(entry: TaskEntry): void {
		entry.state = 'sent';
	}

	/** To be called the moment the id is known. */
	created(entry: TaskEntry, { taskId, record, sent }: SentTask): void {
		Object.assign(entry, { state: 'created', taskId, record, sent, createdAt: clock.now() });
		delete entry.again;
		delete entry.task;
	}

	/** The item certainly has no task. */
	forget(entry: TaskEntry): void {
		entry.state = 'free';
	}

	/** @param wakeAt milliseconds of the clock @param idleMs as `StoredRun` has it */
	fallAsleep(wakeAt: number, idleMs?: number): void {
		const { run } = this;
		Object.assign(run, { isAsleep: true, wakeAt, idleMs, sleeps: run.sleeps + 1 });
	}

	/** The rows that the turns of this run have left in n8n's store. */
	get rows(): RowOf[] {
		return this.run.rows;
	}

	set rows(rows: RowOf[]) {
		this.run.rows = rows;
	}
}
