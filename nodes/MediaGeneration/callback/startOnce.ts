import { type IDataObject, type IExecuteFunctions, type INode, UserError } from 'n8n-workflow';

import { digest, readStored } from '../shared/json';
import { CREDENTIAL_TYPE } from '../service/connect';
import { settled } from '../shared/promises';

/** @returns the id that n8n gave to the node's credential; empty where it has none */
export const credentialIdOf = ({ credentials }: INode): string =>
	credentials?.[CREDENTIAL_TYPE]?.id ?? '';

/**
 * Names the account of a task: two accounts may use the same task ids. The API key is not part of the name: people
 * replace keys, and a task must not start its workflow again then.
 */
export const accountOf = (baseUrl: string, credentialId: string): string =>
	digest([baseUrl, credentialId]);

/** The key in the node's context, which lasts from one try of the node to the next. */
const KEY = 'startedTasks';

/** To be raised when the stored shape changes. */
const VERSION = 1;

/** How often an execution can ask whether it wrote a row. The row holds a signature for each question. */
const QUESTIONS = [0, 1, 2];

/** The start of a workflow that may happen once. */
export interface Start {
	/** `accountOf` the task. */
	account: string;
	taskId: string;
}

/** The name of the row of a start, and of the note in the node's context. */
const keyOf = ({ account, taskId }: Start) => JSON.stringify([account, taskId]);

/**
 * Whether this execution is the one that starts the workflow for a task: the first execution that asks, in all its
 * tries. A second try comes by *Retry On Fail* (n8n offers it on triggers) or from the list of executions. The node's
 * context holds what the execution knows of its own tries. The row in the database holds the rest: what other
 * executions did, and what this execution did if the answer was lost or the process was killed. Only an execution that
 * may have written the row itself asks for its signatures, see `StartedTaskRow.isSigned`.
 *
 * @param callbackId names the callback that began this execution, in all its tries
 * @throws the database's error if it is not known whether the row was written; UserError if it will never be known
 */
export async function mayStart(
	context: IExecuteFunctions,
	start: Start,
	callbackId: string,
): Promise<boolean> {
	const stored = (context.getContext('node')[KEY] ??= { version: VERSION, tasks: {} });
	const { tasks: notes } = readStored<{ tasks: IDataObject }>(stored, VERSION);
	const key = keyOf(start);
	const note = notes[key];
	if (note === 'recorded') {
		logStart(context, start);
		return true;
	}
	const row = new StartedTaskRow(context, key);
	const isWritten = (await row.size()) > 0;
	if (isWritten && note === undefined && context.getMode() !== 'retry') return false;
	notes[key] = 'asked';
	// The log comes before the row: if the process is killed in between, n8n keeps nothing that names the task.
	logStart(context, start);
	const signatures = QUESTIONS.map((question) => `${key} by ${callbackId}, ${question}`);
	const isOurs = isWritten ? await row.isSigned(signatures) : await row.insert(signatures);
	if (isOurs === undefined) {
		// A second start cannot be taken back. A missing start can be made up for.
		const message = `It is not known whether another execution has started for the task ${start.taskId}`;
		throw new UserError(message, {
			description: `Two callbacks of the task came at the same moment, and an answer of the database was lost. Look in the list of executions: has another execution started for this task? If not, read the task with the operation Task → Get (execution ${context.getExecutionId()}).`,
		});
	}
	if (isOurs) notes[key] = 'recorded';
	return isOurs;
}

const logStart = (context: IExecuteFunctions, { taskId }: Start): void =>
	context.logger.info(
		`${context.getNode().name}: task ${taskId} starts the workflow (execution ${context.getExecutionId()})`,
	);

/** Whether a trigger of this workflow has started for a task. @throws the database's error */
export const hasStarted = async (
	context: IExecuteFunctions,
	triggerId: string,
	start: Start,
): Promise<boolean> => (await new StartedTaskRow(context, keyOf(start), triggerId).size()) > 0;

/** The entries that n8n keeps if all tasks share one row. */
const FALLBACK_ENTRIES = 100_000;

let fallbackWasLogged = false;

/**
 * The row of one task in n8n's own de-duplication store.
 *
 * n8n keeps one row for each workflow and node. To add an entry n8n reads the row and writes it anew, so two
 * processes lose each other's entries. So each task gets a row of its own, and the primary key of the database
 * decides: atomically, for all processes, across restarts. The cost does not grow with the number of tasks. Rows stay
 * until n8n's store is cleared or the workflow is deleted.
 *
 * This relies on an internal of n8n (1.123 to 2.41): the helper takes the name of the row from the `id` of the node
 * object that `getExecuteData()` returns, synchronously, during the call. During that call the `id` has a digest of
 * the key behind it. If a version of n8n does not read the `id` then, the helper uses the row of the node, as n8n
 * documents, and the log says so once.
 *
 * @throws from each method the database's error
 */
class StartedTaskRow {
	/**
	 * @param key names the row
	 * @param nodeId the trigger that owns the row, if that is another node of this workflow
	 */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly key: string,
		private readonly nodeId = context.getNode().id,
	) {}

	/** The number of entries; 0 if nobody has written the row, or if all tasks share one row. */
	async size(): Promise<number> {
		const { answer, isOwnRow } = await this.named(
			async (helpers) => await helpers.getProcessedDataCount('node', { mode: 'entries' }),
		);
		return isOwnRow ? answer : 0;
	}

	/** Writes the row, unless somebody else has. @returns whether this call wrote it */
	async insert(entries: readonly string[]): Promise<boolean> {
		const recorded = await settled(this.record([this.key, ...entries]));
		if ('value' in recorded) return recorded.value.new.includes(this.key);
		if (isSecondRow(recorded.error)) return false;
		throw recorded.error;
	}

	/**
	 * Whether an execution wrote the row with these signatures. To ask n8n for a signature is also to write it. So the
	 * execution wrote the row if the row has more of its signatures than entries that were added later.
	 *
	 * @returns undefined if the row has grown by more entries than there are signatures: by many questions, or by another
	 *   execution that found no row in the same milliseconds, whose entries n8n adds to this row
	 */
	async isSigned(signatures: readonly string[]): Promise<boolean | undefined> {
		for (const [earlier, signature] of signatures.entries()) {
			if (!(await this.record([signature])).processed.includes(signature)) return false;
			const grown = (await this.size()) - 1 - signatures.length;
			if (earlier >= grown) return true;
		}
		return undefined;
	}

	private async record(entries: string[]) {
		const options = { mode: 'entries', maxEntries: FALLBACK_ENTRIES } as const;
		const { answer } = await this.named(
			async (helpers) => await helpers.checkProcessedAndRecord(entries, 'node', options),
		);
		return answer;
	}

	/** Calls a helper of n8n while the node's id is the name of the row. */
	private async named<T>(call: (helpers: IExecuteFunctions['helpers']) => Promise<T>) {
		const { node } = this.context.getExecuteData();
		const { id } = node;
		const rowId = `${this.nodeId}:${digest(this.key)}`;
		let isOwnRow = false;
		const setId = (property: PropertyDescriptor) =>
			Object.defineProperty(node, 'id', { configurable: true, enumerable: true, ...property });
		setId({
			get: () => {
				isOwnRow = true;
				return rowId;
			},
		});
		const called = call(this.context.helpers);
		setId({ writable: true, value: id });
		const answer = await called;
		if (!isOwnRow && !fallbackWasLogged) {
			fallbackWasLogged = true;
			this.context.logger.warn(
				'Media Generation Trigger: this n8n keeps its finished tasks in one row, so that in queue mode a task may start the workflow twice',
			);
		}
		return { answer, isOwnRow };
	}
}

/** Whether the database refused a second row of the same name (PostgreSQL, MySQL, SQLite). */
const isSecondRow = (error: unknown): boolean =>
	error instanceof Error &&
	(('code' in error && ['23505', 'ER_DUP_ENTRY'].includes(String(error.code))) ||
		/UNIQUE constraint failed|duplicate key value|Duplicate entry/i.test(error.message));
