import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { isRecord } from '../shared/json';
import { readStored } from '../shared/storedState';

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
	context.getContext('node')[PAUSE] = [Date.now() + lengthMs, lengthMs] satisfies Pause;
}

/**
 * @returns the milliseconds that are left of it: none more where the clock was set back, and none where what is stored is
 *   no pause. It saves a refusal and protects no money, so nobody is stopped for it.
 */
export function pauseLeft(context: IExecuteFunctions): number {
	const stored: unknown = context.getContext('node')[PAUSE];
	if (!isPause(stored)) return 0;
	const [until, lengthMs] = stored;
	return Math.max(0, Math.min(until - Date.now(), lengthMs));
}

const isPause = (stored: unknown): stored is Pause =>
	Array.isArray(stored) && stored.length === 2 && stored.every(Number.isFinite);

/** To be raised where another version of this package could not read what is stored. */
const VERSION = 1;

/** One create of an item, as n8n stores it. */
export interface StoredCreate extends IDataObject {
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

/** The creates by the node's run (there are many in a loop), then by the item. */
export type StoredCreates = IDataObject;

/**
 * The stored creates, in place: what is changed in them is stored with the execution.
 *
 * @param context what n8n stores for the node
 * @throws UserError where another version of this package wrote them
 */
export function storedCreates(context: IDataObject): StoredCreates {
	const stored = (context[KEY] ??= { version: VERSION, runs: {} });
	return readStored(stored, VERSION).runs as StoredCreates;
}

/** The creates of an item, oldest first, in place. */
export function createsOf(runs: StoredCreates, run: string, item: string | number): StoredCreate[] {
	const items = isRecord(runs[run]) ? runs[run] : (runs[run] = {});
	const creates = items[item];
	if (Array.isArray(creates)) return creates as StoredCreate[];
	return (items[item] = [] as StoredCreate[]);
}
