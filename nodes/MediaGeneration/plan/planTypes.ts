import { type FieldType, type IDataObject, validateFieldType } from 'n8n-workflow';

import { ItemError } from '../shared/itemError';
import { describe } from '../shared/parameters';
import type { Recipient } from '../callback/callbackAddress';
import type { Destination } from '../report/taskItems';

/** Where the results go: on in this workflow, to the workflow of a trigger, or nowhere yet. */
export type Completion = 'wait' | 'trigger' | 'return';

/** What the plans of all tasks have. */
export interface PlanBase extends Destination {
	/** The index of the task among the tasks of its input item. */
	taskIndex: number;
	/** *Timeout*: milliseconds to wait for the task, from its creation or the first read. */
	timeoutMs: number;
	/** The user's reference, which is part of the output. */
	reference?: string | undefined;
}

/** A task that is to be created. */
export interface CreatePlan extends PlanBase {
	kind: 'create';
	completion: Completion;
	model: string;
	/** The input of the task. Files are `InputFile`s until the task is created. */
	input: IDataObject;
	/** Whether the files are sent as links, and not as data. */
	sendsLinks: boolean;
	/** Whether the task is only shown, and not created. */
	isDry: boolean;
	/** The callback URL with its token. */
	webhookUrl?: string | undefined;
	/** How long to go on while the service takes no task, milliseconds. */
	patienceMs: number;
	/** How often to create a task again that failed at the service. */
	retryFailed: number;
	/** US dollars; undefined if the price is not known. */
	estimatedCostUsd: number | undefined;
	/** Whether the price is by the second, and not known for want of a duration. */
	lacksDuration?: boolean;
	/** The budget of the run, US dollars; 0 for no limit. */
	maxCostUsd: number;
}

/** A task that exists already, and is read by its id. */
export interface ReadPlan extends PlanBase {
	kind: 'read';
	taskId: string;
	/** The number of the item that had the task, from 1, if an execution was named. */
	item?: number | undefined;
	/** Whether to wait until the task is finished. */
	wait: boolean;
	/** The trigger that gets the result. A wait ends when the trigger has started for the task. */
	deliverTo?: Recipient | undefined;
}

/** A wait whose result goes to a trigger. */
export type DeliveredPlan = ReadPlan & { deliverTo: Recipient };

/** What a run does for one task. */
export type TaskPlan = CreatePlan | ReadPlan;

/** The plan for an item, or why its parameters are refused. */
export type ItemPlan =
	| TaskPlan
	| (Pick<PlanBase, 'itemIndex' | 'taskIndex'> & {
			kind: 'refused';
			error: ItemError;
			isDry: boolean;
	  });

/** The user's reference as a field of the output. */
export function referenceOf({ reference }: TaskPlan): IDataObject {
	return reference === undefined ? {} : { reference };
}

/** The tasks of a run that are to be created, in the order of the items. */
export const createsIn = (items: readonly ItemPlan[]): CreatePlan[] =>
	items.filter((item) => item.kind === 'create');

/** Whether the item leaves when its task has ended. */
export const isAwaited = (item: ItemPlan): boolean =>
	(item.kind === 'create' && item.completion === 'wait') || (item.kind === 'read' && item.wait);

/** Whether the result of a wait goes to a trigger, and not only on in this workflow. */
export const isDelivered = (plan: TaskPlan | undefined): plan is DeliveredPlan =>
	plan?.kind === 'read' && plan.wait && plan.deliverTo !== undefined;

/** The types of n8n's fields, as the messages name them. */
const TYPES: Record<string, string> = {
	string: 'a text',
	number: 'a number',
	boolean: 'true or false',
	array: 'a list',
	object: 'an object',
};

/** The value of a field, converted to its type. @throws ItemError if it is not of that type */
export function typed(name: string, type: unknown, value: unknown, wayOut: string): unknown {
	if (value === null || type === undefined) return value;
	const converted = convert(name, String(type), value);
	if (converted !== undefined) return converted;
	const noun = TYPES[String(type)] ?? String(type);
	throw new ItemError(`The field '${name}' is ${describe(value)} and not ${noun}`, {
		description: wayOut,
	});
}

/** Converts as n8n's own Edit Fields does, but never turns a list or an object into text. */
function convert(name: string, type: string, value: unknown): unknown {
	const isOne = typeof value !== 'object' && !Number.isNaN(value);
	if (type === 'string') return isOne ? String(value) : undefined;
	const isText = typeof value === 'string';
	// n8n takes an empty list for false.
	if ((type === 'boolean' && !isOne) || (isText && value.trim() === '')) return undefined;
	if (type === 'number') {
		const number = isText ? Number(value) : value;
		return Number.isFinite(number) ? number : undefined;
	}
	const result = validateFieldType(name, value, type as FieldType);
	return result.valid ? result.newValue : undefined;
}
