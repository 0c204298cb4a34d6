import { createHash } from 'crypto';
import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { attempt } from '../shared/attempt';
import { isRecord } from '../shared/json';

/** Entries of the one row that is used where a row for each task cannot be had: two for a task. */
const FALLBACK_ENTRIES = 100_000;

/** The place in the node's context, which outlives a try of the node. */
const KEY = 'startedTasks';

let fallbackWasLogged = false;

/**
 * Whether this execution is the one that a task starts: the first that comes with it, in all its tries (n8n offers
 * *Retry On Fail* on triggers). What it knows of its own tries it notes in the node's context; the row in the
 * database is for all the others.
 *
 * A retry from the list of executions goes on whatever the row says, since somebody wants it, and leaves a row all the
 * same: a callback that comes later must not start the task once more.
 *
 * @param key the task id, or what else is to start the workflow once
 * @throws the database's error, where nobody knows what it did
 */
export async function mayStart(context: IExecuteFunctions, key: string): Promise<boolean> {
	const store: IDataObject = context.getContext('node');
	const notes: IDataObject = isRecord(store[KEY]) ? store[KEY] : {};
	store[KEY] = notes;
	if (notes[key] === 'recorded') return true;
	// Of an earlier try: the row may have been written although the answer was lost.
	const wasTried = notes[key] === 'tried';
	notes[key] = 'tried';
	const row = await record(context, key, `${key} by execution ${context.getExecutionId()}`);
	const isOurs = row === 'first' || (row === 'own' && wasTried) || context.getMode() === 'retry';
	if (isOurs) notes[key] = 'recorded';
	else delete notes[key];
	return isOurs;
}

/**
 * Remembers that a finished task has started the workflow, in n8n's own de-duplication store.
 *
 * n8n keeps one row for each workflow and node, which is read and then rewritten: two processes lose each other's
 * entries. So each task gets a row of its own, and the database's primary key decides, atomically, on every process
 * and across restarts. The cost does not grow with the number of tasks; rows stay until n8n's store is cleared or
 * the workflow is deleted.
 *
 * This leans on an inside of n8n (1.123 to 2.41): the helper takes the row's name from the `id` of the node object
 * that `getExecuteData()` returns, synchronously, while it is called. For just that call the `id` is extended by a
 * digest of the key. Where n8n does not look at it then, the helper has used the node's own row, which is what
 * n8n documents, and that is said once in the log.
 *
 * @param key names the row
 * @param owner is kept in the row of whoever is first
 * @returns `first` for the one caller that records it; `own` where the owner has been here before
 * @throws the database's error, where it is not the refusal of a second row
 */
async function record(
	context: IExecuteFunctions,
	key: string,
	owner: string,
): Promise<'first' | 'own' | 'other'> {
	const { node } = context.getExecuteData();
	const ownId = node.id;
	const rowId = `${ownId}:${createHash('sha256').update(key).digest('hex').slice(0, 32)}`;
	let wasRead = false;
	Object.defineProperty(node, 'id', {
		configurable: true,
		enumerable: true,
		get: () => {
			wasRead = true;
			return rowId;
		},
	});
	let recording: ReturnType<IExecuteFunctions['helpers']['checkProcessedAndRecord']>;
	try {
		recording = context.helpers.checkProcessedAndRecord([key, owner], 'node', {
			mode: 'entries',
			maxEntries: FALLBACK_ENTRIES,
		});
	} finally {
		Object.defineProperty(node, 'id', {
			configurable: true,
			enumerable: true,
			writable: true,
			value: ownId,
		});
	}
	if (!wasRead && !fallbackWasLogged) {
		fallbackWasLogged = true;
		context.logger.warn(
			'Media Generation Trigger: this n8n keeps its finished tasks in one row, so that in queue mode a task may start the workflow twice',
		);
	}
	const recorded = await attempt(async () => await recording);
	if ('error' in recorded) {
		if (isSecondRow(recorded.error)) return 'other';
		throw recorded.error;
	}
	const { new: added, processed } = recorded.value;
	if (added.includes(key)) return 'first';
	return processed.includes(owner) ? 'own' : 'other';
}

/** Whether the database refused a second row of the same name: SQLite, PostgreSQL, MySQL. */
function isSecondRow(error: unknown): boolean {
	if (!(error instanceof Error)) return false;
	const code = 'code' in error ? String(error.code) : '';
	return (
		code === '23505' ||
		code === 'ER_DUP_ENTRY' ||
		/UNIQUE constraint failed|duplicate key value|Duplicate entry/i.test(error.message)
	);
}
