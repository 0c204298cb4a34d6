import type { IDataObject } from 'n8n-workflow';
import { UserError } from 'n8n-workflow';

import { isRecord } from '../shared/json';

/** The place in the node's context that n8n stores with the execution. */
const KEY = 'createdTasks';

/** To be raised where an older version of this package could not read what is stored. Version 0.1.0 wrote none. */
const VERSION = 2;

/** One create of an item, as n8n stores it. */
export interface StoredCreate extends IDataObject {
	/** The execution that sent it or took it up; 0.1.0 did not write it. */
	execution?: string;
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
 * @throws UserError where a newer version of this package wrote them
 */
export function storedCreates(context: IDataObject): StoredCreates {
	const stored = context[KEY];
	if (isRecord(stored) && stored.version === VERSION && isRecord(stored.runs)) return stored.runs;
	if (isRecord(stored) && stored.version !== undefined && stored.version !== VERSION) {
		throw new UserError('This execution was started with another version of this package', {
			description:
				'This version cannot read which tasks were created already, and would pay for them again: nothing was sent. Update n8n-nodes-media-generation, then retry the execution.',
		});
	}
	const runs: StoredCreates = {};
	for (const [key, entry] of Object.entries(isRecord(stored) ? stored : {})) {
		const [, run, item, digest] = /^(\d+):(\d+):([0-9a-f]+)$/.exec(key) ?? [];
		if (run === undefined || item === undefined || digest === undefined) continue;
		const create = createOf010(entry, digest);
		if (create) createsOf(runs, run, item).push(create);
	}
	context[KEY] = { version: VERSION, runs };
	return runs;
}

/** The creates of an item, oldest first, in place. */
export function createsOf(runs: StoredCreates, run: string, item: string | number): StoredCreate[] {
	const items = isRecord(runs[run]) ? runs[run] : (runs[run] = {});
	const creates = items[item];
	if (Array.isArray(creates)) return creates as StoredCreate[];
	return (items[item] = [] as StoredCreate[]);
}

/** What 0.1.0 stored under `<run>:<item>:<digest>`: the task, or only that it was sent. */
function createOf010(entry: IDataObject[string], digest: string): StoredCreate | undefined {
	if (entry === 'sent') return { digest, state: 'sent' };
	if (!isRecord(entry) || typeof entry.taskId !== 'string') return undefined;
	const { taskId, record } = entry;
	return { digest, state: 'created', taskId, record: isRecord(record) ? record : {} };
}
