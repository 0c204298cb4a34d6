import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { executionIdOf, internalsOf, isSupplied, nodeContext } from '../n8n/internals';
import { readItemIdentity } from '../plan/itemIdentity';
import type { TaskPlan } from '../plan/planTypes';
import type { EarlierPart } from '../plan/takenUp';
import { triesOf } from '../report/ifSomeFail';
import {
	type Beginning,
	entriesIn,
	newRun,
	runsIn,
	type SentTask,
	type SleepRule,
	type StoredRun,
} from './storedRun';
import { isToCreate, reopen, type TaskEntry, taskIdsIn } from './taskEntry';

/** Where a task stands among the tasks of a run. */
type Place = Pick<TaskPlan, 'itemIndex' | 'part'>;

/** The name of an entry in `StoredRun.announced`. */
export const keyOf = ({ itemIndex, part }: Place) => `${itemIndex}.${part}`;

/**
 * What this run of the node has sent, created, read and downloaded: the only thing that is stored of it. n8n stores the
 * journal with the execution, when the execution sleeps and when it ends. So a run that is woken, tried again by
 * *Retry On Fail*, or retried from the list of executions takes up what it finds here, and pays for nothing twice.
 *
 * An entry belongs to a run of the node (a loop has many), an input item, and a part of the item. An item is recognised
 * by its parameters as they are written, and by its input: the values of expressions may differ each time.
 */
export class Journal {
	readonly beginning: Beginning;

	/**
	 * Whether n8n has stored the run as it slept: only what was announced then may be created in this turn, and in the tries
	 * of this turn.
	 */
	isLater = false;

	private readonly run: StoredRun;

	/** The execution that wrote this before, if that was another one. */
	earlier = '';

	/** By the index of the input item. */
	private readonly identities: string[] = [];

	/** @throws UserError if another version of this package wrote the journal */
	constructor(
		private readonly context: IExecuteFunctions,
		now = Date.now(),
	) {
		// Calls of a supplied tool at the same time may share a run, and n8n repeats such a call as another run.
		const store = isSupplied(context) ? {} : nodeContext(context);
		const runs = runsIn(store);
		// *Task ID* may name this execution, from this workflow only.
		store.workflowId = context.getWorkflow().id;
		const present = internalsOf(context).runIndex ?? 0;
		// n8n does not go back to an earlier run.
		const earlier = Object.keys(runs).filter((run) => Number(run) < present);
		for (const run of earlier) delete runs[Number(run)];
		const execution = String(executionIdOf(context));
		const known = runs[present];
		// Not a copy: n8n stores the changes with the execution.
		this.run = runs[present] ??= newRun(execution, now);
		this.beginning = this.begin(known, execution, now);
	}

	private begin(known: StoredRun | undefined, execution: string, now: number): Beginning {
		if (known === undefined) return 'first';
		const { execution: earlier, isAsleep } = known;
		this.earlier = earlier;
		const isOther = earlier !== execution;
		if (isOther) {
			// Another execution has a time limit of its own.
			known.startedAt = now;
			delete known.sleepRule.limitAt;
		}
		this.isLater = isAsleep || (!isOther && known.sleeps > 0);
		if (isAsleep && !isOther) return 'woken';
		known.tries = isOther ? 0 : known.tries + 1;
		if (isAsleep) return 'killed';
		// n8n counts its tries anew when it wakes a run. Without an end to them a task would be waited for for ever.
		if (known.tries < triesOf(this.context.getNode()))
			for (const entry of this.entries()) reopen(entry);
		return isOther ? 'retried' : 'again';
	}

	/** To be called when it is settled what this execution may create: a try that fails before leaves the run as it was. */
	takeUp(): void {
		Object.assign(this.run, { execution: String(executionIdOf(this.context)), isAsleep: false });
	}

	/** How this turn has ended elsewhere, by what is stored of the node now; undefined if the stored turn is older. */
	endOfTurn(kept: IDataObject): 'asleep' | 'ended' | undefined {
		const run = runsIn(kept)[internalsOf(this.context).runIndex ?? 0];
		if (run === undefined || !run.isAsleep) return 'ended';
		return run.sleeps > this.sleeps ? 'asleep' : undefined;
	}

	/** Whether n8n tries this run again if it stops (*Retry On Fail*). */
	get hasTriesLeft(): boolean {
		return this.run.tries + 1 < triesOf(this.context.getNode());
	}

	/**
	 * Goes on after a killed turn, and creates nothing before the run is stored.
	 *
	 * @param isInDoubt whether a turn had begun: what it may have sent is in doubt for good
	 */
	takeOver(isInDoubt: boolean): void {
		const { announced, items } = this.run;
		this.run.announced = [];
		if (!isInDoubt) return;
		for (const key of announced) {
			const [itemIndex = 0, part = 0] = key.split('.').map(Number);
			const entry = items[itemIndex]?.parts[part];
			if (entry?.state === 'free') Object.assign(entry, { state: 'sent', doubtIn: this.earlier });
		}
	}

	get startedAt(): number {
		return this.run.startedAt;
	}

	get sleepRule(): SleepRule {
		return { limitAt: Infinity, ...this.run.sleepRule };
	}

	get sleeps(): number {
		return this.run.sleeps;
	}

	get createdInTurn(): number {
		return this.run.createdInTurn;
	}

	/** Since when turns create nothing, although they could; milliseconds since 1970. */
	get quietSince(): number | undefined {
		return this.run.quietSince;
	}

	/** Ends a turn. @param isQuiet whether it created nothing, although it could. @param since its beginning, milliseconds since 1970 */
	noteTurn(isQuiet: boolean, since: number): void {
		this.run.quietSince = isQuiet ? (this.run.quietSince ?? since) : undefined;
	}

	/** What was learnt of the account's limits. */
	get limits(): IDataObject | undefined {
		return this.run.limits;
	}

	set limits(limits: IDataObject | undefined) {
		this.run.limits = limits;
	}

	/** The entries of an item, if it was planned before. */
	entriesOf(itemIndex: number): TaskEntry[] {
		const known = this.run.items[itemIndex];
		return known ? entriesIn(known) : [];
	}

	/** What is known of the tasks of an item; nothing if the item was not planned before, or the user has changed it. */
	partsOf(itemIndex: number): EarlierPart[] {
		const known = this.run.items[itemIndex];
		if (known?.identity !== this.identityOf(itemIndex)) return [];
		return Array.from(known.parts, (entry) => ({
			isBegun: Boolean(entry && !isToCreate(entry)),
			foreignId: entry?.sent === undefined ? entry?.taskId : undefined,
		}));
	}

	private identityOf(itemIndex: number): string {
		return (this.identities[itemIndex] ??= readItemIdentity(this.context, itemIndex));
	}

	/** The entry of a task, a new one if the item is new or the user has changed it. */
	entryOf({ itemIndex, part }: Place): TaskEntry {
		let known = this.run.items[itemIndex];
		if (known?.identity !== this.identityOf(itemIndex)) {
			const lost = this.entriesOf(itemIndex).flatMap(taskIdsIn);
			this.run.abandoned.push(...lost);
			known = { identity: this.identityOf(itemIndex), parts: [] };
			this.run.items[itemIndex] = known;
		}
		return (known.parts[part] ??= { state: 'free' });
	}

	entries(): TaskEntry[] {
		return Object.values(this.run.items).flatMap(entriesIn);
	}

	/** The tasks of items that the user has changed since. */
	get abandoned(): readonly string[] {
		return this.run.abandoned;
	}

	/** The ids of all tasks of this run, of earlier tries as well. */
	taskIds(): string[] {
		return [...this.run.abandoned, ...this.entries().flatMap(taskIdsIn)];
	}

	/** Whether the run has a task, or may have one. */
	get isBegun(): boolean {
		return this.taskIds().length > 0 || this.unanswered().length > 0;
	}

	/** The ids of the tasks that this run has created. */
	ownTaskIds(): string[] {
		return this.entries().flatMap((entry) =>
			entry.sent ? taskIdsIn(entry) : (entry.failed ?? []),
		);
	}

	/** The items of this run whose create was sent and has no known answer. */
	unanswered(): number[] {
		return Object.entries(this.run.items).flatMap(([item, { parts }]) =>
			parts.filter((entry) => entry?.state === 'sent').map(() => Number(item)),
		);
	}

	/** To be called before the request leaves: without an answer the service may have taken the task. */
	sending(place: Place): void {
		this.entryOf(place).state = 'sent';
	}

	/** To be called the moment the id is known. @param now milliseconds since 1970 */
	created(place: Place, { taskId, record, sent }: SentTask, now = Date.now()): void {
		const entry = this.entryOf(place);
		Object.assign(entry, { state: 'created', taskId, record, sent, createdAt: now });
		delete entry.again;
		delete entry.task;
		this.run.createdInTurn++;
	}

	/** The item certainly has no task. */
	forget(place: Place): void {
		this.entryOf(place).state = 'free';
	}

	/**
	 * Goes to sleep. What is stored then names the entries that the next turn may create: if the process is killed in
	 * that turn, these and no others are in doubt.
	 */
	fallAsleep(next: readonly Place[], { intervalMs, limitAt }: SleepRule): void {
		this.run.sleepRule = { intervalMs, ...(limitAt < Infinity && { limitAt }) };
		this.run.isAsleep = true;
		this.run.sleeps++;
		this.run.announced = next.map(keyOf);
	}

	/** Begins a turn. @returns the entries that it may create; undefined if it may create all */
	beginTurn(): Set<string> | undefined {
		this.run.createdInTurn = 0;
		return this.isLater ? new Set(this.run.announced) : undefined;
	}
}
