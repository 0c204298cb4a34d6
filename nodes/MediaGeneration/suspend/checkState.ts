import type {
	IBinaryKeyData,
	IDataObject,
	IExecuteFunctions,
	INodeExecutionData,
	IWebhookFunctions,
	OnError,
} from 'n8n-workflow';

import type { IfSomeFail } from '../report/ifSomeFail';
import type { InputPart } from '../report/includeInput';
import type { OutputOptions } from '../report/taskItems';
import type { TriggerNode } from '../callback/triggerCallbackUrl';
import { isRecord, readStored } from '../shared/json';
import { inExpression } from '../shared/n8nInternals';

/** Raised when the shape changes: an update of this package may read what the version before it stored. */
export const CHECK_VERSION = 1;

/** The field of the item that carries the state to a sub-execution. */
const STATE = 'mediaGenerationCheck';

/** The field of the item before the results: it tells a check that came to its end from one that died. */
const DONE = 'mediaGenerationDone';

/** All times are milliseconds since 1970. */
interface CheckBase {
	version: typeof CHECK_VERSION;
	/** The node that created the tasks, for messages. */
	nodeName: string;
	startedAt: number;
	/** Milliseconds between two checks; 0 lets the pause grow with the time waited. */
	intervalMs: number;
	/** The sub-execution that starts this one again; none at its own first turn. */
	supervisorId?: string;
	/** Whether the next check is due sooner: a callback asked for it, or the checking execution died. */
	woken?: boolean;
	/** Until when the service asked to wait. */
	notBefore?: number;
}

/** Why there is no result: of an item, or of the node that waits. */
interface StoredFailure {
	message: string;
	description?: string | undefined;
	itemIndex?: number;
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
	/** Until when its task is waited for, and how long in all; undefined where nothing is to come. */
	waits?: { until: number; timeoutMs: number };
	/** How its results leave; undefined where the item was finished before the run was suspended. */
	output?: OutputOptions;
	/** The last record read of the task while it was checked, as received. */
	record?: IDataObject;
	/** In how many checks in a row the service did not know the task, or had no usable record of it. */
	missed?: number;
	/** What the last read failed with, where the service may answer later. */
	trouble?: string;
	failure?: StoredFailure;
}

/** A suspended run, whose results go back to the execution that waits for them. */
export interface ResultsCheck extends CheckBase {
	purpose: 'results';
	parentExecutionId: string;
	/** A digest of the error that this execution had from the one that it retries; none as a rule. */
	earlierError?: string | undefined;
	/** What the node that waits does where items fail. */
	onError: OnError;
	ifSomeFail: IfSomeFail;
	items: SuspendedItem[];
}

/** A task whose callback a trigger has not been seen to take; with the trigger, where it stands in the same workflow. */
export interface AwaitedDelivery extends Partial<TriggerNode> {
	taskId: string;
	/** When its time is up. */
	until: number;
	/**
	 * The trigger's address, without its token and with whatever else it carries; of a trigger of this n8n the part behind
	 * n8n's own address, which may change.
	 */
	address: string;
	/** How the last attempt ended, for the message at the end. */
	last?: string;
}

/** Triggered tasks, whose callbacks are made up for where they do not come. */
export interface DeliveryCheck extends CheckBase {
	purpose: 'delivery';
	deliveries: AwaitedDelivery[];
}

export type CheckState = ResultsCheck | DeliveryCheck;

/** The item that a sub-execution begins with. */
export const checkItem = (state: CheckState): INodeExecutionData => ({
	json: { [STATE]: state as unknown as IDataObject },
});

/** @returns the state that the items carry, if they do. @throws UserError where another version wrote it */
export function readCheck([first]: readonly INodeExecutionData[]): CheckState | undefined {
	const stored = first?.json[STATE];
	return stored === undefined ? undefined : parseCheck(stored);
}

/** @throws UserError where another version wrote it */
export const parseCheck = (stored: unknown) => readStored<CheckState>(stored, CHECK_VERSION);

/** The items that a check ends with: its results, or why there are none. */
export const doneItems = (
	results: INodeExecutionData[],
	failure?: StoredFailure,
): INodeExecutionData[] => [
	{ json: { [DONE]: { version: CHECK_VERSION, ...(failure && { failure }) } } },
	...results,
];

/** @returns what a check ended with, if these are its last items. @throws UserError where another version wrote them */
export function readDone([head, ...results]: readonly INodeExecutionData[]) {
	const done = head?.json[DONE];
	if (!isRecord(done)) return undefined;
	// With the results beside it, so that a refusal names their tasks, too.
	return readStored<{ results: INodeExecutionData[]; failure?: StoredFailure }>(
		{ ...done, results },
		CHECK_VERSION,
	);
}

/** The place in the node's context of that note, which n8n stores with the execution. */
const NOTE = 'check';

/** What a suspended execution notes for its callbacks: what checks its tasks, and the tasks. */
export interface CheckNote {
	/** A resume URL with n8n's signature; empty where it is not known. */
	url: string;
	taskIds: string[];
}

export function noteCheck(context: IExecuteFunctions, note: CheckNote): void {
	context.getContext('node')[NOTE] = { version: CHECK_VERSION, ...note };
}

/**
 * @returns what the suspended execution has noted; undefined where it is a sub-execution itself
 * @throws UserError where another version of this package suspended the execution
 */
export function checkNote(context: IWebhookFunctions): CheckNote | undefined {
	const name = inExpression(context.getNode().name);
	const stored: unknown = context.evaluateExpression(`{{ $node[${name}].context.${NOTE} }}`);
	if (stored === undefined || stored === null) return undefined;
	return readStored<CheckNote>(stored, CHECK_VERSION);
}
