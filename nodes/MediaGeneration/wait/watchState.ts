import { type IDataObject, type INodeExecutionData, UserError } from 'n8n-workflow';

import type { OutputOptions } from '../report/outputOptions';
import { isRecord } from '../shared/json';

/** Raised when the shape changes: what is stored outlives an update of this package. */
export const WATCH_VERSION = 1;

/** The field of the one item that carries the state from one look to the next. */
const FIELD = 'watch';

interface WatchBase {
	version: typeof WATCH_VERSION;
	/** The name of the node that created the tasks, for messages. */
	nodeName: string;
	/** Milliseconds since 1970. */
	startedAt: number;
	/** Milliseconds between two looks; 0 lets it grow with the time waited. */
	intervalMs: number;
	/** Whether the first turn is over, in which nothing is read. */
	begun?: boolean;
	/** Whether a callback asked for this look. */
	woken?: boolean;
}

/** A task of a suspended run, or what is known of an item that has none. */
export interface WatchedItem {
	/** The index of the input item. */
	item: number;
	/** Fields of the output item that do not come from the task's record. */
	json: IDataObject;
	/** What is still to come; undefined where the item waits for nothing. */
	waitsFor?: { taskId: string; until: number };
	/** The last record read of the task, as received. */
	record?: IDataObject;
	taskId?: string;
	/** What went wrong before the run was suspended. */
	failure?: { message: string; description?: string; statusCode?: number };
	/** Whether the wait ended before the task. */
	timedOut?: boolean;
}

/** A suspended run, whose results go back to the execution that waits for them. */
export interface ResultsWatch extends WatchBase {
	purpose: 'results';
	parentExecutionId: string;
	/** What the node does where items fail, as n8n stores it. */
	onError: string;
	ifSomeFail: string;
	output: OutputOptions;
	items: WatchedItem[];
}

/** A task whose callback a trigger has not been seen to take. */
export interface WatchedDelivery {
	taskId: string;
	/** Milliseconds since 1970. */
	until: number;
	/** The trigger's address, without its token and with whatever else it carries. */
	address: string;
	/** How the last attempt ended, for the message at the end. */
	last?: string;
}

/** Triggered tasks, whose callbacks are made up for where they do not come. */
export interface DeliveryWatch extends WatchBase {
	purpose: 'delivery';
	deliveries: WatchedDelivery[];
}

/** Sleeps beside another watch, and goes on in its place where that died. */
export interface GuardWatch extends WatchBase {
	purpose: 'guard';
	watcherId: string;
	/** What the watcher began with. */
	watched: ResultsWatch | DeliveryWatch;
	/** What the watcher was found in that may be its death. */
	suspect?: string;
}

export type WatchState = ResultsWatch | DeliveryWatch | GuardWatch;

export function watchItem(state: WatchState): INodeExecutionData {
	return { json: { [FIELD]: state as unknown as IDataObject } };
}

/**
 * Reads the state that n8n stored between two looks.
 *
 * @returns undefined where the items carry none
 * @throws UserError where a newer version of this package wrote it
 */
export function readWatch(items: readonly INodeExecutionData[]): WatchState | undefined {
	const stored = items.length === 1 ? items[0]?.json[FIELD] : undefined;
	if (!isRecord(stored)) return undefined;
	if (stored.version !== WATCH_VERSION) {
		throw new UserError(
			`This wait was begun by another version of n8n-nodes-media-generation (format ${String(stored.version)})`,
			{
				description:
					"Install that version again, or stop this execution and fetch its tasks with the operation Task → Wait; their ids are in n8n's log.",
			},
		);
	}
	return stored as unknown as WatchState;
}
