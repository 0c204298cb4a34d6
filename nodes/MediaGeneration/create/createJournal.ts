import { type IDataObject, type IExecuteFunctions, type ITaskData, UserError } from 'n8n-workflow';

import type { CreatePlan } from '../plan/planTypes';
import { pendingJson } from '../report/taskItems';
import type { CreatedTask } from '../service/client';
import { digest, readStored } from '../shared/json';
import { internalsOf, isTool, nodeContext } from '../shared/n8nInternals';
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

/** @returns the milliseconds that are left of it, and none more where the clock was set back */
export function pauseLeft(context: IExecuteFunctions): number {
	const [until, lengthMs] = (nodeContext(context)[PAUSE] ?? [0, 0]) as Pause;
	return Math.max(0, Math.min(until - Date.now(), lengthMs));
}

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

/** The place in the node's context that says that this was refused before: a retry of the retry is no better. */
const REFUSED = 'retriesKilledExecution';

/**
 * Refuses to run where *Retry execution* repeats an execution that was stopped or killed after this node had begun. n8n
 * stores what a node has created when the execution ends or is suspended. Here nothing is stored, so each of the tasks
 * would be created and paid for again. n8n before 2.41 does not tell which execution is retried.
 *
 * @throws UserError there
 */
export async function refuseKilledRetry(context: IExecuteFunctions): Promise<void> {
	if (context.getMode() !== 'retry') return;
	const stored = context.getContext('node');
	if (stored[REFUSED] !== true && !(await wasKilledHere(context))) return;
	stored[REFUSED] = true;
	throw new UserError(
		'The execution that is retried was stopped or killed, and n8n has not kept what it created',
		{
			description:
				'No task was created now: a retry would order each task again. Take the task ids from n8n\'s log ("created task"), and fetch the results with Task → Wait. To order again all the same, start the workflow anew.',
		},
	);
}

async function wasKilledHere(context: IExecuteFunctions): Promise<boolean> {
	const retryOf = internalsOf(context).additionalData?.hooks?.retryOf;
	if (typeof retryOf !== 'string' || typeof context.getExecutionDataById !== 'function')
		return false;
	const { resultData, executionData } = (await context.getExecutionDataById(retryOf)) ?? {};
	if (resultData === undefined) return false;
	const { runData, error } = resultData;
	const { name } = context.getNode();
	const { nodes = {} } = internalsOf(context).workflow ?? {};
	// A node that the workflow does not have any more may be this one by its former name.
	const begun = Object.keys(runData).filter((node) => node === name || nodes[node] === undefined);
	const isBegun = begun.some((node) => runData[node]?.some(isRebuilt));
	// n8n rebuilds from its log which nodes had begun. Where it has no log, nothing is there.
	if (Object.keys(runData).length === 0 || isBegun) return true;
	// Where n8n had saved the progress, it names the node that was next, and no error: nothing tells of an end.
	const [next] = executionData?.nodeExecutionStack ?? [];
	return error === undefined && next?.node.name === name;
}

/** Whether n8n has put this in after the execution was killed. */
const isRebuilt = ({ executionStatus, data }: ITaskData): boolean =>
	executionStatus === 'crashed' ||
	data?.main?.[0]?.[0]?.json.isArtificialRecoveredEventItem === true;
