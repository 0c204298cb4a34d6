import type { IBinaryKeyData, IDataObject, INodeExecutionData } from 'n8n-workflow';

import type { InputPart } from '../report/includedInput';
import type { OutputOptions } from '../report/items';
import type { ItemError } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { readStored } from '../shared/storedState';

/** Raised when the shape changes: an update of this package may read what the version before it stored. */
export const CHECK_VERSION = 1;

/** The field of the one item that carries the state from one check to the next. */
const FIELD = 'check';

interface CheckBase {
	version: typeof CHECK_VERSION;
	/** The name of the node that created the tasks, for messages. */
	nodeName: string;
	/** Milliseconds since 1970. */
	startedAt: number;
	/** Milliseconds between two checks; 0 lets the pause grow with the time waited. */
	intervalMs: number;
	/** The sub-execution that starts this one again; none at its own first turn. */
	supervisorId?: string;
	/** What the present turn does; nothing but note its address at first. */
	turn?: 'rests' | 'checks';
	/** Whether the next check is due sooner: a callback asked for it, or the checking execution died. */
	woken?: boolean;
	/** Until when the service asked to wait, milliseconds since 1970. */
	notBefore?: number;
}

/** One item of a suspended run. */
export interface SuspendedItem {
	/** The index of the input item. */
	item: number;
	/** Fields of the output item that do not come from the task's record, its `taskId` among them; of a failed item all. */
	json: IDataObject;
	/** The files of an item that was finished before the run was suspended. */
	binary?: IBinaryKeyData;
	/** What of the input item goes on beside the result. */
	input?: InputPart;
	/** Until when its task is waited for, milliseconds since 1970, and how long in all; undefined where nothing is to come. */
	waits?: { until: number; timeoutMs: number };
	/** The last record read of the task while it was checked, as received. */
	record?: IDataObject;
	/** In how many checks in a row the service did not know the task. */
	missed?: number;
	/** Why the item has no result. */
	failure?: { message: string; description?: string; statusCode?: number };
}

/** An item that has failed, as it is stored. */
export function failedItem(
	{ item, input }: Pick<SuspendedItem, 'item' | 'input'>,
	{ message, description, statusCode, task }: ItemError,
): SuspendedItem {
	return {
		item,
		json: task,
		...(input && { input }),
		failure: {
			message,
			...(description !== undefined && { description }),
			...(statusCode !== undefined && { statusCode }),
		},
	};
}

/** A suspended run, whose results go back to the execution that waits for them. */
export interface ResultsCheck extends CheckBase {
	purpose: 'results';
	parentExecutionId: string;
	/** A digest of the error that this execution had from the one that it retries; none as a rule. */
	earlierError?: string | undefined;
	/** What the node does where items fail, as n8n stores it. */
	onError: string;
	ifSomeFail: string;
	output: OutputOptions;
	items: SuspendedItem[];
}

/** A task whose callback a trigger has not been seen to take. */
export interface AwaitedDelivery {
	taskId: string;
	/** When its time is up, milliseconds since 1970. */
	until: number;
	/**
	 * The trigger's address, without its token and with whatever else it carries; of a trigger of this n8n the part behind
	 * n8n's own address, which may change.
	 */
	address: string;
	/** The trigger's node, where it stands in the same workflow. */
	triggerId?: string;
	/** The id of that node's credential in n8n. */
	triggerCredentialId?: string;
	/** How the last attempt ended, for the message at the end. */
	last?: string;
}

/** Triggered tasks, whose callbacks are made up for where they do not come. */
export interface DeliveryCheck extends CheckBase {
	purpose: 'delivery';
	deliveries: AwaitedDelivery[];
}

export type CheckState = ResultsCheck | DeliveryCheck;

/** The item that carries the state. */
export function checkItem(state: CheckState): INodeExecutionData {
	return { json: { [FIELD]: state as unknown as IDataObject } };
}

/**
 * The item of a checking execution that is to check at once.
 *
 * @param stored the items that n8n stored when it went to sleep
 * @returns undefined where they are no checking execution's: a user's item may have a field of this name, too
 */
export function wokenItem(stored: readonly INodeExecutionData[]): INodeExecutionData | undefined {
	const state = stored.length === 1 ? stored[0]?.json[FIELD] : undefined;
	return isRecord(state) ? { json: { [FIELD]: { ...state, woken: true } } } : undefined;
}

/**
 * Reads the state that n8n stored between two checks.
 *
 * @returns undefined where the items carry none
 * @throws UserError where another version of this package wrote it
 */
export function readCheck(items: readonly INodeExecutionData[]): CheckState | undefined {
	return items.length === 1 ? parseCheck(items[0]?.json[FIELD]) : undefined;
}

/**
 * @param stored as `checkItem` wrote it, if it did
 * @throws UserError where another version of this package wrote it
 */
export function parseCheck(stored: unknown): CheckState | undefined {
	if (stored === undefined) return undefined;
	return readStored(stored, CHECK_VERSION) as unknown as CheckState;
}

/** The field of the item before the results: it tells a check that came to its end from one that died. */
const DONE = 'checkDone';

/** What the node that waits is to fail with. */
export interface CheckFailure {
	message: string;
	description?: string;
	itemIndex?: number;
}

/** The results of a check that came to its end, or why there are none. */
export function doneItems(
	results: INodeExecutionData[],
	failure?: CheckFailure,
): INodeExecutionData[] {
	return [{ json: { [DONE]: { version: CHECK_VERSION, ...failure } } }, ...results];
}

/**
 * @returns the results of a check that came to its end; undefined where the items are none
 * @throws UserError where another version of this package wrote them
 */
export function readDone(
	items: readonly INodeExecutionData[],
): { results: INodeExecutionData[]; failure: CheckFailure | undefined } | undefined {
	const [head, ...results] = items;
	const done = head?.json[DONE];
	if (done === undefined) return undefined;
	// With the results beside it, so that a refusal names their tasks, too.
	const stored = isRecord(done) ? { ...done, results } : done;
	const failure = readStored(stored, CHECK_VERSION) as unknown as Partial<CheckFailure>;
	const { message } = failure;
	return { results, failure: message === undefined ? undefined : { ...failure, message } };
}

/** Leads the supervisor to start another checking execution. */
const DIED = 'checkDied';

export const diedItems = (): INodeExecutionData[] => [{ json: { [DIED]: true } }];

export const hasDied = (items: readonly INodeExecutionData[]) => items[0]?.json[DIED] === true;
