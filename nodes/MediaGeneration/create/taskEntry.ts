import type { IBinaryData, IDataObject } from 'n8n-workflow';

import type { Deliveries } from '../callback/delivery';
import { isFree } from '../n8n/storedExecution';
import { echo } from '../plan/inputFile';
import { type CreatePlan, isAwaited, referenceOf, type TaskPlan } from '../plan/planTypes';
import { MAY_BE_BILLED, NOT_KNOWN } from '../report/taskErrors';
import { pendingJson } from '../report/taskItems';
import { hasEnded, type TaskRecord } from '../service/taskRecord';
import { ItemError, type StoredError, storedError } from '../shared/itemError';
import { isCutDataUri } from '../shared/media';
import type { Refusal } from './circuitBreaker';

/** When a failed task is created again (option *Retry Failed Tasks*), and the error if that comes to nothing. */
export interface OrderAgain {
	at: number;
	/** When it is too late to order. */
	until: number;
	/** When the time of the next task is up. */
	deadline: number;
	failure: StoredError;
}

/**
 * All that is known of one task of a run. An entry is told by its position: the item, and the task within the item. All times
 * are milliseconds of the clock.
 */
export interface TaskEntry {
	/** The index of the input item, and of the task among the tasks of that item. */
	readonly itemIndex: number;
	readonly taskIndex: number;
	/** What the run does for the task; undefined if the parameters of the item are refused. */
	plan: TaskPlan | undefined;
	/** `free`: there is no task. `sent`: an order was sent, and its answer is not known. `created`: there is a task. */
	state: 'free' | 'sent' | 'created';
	taskId?: string | undefined;
	/** The execution that was killed or stopped in a turn that may have created the task. */
	doubtIn?: string | undefined;
	/** The first refusal of the order, if the order is to be sent again. */
	refused?: Refusal | undefined;
	/** The answer to the order, and the model and the input that were sent. */
	record?: IDataObject | undefined;
	sent?: IDataObject | undefined;
	/** The estimate for the task that was ordered, or may have been. */
	costUsd?: number | undefined;
	createdAt?: number | undefined;
	/** When the task's time is up; undefined before the task's time has begun. */
	until?: number | undefined;
	/** The tasks of this entry that failed and cost nothing, oldest first. */
	failed?: string[] | undefined;
	again?: OrderAgain | undefined;
	/** The last record that was read. */
	task?: TaskRecord | undefined;
	/** When the task was read last, and when it is to be read next. */
	readAt?: number | undefined;
	dueAt?: number | undefined;
	/** Why the last read failed, and since when reads fail. */
	trouble?: StoredError | undefined;
	troubleAt?: number | undefined;
	/** When the task was first read as a success without a usable link. */
	linklessAt?: number | undefined;
	/**
	 * How long the service has said in a row that it does not know the task, or by an error code why its record has no state;
	 * milliseconds.
	 */
	denied?: { isRefusal: boolean; ms: number } | undefined;
	/** Why the last download failed, and when to try it again. */
	noFile?: string | undefined;
	downloadAt?: number | undefined;
	/** When its files were tried first, milliseconds of the clock. */
	triedSince?: number | undefined;
	files?: IBinaryData[] | undefined;
	/** What the trigger answers that the result goes to. */
	deliveries?: Deliveries | undefined;
	/** Fields of the output that the record does not have. */
	fields?: IDataObject | undefined;
	/** How the entry ended, if it has ended. An item that left before its task ended has a result, too. */
	end?: 'result' | 'error' | undefined;
	error?: StoredError | undefined;
}

/** The name of a position among the positions of a run. */
export const positionOf = ({
	itemIndex,
	taskIndex,
}: Pick<TaskEntry, 'itemIndex' | 'taskIndex'>): string => `${itemIndex}.${taskIndex}`;

/** The ids of all tasks of an entry, oldest first. */
export const taskIdsIn = ({ taskId, failed = [] }: TaskEntry): string[] =>
	taskId === undefined ? failed : [...failed, taskId];

/**
 * An entry for the next try: one that failed begins anew, takes up its task, or creates a task if the task has failed. The
 * service charged for some failed tasks, so it may charge for the next one, too: these entries stay as they are.
 */
export function reopened(entry: TaskEntry): TaskEntry {
	if (entry.end !== 'error' || isCharged(entry.task)) return entry;
	if (entry.task?.state === 'FAILURE') freeAfterFailure(entry);
	return begunAnew(entry);
}

/** An entry whose task is to be read again: links perish. A task that the service does not know gets no more time. */
export function begunAnew(entry: TaskEntry): TaskEntry {
	const { itemIndex, taskIndex, plan, state, taskId, doubtIn, record, sent } = entry;
	const { costUsd, createdAt, failed, files, fields, denied } = entry;
	const known = { taskId, doubtIn, record, sent, costUsd, createdAt, failed, files, fields };
	return { itemIndex, taskIndex, plan, state, ...known, denied };
}

/** Whether n8n has stored a result without its file, which was a data URI, and was not downloaded. */
export const lacksFile = ({ end, task, files }: TaskEntry): boolean =>
	end === 'result' && task?.state === 'SUCCESS' && !files && task.resultUrls.some(isCutDataUri);

/** An entry for another execution: links perish, so a result that is not downloaded is read once more. */
export function readAgain(entry: TaskEntry): TaskEntry {
	const { end, task, files, plan } = entry;
	const hasFiles = plan?.output.download && files !== undefined;
	return end === 'result' && task !== undefined && !hasFiles ? begunAnew(entry) : entry;
}

/** Whether the service says that it charged for a failed task. */
export const isCharged = (task: TaskRecord | undefined) =>
	task?.state === 'FAILURE' && !isFree(task);

/** The task has failed at the service, and cost nothing: another task may be created. Its id is kept. */
export function freeAfterFailure(entry: TaskEntry): void {
	const { taskId, failed = [] } = entry;
	if (taskId !== undefined) entry.failed = [...failed, taskId];
	const read = { task: undefined, until: undefined, readAt: undefined, dueAt: undefined };
	const troubles = { trouble: undefined, troubleAt: undefined };
	Object.assign(entry, { state: 'free', taskId: undefined, ...read, ...troubles });
}

/** Ends an entry with an error. */
export function fail(entry: TaskEntry, error: ItemError): void {
	entry.error = storedError(error);
	entry.end = 'error';
}

/** Whether the entry has no task yet, and may get a task. */
export const isToOrder = ({ plan, state, end }: TaskEntry): boolean =>
	plan?.kind === 'create' && state === 'free' && end === undefined;

/**
 * What is to be ordered, in the order in which the windows of a turn take it: what the service has refused comes last.
 *
 * @param entries as they were when the turn began: a retry of a killed turn finds the same windows
 */
export function toOrderIn(entries: readonly TaskEntry[]): TaskEntry[] {
	const left = entries.filter(isToOrder);
	return [...left.filter(({ refused }) => !refused), ...left.filter(({ refused }) => refused)];
}

/** Whether the run has a task of this entry, or may have one: it is never ordered again, whatever the parameters say. */
export const isOrdered = ({ plan, state }: TaskEntry): boolean =>
	state === 'sent' || (state === 'created' && plan?.kind !== 'read');

/** Whether the entry has a task that holds a place at the account until it has ended. */
export const holdsPlace = ({ plan, taskId, task, end }: TaskEntry): boolean =>
	plan?.kind === 'create' && taskId !== undefined && end === undefined && !hasEnded(task);

/**
 * Whether something may still be ordered for the entry: now, or when its task has failed (option *Retry Failed Tasks*).
 */
export function mayOrder(entry: TaskEntry): boolean {
	const { plan, state, end, failed = [] } = entry;
	const mayFail = plan?.kind === 'create' && isAwaited(plan) && failed.length < plan.retryFailed;
	return isToOrder(entry) || (mayFail && state === 'created' && end === undefined);
}

/** The error of an item whose order may have been sent. It is never sent again: it may be paid for. */
export function inDoubt({ itemIndex }: CreatePlan, execution: string | undefined): ItemError {
	if (execution === undefined) {
		return new ItemError(`${NOT_KNOWN}. Its answer was lost in an earlier try`, {
			description: MAY_BE_BILLED,
		});
	}
	return new ItemError(
		`${NOT_KNOWN}. Its execution was killed or stopped in a turn that may have sent it`,
		{
			description: `Look in n8n's log for a line with 'created task' and '(execution ${execution}, item ${itemIndex + 1})'. If there is such a line, fetch the result with Wait for Task and the id in the line. If there is none, look at the tasks of your account before you run this item again.`,
		},
	);
}

/** What the output shows of a task that was not read. */
export function knownJson(entry: TaskEntry): IDataObject {
	const { plan, taskId = '', record } = entry;
	// Of a task that was only to be read nobody knows more than its id.
	if (plan?.kind === 'read' && !plan.wait) return { taskId };
	return pendingJson(taskId, { ...ownFields(entry), record });
}

/**
 * The fields of an item's error or output that the task's record does not have: what was sent, the reference, the
 * estimate, and the tasks that failed before.
 */
export function ownFields({ plan, ...entry }: TaskEntry): IDataObject {
	const { sent, costUsd, failed: before = [], taskId, fields } = entry;
	if (plan?.kind === 'read') {
		const { item } = plan;
		return { ...(item !== undefined && { item }), ...referenceOf(plan), ...fields };
	}
	// The fields that were sent win: a retry may have other parameters.
	const request = sent ?? (taskId === undefined && plan ? echo(plan) : {});
	return {
		...request,
		...(sent?.reference === undefined && plan && referenceOf(plan)),
		...(taskId !== undefined && costUsd !== undefined && { estimatedCostUsd: costUsd }),
		...(before.length > 0 && { failedTaskIds: before }),
	};
}
