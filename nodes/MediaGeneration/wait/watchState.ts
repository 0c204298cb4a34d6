import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import type { OutputOptions } from '../report/outputOptions';
import { isRecord } from '../shared/json';
import { readStored } from '../shared/storedState';

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
	/** The sub-execution that keeps this one going; none at its own first turn. */
	supervisorId?: string;
	/** Whether the first turn is over, in which nothing is read. */
	begun?: boolean;
	/** Whether the present turn only goes to sleep. */
	rests?: boolean;
	/** Whether the next look is due sooner than the time waited tells: a callback asked for it, or it was begun and died. */
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
	/** A digest of the error that this execution had from the one that it retries; none as a rule. */
	earlierError?: string | undefined;
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
	/** What of it comes behind n8n's own address, which may change; undefined for a trigger elsewhere. */
	ownPath?: string;
	/** The trigger's node, where it stands in the same workflow. */
	triggerId?: string;
	/** How the last attempt ended, for the message at the end. */
	last?: string;
	/** Whether the last look found the task not at its end. */
	isPending?: boolean;
}

/** Triggered tasks, whose callbacks are made up for where they do not come. */
export interface DeliveryWatch extends WatchBase {
	purpose: 'delivery';
	deliveries: WatchedDelivery[];
}

export type WatchState = ResultsWatch | DeliveryWatch;

export function watchItem(state: WatchState): INodeExecutionData {
	return { json: { [FIELD]: state as unknown as IDataObject } };
}

const WATCH = {
	nodeName: 'string',
	startedAt: 'number',
	intervalMs: 'number',
	purpose: 'string',
	'supervisorId?': 'string',
	'begun?': 'boolean',
	'rests?': 'boolean',
	'woken?': 'boolean',
};

const RESULTS = {
	...WATCH,
	parentExecutionId: 'string',
	'earlierError?': 'string',
	onError: 'string',
	ifSomeFail: 'string',
	output: { download: 'boolean', split: 'boolean', binaryField: 'string' },
	items: [
		{
			item: 'number',
			json: 'object',
			'waitsFor?': { taskId: 'string', until: 'number' },
			'record?': 'object',
			'taskId?': 'string',
			'failure?': { message: 'string', 'description?': 'string', 'statusCode?': 'number' },
		},
	],
} as const;

const DELIVERY = {
	...WATCH,
	deliveries: [
		{
			taskId: 'string',
			until: 'number',
			address: 'string',
			'ownPath?': 'string',
			'triggerId?': 'string',
			'last?': 'string',
			'isPending?': 'boolean',
		},
	],
} as const;

/**
 * Reads the state that n8n stored between two looks.
 *
 * @returns undefined where the items carry none
 * @throws UserError where a newer version of this package wrote it
 */
export function readWatch(items: readonly INodeExecutionData[]): WatchState | undefined {
	return items.length === 1 ? parseWatch(items[0]?.json[FIELD]) : undefined;
}

/**
 * @param stored as `watchItem` wrote it, if it did
 * @throws UserError where a newer version of this package wrote it
 */
export function parseWatch(stored: unknown): WatchState | undefined {
	if (stored === undefined) return undefined;
	const isDelivery = isRecord(stored) && stored.purpose === 'delivery';
	const shape = isDelivery ? DELIVERY : RESULTS;
	return readStored(stored, WATCH_VERSION, shape) as WatchState;
}

/** The field of the item that comes before the results of a watch: what was found is an end, and not a death. */
const DONE = 'watchDone';

const FAILURE = { 'message?': 'string', 'description?': 'string', 'itemIndex?': 'number' } as const;

/** What the node that waits is to fail with. */
export interface WatchFailure {
	message: string;
	description?: string;
	itemIndex?: number;
}

/** The results of a watch, or why there are none. */
export function doneItems(
	results: INodeExecutionData[],
	failure?: WatchFailure,
): INodeExecutionData[] {
	return [{ json: { [DONE]: { version: WATCH_VERSION, ...failure } } }, ...results];
}

/**
 * @returns the results of a watch that came to its end; undefined where the items are none
 * @throws UserError where a newer version of this package wrote them
 */
export function readDone(
	items: readonly INodeExecutionData[],
): { results: INodeExecutionData[]; failure: WatchFailure | undefined } | undefined {
	const [head, ...results] = items;
	const done = head?.json[DONE];
	if (done === undefined) return undefined;
	// The results stand beside it, so that a refusal names their tasks, too.
	const stored = isRecord(done) ? { ...done, results } : done;
	const failure = readStored(stored, WATCH_VERSION, FAILURE) as Partial<WatchFailure>;
	const { message } = failure;
	return { results, failure: message === undefined ? undefined : { ...failure, message } };
}

/** Leads the supervisor to start another one. */
const DEAD = 'watchDead';

export const deadItems = (): INodeExecutionData[] => [{ json: { [DEAD]: true } }];

export const isDead = (items: readonly INodeExecutionData[]) => items[0]?.json[DEAD] === true;
