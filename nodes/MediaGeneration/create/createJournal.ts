import { type IDataObject, type IExecuteFunctions, type ITaskData, UserError } from 'n8n-workflow';

import type { CreatePlan } from '../plan/planTypes';
import { NOT_KNOWN } from '../report/taskErrors';
import { pendingJson } from '../report/taskItems';
import type { CreatedTask } from '../service/client';
import { digest, readStored } from '../shared/json';
import { internalsOf, isStopOf, isSupplied, nodeContext } from '../n8n/internals';
import { ItemError } from '../shared/itemError';

/** A created task with the model and the input that were sent, as the output shows them. */
export type SentTask = CreatedTask & { sent: IDataObject };

/**
 * What this node has created in this execution. n8n stores the journal with the execution. So a second try, by *Retry
 * On Fail* or from the list of executions, takes up the tasks of the first try and pays for none of them again.
 *
 * Within an execution an entry belongs to a run of the node (a loop has many) and an item, whatever the expressions
 * of the item give this time. A retry from the list is another execution. There an entry belongs to the request (model
 * and input): if the prompt was changed meanwhile, the user means another task.
 */
export class CreateJournal {
	/** The creates of this run of the node, by the item, oldest first. */
	private readonly items: ItemCreates;

	private readonly execution: string;

	/** @throws UserError where another version of this package wrote the journal */
	constructor(context: IExecuteFunctions) {
		// Calls of a supplied tool at the same time may share a run, and n8n repeats such a call as another run.
		const store = isSupplied(context) ? {} : nodeContext(context);
		const stored = (store[KEY] ??= { version: VERSION, runs: {} });
		const { runs } = readStored<{ runs: Record<number, ItemCreates> }>(stored, VERSION);
		const present = Number(context.getWorkflowDataProxy(0).$runIndex ?? 0);
		this.execution = String(context.getExecutionId());
		// n8n does not go back to an earlier run.
		const earlier = Object.keys(runs).filter((run) => Number(run) < present);
		for (const run of earlier) delete runs[Number(run)];
		// Not a copy: n8n stores the changes with the execution.
		this.items = runs[present] ??= {};
	}

	/**
	 * What is known of the item's create: the task, or only that the create was sent. From then on the create belongs to
	 * this execution.
	 */
	find(item: CreatePlan): SentTask | 'sent' | undefined {
		const create = this.createOf(item);
		if (create === undefined || create.state === 'free') return undefined;
		create.execution = this.execution;
		return taskIn(create) ?? 'sent';
	}

	/** Adds the task that this execution has created for an item to the error of the item, which cannot be planned now. */
	withTask(error: ItemError, itemIndex: number): ItemError {
		const create = this.items[itemIndex]?.find(({ execution }) => execution === this.execution);
		if (create?.state === 'sent') return new ItemError(`${NOT_KNOWN}. ${error.message}`, error);
		const task = create && taskIn(create);
		return task ? ItemError.from(error, pendingJson(task.taskId, task.sent)) : error;
	}

	/** The ids of all tasks of this run, of earlier tries as well. */
	taskIds(): string[] {
		return this.all().flatMap(({ taskId, failed = [] }) =>
			taskId === undefined ? failed : [...failed, taskId],
		);
	}

	/** The ids of the tasks that failed at the service and cost nothing. */
	failedTaskIds(item?: CreatePlan): string[] {
		const creates = item ? [this.createOf(item)] : this.all();
		return creates.flatMap((create) => create?.failed ?? []);
	}

	/** The items of this run whose create was sent and has no known answer. */
	unanswered(): number[] {
		return Object.entries(this.items).flatMap(([item, creates]) =>
			creates.filter(({ state }) => state === 'sent').map(() => Number(item)),
		);
	}

	/** To be called before the request leaves: without an answer the service may have taken the task. */
	sending(item: CreatePlan): void {
		this.write(item, { state: 'sent' });
	}

	/** To be called the moment the id is known. */
	created(item: CreatePlan, { taskId, record, sent }: SentTask): void {
		this.write(item, { state: 'created', taskId, record, sent });
	}

	/** The item's task failed at the service and cost nothing: a second try may create another task. The id is kept. */
	failed(item: CreatePlan): void {
		const { taskId, failed = [] } = this.createOf(item) ?? {};
		if (taskId !== undefined) this.write(item, { state: 'free', failed: [...failed, taskId] });
	}

	/** The item certainly has no task: a second try may create the task. */
	forget(item: CreatePlan): void {
		this.write(item, { state: 'free' });
	}

	private write(item: CreatePlan, known: Pick<StoredCreate, 'state'> & Partial<StoredCreate>) {
		const before = this.createOf(item);
		const create: StoredCreate = {
			execution: this.execution,
			part: item.part,
			digest: requestDigest(item),
			...(before?.failed && { failed: before.failed }),
			...known,
		};
		const creates = (this.items[item.itemIndex] ??= []);
		if (before) creates[creates.indexOf(before)] = create;
		else creates.push(create);
	}

	private createOf(item: CreatePlan): StoredCreate | undefined {
		const creates = (this.items[item.itemIndex] ?? []).filter(({ part }) => part === item.part);
		const isSame = ({ digest }: StoredCreate) => digest === requestDigest(item);
		const isOwn = ({ execution }: StoredCreate) => execution === this.execution;
		return creates.find(isOwn) ?? creates.findLast(isSame);
	}

	private all(): StoredCreate[] {
		return Object.values(this.items).flat();
	}
}

const taskIn = ({ taskId, record = {}, sent = {} }: StoredCreate): SentTask | undefined =>
	taskId === undefined ? undefined : { taskId, record, sent };

const requestDigest = ({ model, input }: CreatePlan) => digest([model, input]);

/** The keys in the node's context, which n8n stores with the execution. */
const KEY = 'createdTasks';
const PAUSE = 'askedPause';

type Pause = [until: number, lengthMs: number];

/**
 * Stores a pause that the service asks for. The node's next try and its next round in a loop observe the pause. Its end
 * is a time of day, since another process may read it.
 *
 * @param lengthMs milliseconds
 */
export function notePause(context: IExecuteFunctions, lengthMs = 0): void {
	if (lengthMs <= pauseLeft(context)) return;
	nodeContext(context)[PAUSE] = [Date.now() + lengthMs, lengthMs] satisfies Pause;
}

/** @returns the rest of the pause, milliseconds; at most its whole length, even if the clock was set back */
export function pauseLeft(context: IExecuteFunctions): number {
	const [until, lengthMs] = (nodeContext(context)[PAUSE] ?? [0, 0]) as Pause;
	return Math.max(0, Math.min(until - Date.now(), lengthMs));
}

/** To be raised when the stored shape changes. */
const VERSION = 1;

type ItemCreates = Record<number, StoredCreate[]>;

/** The create of an item, as n8n stores it. */
interface StoredCreate extends IDataObject {
	/** The execution that sent the create, or took up its task. */
	execution: string;
	/** Which task of the item it is. */
	part: number;
	/** `requestDigest`, which tells apart the creates of other executions. */
	digest: string;
	/** `sent`: the answer is not known. `free`: the item certainly has no task that may be paid for. */
	state: 'sent' | 'created' | 'free';
	taskId?: string;
	record?: IDataObject;
	/** The model and the input, as the output shows them. */
	sent?: IDataObject;
	/** The tasks of this item that failed and cost nothing. */
	failed?: string[];
}

/** The key in the node's context that marks a refused retry: a retry of that retry is refused, too. */
const REFUSED = 'retriesKilledExecution';

/**
 * Refuses the retry of an execution that was stopped or killed after this node had begun. n8n stores what a node has
 * created when the execution ends or is suspended. Here nothing is stored, so the retry would create each task again,
 * and each task would be paid for twice. n8n before 2.41 does not tell which execution is retried.
 *
 * @throws UserError if the retried execution was stopped or killed in this node
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
	if (typeof retryOf !== 'string') return false;
	const { resultData, executionData, waitTill } =
		(await context.getExecutionDataById(retryOf)) ?? {};
	if (resultData === undefined) return false;
	const { runData, error } = resultData;
	const { name } = context.getNode();
	const { nodes = {} } = internalsOf(context).workflow ?? {};
	// A node that the workflow no longer has may be this node by its former name.
	const begun = Object.keys(runData).filter((node) => node === name || nodes[node] === undefined);
	const isBegun = begun.some((node) => runData[node]?.some(isRebuilt));
	// n8n rebuilds from its log which nodes had begun. Without a log there is no run data.
	if (Object.keys(runData).length === 0 || isBegun) return true;
	// If n8n had saved the progress, the data name the node that was next, and no error but that of a stop. n8n keeps what
	// a suspended execution has created.
	const [next] = executionData?.nodeExecutionStack ?? [];
	const isCut = error === undefined || (waitTill === undefined && isStopOf(retryOf, error));
	return isCut && next?.node.name === name;
}

/** Whether n8n added this run after the execution was killed. */
const isRebuilt = ({ executionStatus, data }: ITaskData): boolean =>
	executionStatus === 'crashed' ||
	data?.main?.[0]?.[0]?.json.isArtificialRecoveredEventItem === true;
