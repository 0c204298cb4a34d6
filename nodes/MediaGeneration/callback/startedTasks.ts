import { createHash } from 'crypto';
import type { IExecuteFunctions } from 'n8n-workflow';

import { attempt } from '../shared/attempt';

/** Entries of the one row that is used where a row for each task cannot be had. */
const FALLBACK_ENTRIES = 50_000;

let fallbackWasLogged = false;

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
 * digest of the task id. Where n8n does not look at it then, the helper has used the node's own row, which is what
 * n8n documents, and that is said once in the log.
 *
 * @returns true for the one caller that is first to record the task
 * @throws the database's error, where it is not the refusal of a second row
 */
export async function recordOnce(context: IExecuteFunctions, taskId: string): Promise<boolean> {
	const { node } = context.getExecuteData();
	const ownId = node.id;
	const rowId = `${ownId}:${createHash('sha256').update(taskId).digest('hex').slice(0, 32)}`;
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
		recording = context.helpers.checkProcessedAndRecord([taskId], 'node', {
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
	if ('value' in recorded) return recorded.value.new.length > 0;
	if (isSecondRow(recorded.error)) return false;
	throw recorded.error;
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
