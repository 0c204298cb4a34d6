import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import type { CreatePlan } from '../plan/planTypes';
import { pendingJson } from '../report/taskItems';
import type { CreatedTask } from '../service/client';
import { digest, readStored } from '../shared/json';
import { isTool, nodeContext } from '../shared/n8nInternals';
import { ItemError } from '../shared/itemError';

/** A created task with the model and the input that were sent, as the output shows them. */
export type SentTask = CreatedTask & { sent: IDataObject };

/**
 * What this node has created in this execution. It is kept with the execution, so that a second try, by *Retry On
 * Fail* or from the list of executions, takes up the tasks of the first and pays for none of them again.
 *
 * Within one execution a run of the node (there are many in a loop) and an item are the task, whatever the
 * expressions of the item give this time. A retry from the list is another execution: there an entry belongs to the
 * request as it was planned, since a prompt that was changed meanwhile is meant as another task. How it is waited for
 * may be changed: it stays the same task.
 */
export class CreateJournal {
	/** The creates by the node's run (there are many in a loop), then by the item, oldest first. */
	private readonly runs: Record<string, Record<string, StoredCreate[]>>;

	private readonly run: string;

	private readonly execution: string;

	/** The calls of an agent's tool are not told apart by run and item: there the request tells them apart, too. */
	private readonly isTool: boolean;

	/** @throws UserError where another version of this package wrote the journal */
	constructor(context: IExecuteFunctions) {
		const stored = (nodeContext(context)[KEY] ??= { version: VERSION, runs: {} });
		// In place: what is changed in it is stored with the execution.
		this.runs = readStored<IDataObject>(stored, VERSION).runs as typeof this.runs;
		this.run = String(context.getWorkflowDataProxy(0).$runIndex ?? 0);
		this.execution = String(context.getExecutionId());
		this.isTool = isTool(context);
	}

	/** What is known of the item's create: the task, or only that it was sent. It belongs to this execution from then on. */
	find(item: CreatePlan): SentTask | 'sent' | undefined {
		const create = this.createOf(item);
		if (create === undefined || create.state === 'free') return undefined;
		create.execution = this.execution;
		return taskIn(create) ?? 'sent';
	}

	/** An item that cannot be planned this time names the task that this execution has created for it. */
	withTask(error: ItemError, itemIndex: number): ItemError {
		const creates = this.isTool ? [] : (this.items[itemIndex] ?? []);
		const create = creates.find(({ execution }) => execution === this.execution);
		const task = create && taskIn(create);
		return task ? ItemError.from(error, pendingJson(task.taskId, task.sent)) : error;
	}

	/** The ids of all tasks that this run of the node has created, in this try and in earlier ones. */
	taskIds(): string[] {
		return this.all().flatMap(({ taskId, failed = [] }) =>
			taskId === undefined ? failed : [...failed, taskId],
		);
	}

	/** The ids of those that failed at the service and cost nothing. */
	failedTaskIds(item?: CreatePlan): string[] {
		const creates = item ? [this.createOf(item)] : this.all();
		return creates.flatMap((create) => create?.failed ?? []);
	}

	/** The items of this run that were sent, and whose answer is not known. */
	unanswered(): number[] {
		return Object.entries(this.items).flatMap(([item, creates]) =>
			creates.filter(({ state }) => state === 'sent').map(() => Number(item)),
		);
	}

	/** To be written before the request leaves: if nothing more is heard of it, it may have been taken. */
	sending(item: CreatePlan): void {
		this.write(item, { state: 'sent' });
	}

	/** To be written the moment the id is known. */
	created(item: CreatePlan, { taskId, record, sent }: SentTask): void {
		this.write(item, { state: 'created', taskId, record, sent });
	}

	/** The item's task failed at the service and cost nothing: a second try may create another. Its id is kept. */
	failed(item: CreatePlan): void {
		const { taskId, failed = [] } = this.createOf(item) ?? {};
		if (taskId !== undefined) this.write(item, { state: 'free', failed: [...failed, taskId] });
	}

	/** The item certainly has no task: a second try may create it. */
	forget(item: CreatePlan): void {
		this.write(item, { state: 'free' });
	}

	/** Forgets this run, which came to its end: n8n does not try it again. */
	close(): void {
		delete this.runs[this.run];
	}

	private write(item: CreatePlan, known: Pick<StoredCreate, 'state'> & Partial<StoredCreate>) {
		const before = this.createOf(item);
		const create: StoredCreate = {
			execution: this.execution,
			digest: requestDigest(item),
			...(before?.failed && { failed: before.failed }),
			...known,
		};
		const creates = ((this.runs[this.run] ??= {})[item.itemIndex] ??= []);
		if (before) creates[creates.indexOf(before)] = create;
		else creates.push(create);
	}

	private createOf(item: CreatePlan): StoredCreate | undefined {
		const creates = this.items[item.itemIndex] ?? [];
		const isSame = ({ digest }: StoredCreate) => digest === requestDigest(item);
		const isOwn = (create: StoredCreate) =>
			create.execution === this.execution && (!this.isTool || isSame(create));
		return creates.find(isOwn) ?? creates.findLast(isSame);
	}

	private get items(): Record<string, StoredCreate[]> {
		return this.runs[this.run] ?? {};
	}

	private all(): StoredCreate[] {
		return Object.values(this.items).flat();
	}
}

const taskIn = ({ taskId, record = {}, sent = {} }: StoredCreate): SentTask | undefined =>
	taskId === undefined ? undefined : { taskId, record, sent };

/** Of what is sent. How the task is waited for may be changed for a retry: it stays the same task. */
const requestDigest = ({ model, input }: CreatePlan) => digest([model, input]);

/** The place in the node's context that n8n stores with the execution. */
const KEY = 'createdTasks';

/** The place of the pause that the service asks for. */
const PAUSE = 'askedPause';

type Pause = [until: number, lengthMs: number];

/**
 * Keeps a pause that the service asks for with the execution: the node's next try, by *Retry On Fail* or from the list
 * of executions, and its next round in a loop go on with it. By the time of day, since another process may.
 */
export function notePause(context: IExecuteFunctions, lengthMs = 0): void {
	if (lengthMs <= pauseLeft(context)) return;
	nodeContext(context)[PAUSE] = [Date.now() + lengthMs, lengthMs] satisfies Pause;
}

/**
 * @returns the milliseconds that are left of it: none more where the clock was set back, and none where what is stored is
 *   no pause. It saves a refusal and protects no money, so nobody is stopped for it.
 */
export function pauseLeft(context: IExecuteFunctions): number {
	const stored: unknown = nodeContext(context)[PAUSE];
	if (!isPause(stored)) return 0;
	const [until, lengthMs] = stored;
	return Math.max(0, Math.min(until - Date.now(), lengthMs));
}

const isPause = (stored: unknown): stored is Pause =>
	Array.isArray(stored) && stored.length === 2 && stored.every(Number.isFinite);

/** To be raised where another version of this package could not read what is stored. */
const VERSION = 1;

/** One create of an item, as n8n stores it. */
interface StoredCreate extends IDataObject {
	/** The execution that sent it or took it up. */
	execution: string;
	/** Of the request, to tell creates of other executions apart. */
	digest: string;
	/** `sent`: its answer is not known. `free`: the item certainly has no task that may be paid for. */
	state: 'sent' | 'created' | 'free';
	taskId?: string;
	record?: IDataObject;
	/** The model and the input, as the output shows them. */
	sent?: IDataObject;
	/** Tasks of this item that failed before, and cost nothing. */
	failed?: string[];
}
