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
import { inExpression } from '../n8n/internals';

/** To be raised when the stored shape changes: an update of this package may read what the version before it stored. */
export const CHECK_VERSION = 1;

/** The field of the item that carries the state to a sub-execution. */
const STATE = 'mediaGenerationCheck';

/** The field of the item before the results. A check that died has none. */
const DONE = 'mediaGenerationDone';

/** All times are milliseconds since 1970. */
interface CheckBase {
	version: typeof CHECK_VERSION;
	/** The node that created the tasks, for messages. */
	nodeName: string;
	startedAt: number;
	/** Milliseconds between two checks; 0 lets the pause grow with the time waited. */
	intervalMs: number;
	/** The sub-execution that starts a checker again if it dies; none before the supervisor's first turn. */
	supervisorId?: string;
	/** Whether the next check is due sooner: a callback asked for it, or a checker died. */
	woken?: boolean;
	/** The end of the pause that the service asked for. */
	notBefore?: number;
}

/** Why an item, or the node that waits, has no result. */
export interface StoredFailure {
	message: string;
	description?: string | undefined;
	itemIndex?: number;
}

/** One item of a suspended run. */
export interface SuspendedItem {
	/** The index of the input item. */
	item: number;
	/** The fields that do not come from the task's record, its `taskId` among them; all fields of a failed item. */
	json: IDataObject;
	/** The files of an item that was finished before the run was suspended. */
	binary?: IBinaryKeyData | undefined;
	/** The part of the input item that leaves with the result. */
	input?: InputPart | undefined;
	/** If a result is to come: until when, the whole timeout in milliseconds, and when a check first found the time up. */
	waits?: { until: number; timeoutMs: number; overdueAt?: number };
	/** How its results leave; undefined if the item was finished before the run was suspended. */
	output?: OutputOptions;
	/** The task's last record that a check has read, as received. */
	record?: IDataObject | undefined;
	/** In how many checks in a row the service did not know the task, or had no usable record of it. */
	missed?: number;
	/** The error of the last read, if the service may answer later. */
	trouble?: string;
	failure?: StoredFailure;
}

/** A suspended run. Its results go to the execution that waits for them. */
export interface ResultsCheck extends CheckBase {
	purpose: 'results';
	parentExecutionId: string;
	/** The digest of the error that the waiting execution had from the execution that it retries, if any. */
	earlierError?: string | undefined;
	/** The *On Error* setting of the node that waits. */
	onError: OnError;
	ifSomeFail: IfSomeFail;
	items: SuspendedItem[];
}

/** A task whose callback has not been seen to reach its trigger; with the trigger, if it is in the same workflow. */
export interface AwaitedDelivery extends Partial<TriggerNode> {
	taskId: string;
	/** When its time is up, milliseconds since 1970. */
	until: number;
	/** The trigger's address without its token; without n8n's own address, too, if that is where the trigger is. */
	address: string;
	/** How the last attempt ended, for the message at the end. */
	last?: string;
}

/** Tasks whose callbacks are made up for if they do not come. */
export interface DeliveryCheck extends CheckBase {
	purpose: 'delivery';
	deliveries: AwaitedDelivery[];
	/** When a check first found the time of all tasks up. */
	overdueAt?: number;
}

export type CheckState = ResultsCheck | DeliveryCheck;

/** The item that a sub-execution begins with. */
export const checkItem = (state: CheckState): INodeExecutionData => ({
	json: { [STATE]: state as unknown as IDataObject },
});

/** The state that the items carry, if any. @throws UserError if another version of this package wrote it */
export function readCheck([first]: readonly INodeExecutionData[]): CheckState | undefined {
	const stored = onlyField(first, STATE);
	return stored === undefined ? undefined : parseCheck(stored);
}

/** The value of the only field of an item, if it has this name: a result may have a field of the user that has it, too. */
function onlyField({ json }: INodeExecutionData = { json: {} }, name: string): unknown {
	return Object.keys(json).join() === name ? json[name] : undefined;
}

/** @throws UserError if another version of this package wrote the state */
export const parseCheck = (stored: unknown) => readStored<CheckState>(stored, CHECK_VERSION);

/** The items that a check ends with: its results, or the failure. */
export const doneItems = (
	results: INodeExecutionData[],
	failure?: StoredFailure,
): INodeExecutionData[] => [
	{ json: { [DONE]: { version: CHECK_VERSION, ...(failure && { failure }) } } },
	...results,
];

/** What a check ended with, if these are its last items. @throws UserError if another version wrote them */
export function readDone([head, ...results]: readonly INodeExecutionData[]) {
	const done = onlyField(head, DONE);
	if (!isRecord(done)) return undefined;
	// The results are part of the checked object, so that a refusal of another version's data names their tasks.
	return readStored<{ results: INodeExecutionData[]; failure?: StoredFailure }>(
		{ ...done, results },
		CHECK_VERSION,
	);
}

/** The key of the note in the node's context, which n8n stores with the execution. */
const NOTE = 'check';

/** What a suspended execution notes for its callbacks: the checker, and the tasks. */
export interface CheckNote {
	/** The resume URL of the checker, with n8n's signature; empty if it is not known. */
	url: string;
	taskIds: string[];
}

export function noteCheck(context: IExecuteFunctions, note: CheckNote): void {
	context.getContext('node')[NOTE] = { version: CHECK_VERSION, ...note };
}

/**
 * @returns the note of the suspended execution; undefined in a sub-execution
 * @throws UserError if another version of this package suspended the execution
 */
export function checkNote(context: IWebhookFunctions): CheckNote | undefined {
	const name = inExpression(context.getNode().name);
	const stored: unknown = context.evaluateExpression(`{{ $node[${name}].context.${NOTE} }}`);
	if (stored === undefined || stored === null) return undefined;
	return readStored<CheckNote>(stored, CHECK_VERSION);
}
