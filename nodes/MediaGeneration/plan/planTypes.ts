import type { IDataObject } from 'n8n-workflow';

import type { Destination } from '../report/taskItems';
import type { ItemError } from '../shared/itemError';

/** Who goes on with the results: this workflow, the workflow of a trigger, or nobody now. */
export type Completion = 'wait' | 'trigger' | 'return';

export interface PlanBase extends Destination {
	/** The input item. It may name many tasks to read, but only ever creates one. */
	itemIndex: number;
	pollIntervalMs: number;
	/** Milliseconds to wait for the task, from its creation or the first read. */
	timeoutMs: number;
	/** Comes out with the task: what the user tells it by. */
	reference?: string | undefined;
}

export interface CreatePlan extends PlanBase {
	kind: 'create';
	completion: Completion;
	model: string;
	/** The input of the task, in which files stand as `InputFile` until the task is created. */
	input: IDataObject;
	/** Whether the files are sent as links, and not as data. */
	sendsLinks: boolean;
	/** Whether the task is only to be shown, and not created. */
	isDry: boolean;
	/** Where the service calls back, token included. */
	webhookUrl?: string | undefined;
	/** How long to put up with a service that takes no task, milliseconds. */
	patienceMs: number;
	/** How often a task that fails at the service is created anew. */
	retryFailed: number;
	/** US dollars; undefined where the price is not known. */
	estimatedCostUsd: number | undefined;
	/** US dollars that the tasks of the run may cost together; 0 where there is no limit. */
	maxCostUsd: number;
}

export interface ReadPlan extends PlanBase {
	kind: 'read';
	taskId: string;
	/** Whether to wait until the task is finished. */
	wait: boolean;
	/** The trigger that gets the task's callback once more, token included. */
	redeliverTo?: string | undefined;
	/** Whether the trigger is to start although it has started for the task before. */
	startAgain: boolean;
}

export type TaskPlan = CreatePlan | ReadPlan;

/** An item whose parameters cannot be meant. */
interface RefusedPlan {
	kind: 'refused';
	itemIndex: number;
	error: ItemError;
}

/** What is to be done with an item, or why it cannot be done. */
export type ItemPlan = TaskPlan | RefusedPlan;

/** What the user tells the task by, as a field of its item. */
export function referenceOf({ reference }: TaskPlan): IDataObject {
	return reference === undefined ? {} : { reference };
}

export const createsIn = (items: readonly ItemPlan[]): CreatePlan[] =>
	items.filter((item) => item.kind === 'create');

/** Whether the item leaves only when its task has ended. */
export const isAwaited = (item: ItemPlan): boolean =>
	(item.kind === 'create' && item.completion === 'wait') || (item.kind === 'read' && item.wait);
