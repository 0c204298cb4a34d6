import type { IDataObject } from 'n8n-workflow';

import type { CreatedTask } from '../service/client';
import { readStored } from '../shared/json';
import type { TaskEntry } from './taskEntry';

/** A created task with the model and the input that were sent, as the output shows them. */
export type SentTask = CreatedTask & { sent: IDataObject };

/**
 * How a run of the node begins. `first`: nothing is known of it. `woken`: it was asleep. `killed`: it was asleep or awake
 * when its execution was killed or stopped, and another execution goes on with it (*Retry execution*). `retried`: it had
 * ended with an error, and another execution tries it again. `again`: this execution does so (*Retry On Fail*).
 */
export type Beginning = 'first' | 'woken' | 'killed' | 'retried' | 'again';

/** What a look needs to know of the plan. */
export interface SleepRule {
	/** Milliseconds from one turn to the next; 0 lets the sleep grow with the time waited. */
	intervalMs: number;
	/** When n8n's time limit cancels the execution, milliseconds since 1970; Infinity without a limit. */
	limitAt: number;
}

/** What n8n stores of a run. All times are milliseconds since 1970: another process may read them. */
export interface StoredRun {
	/** The execution that wrote this last. */
	execution: string;
	startedAt: number;
	/** A killed process leaves this as n8n stored it when the run went to sleep: true. */
	isAsleep: boolean;
	/** n8n's tries of the run in this execution (*Retry On Fail*) before the present try. */
	tries: number;
	/** How often the run went to sleep. */
	sleeps: number;
	/** The keys of the entries that the next turn may create; see `Journal.fallAsleep`. */
	announced: string[];
	/** How many tasks the last turn created. */
	createdInTurn: number;
	/** Since when turns create nothing, although no task of the run holds a place at the account. */
	quietSince?: number | undefined;
	/** JSON has no Infinity: a run without a time limit has no `limitAt`. */
	sleepRule: { intervalMs: number; limitAt?: number };
	/** What was learnt of the account's limits. */
	limits?: IDataObject | undefined;
	/** Tasks of items that the user has changed since. */
	abandoned: string[];
	items: Record<number, { identity: string; parts: Array<TaskEntry | undefined | null> }>;
}

/** To be raised when the stored shape changes. */
const VERSION = 1;

/** The key in the node's context, which n8n stores with the execution. */
const KEY = 'journal';

/**
 * The runs of a node, by their index. Not a copy: n8n stores the changes with the execution.
 *
 * @param kept the data of the node that n8n stores
 * @throws UserError if another version of this package wrote the runs
 */
export function runsIn(kept: IDataObject): Record<number, StoredRun> {
	const stored = (kept[KEY] ??= { version: VERSION, runs: {} });
	return readStored<{ runs: Record<number, StoredRun> }>(stored, VERSION).runs;
}

/** A run of which nothing is known. @param now milliseconds since 1970 */
export const newRun = (execution: string, now: number): StoredRun => ({
	execution,
	startedAt: now,
	isAsleep: false,
	tries: 0,
	sleeps: 0,
	sleepRule: { intervalMs: 0 },
	announced: [],
	createdInTurn: 0,
	abandoned: [],
	items: {},
});

/** The entries of an item. A part that was refused has no entry, which JSON stores as null. */
export const entriesIn = ({ parts }: StoredRun['items'][number]): TaskEntry[] =>
	parts.flatMap((entry) => entry ?? []);
