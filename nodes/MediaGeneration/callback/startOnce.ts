import { type IDataObject, type IExecuteFunctions, type INode, UserError } from 'n8n-workflow';

import { digest, readStored } from '../shared/json';
import { CREDENTIAL_TYPE } from '../service/connect';
import { settled } from '../shared/promises';

/** @returns the id that n8n gave to the node's credential; empty where it has none */
export const credentialIdOf = ({ credentials }: INode): string =>
	credentials?.[CREDENTIAL_TYPE]?.id ?? '';

/**
 * Names the account that a task belongs to: two accounts may use the same task ids. A service is told by its address,
 * and an account of the service by its credential in n8n. The API key has no part in the name, because a key is replaced
 * from time to time: the account stays the same, and none of its tasks may start a workflow again.
 */
export const accountOf = (baseUrl: string, credentialId: string): string =>
	digest([baseUrl, credentialId]);

/** The place in the node's context, which outlives a try of the node. */
const KEY = 'startedTasks';

/** Raised when the shape of what is noted there changes. */
const VERSION = 1;

/** So often an execution may ask whether a row is its own: only a question whose answer was lost is followed by another. */
const QUESTIONS = [0, 1, 2];

/**
 * So many entries has a row at least that two have meant to write first: where both find no row in the same milliseconds,
 * n8n adds what the later one writes to the row of the first.
 */
const ROW_OF_TWO = 1 + 2 * QUESTIONS.length;

/** What starts the workflow once. */
export interface Start {
	/** Names the account of the task: `accountOf`. */
	account: string;
	taskId: string;
	/** Who asks to start again for the task: each who asks starts the workflow once. */
	startAgain?: string;
}

/** Names the row of a start, and what the execution notes of it. */
const keyOf = ({ account, taskId, startAgain }: Start) =>
	JSON.stringify([account, taskId, ...(startAgain === undefined ? [] : [startAgain])]);

/**
 * Whether this execution is the one that a task starts: the first that comes with it, in all its tries, be it by
 * *Retry On Fail* (n8n offers it on triggers) or from the list of executions. What it knows of its own tries it notes
 * in the node's context; the row in the database is for all the others, and for what the notes do not say: whether a
 * write took place whose answer was lost, and what an execution did that was killed.
 *
 * So a row names who wrote it, and whoever finds one leaves it as it is, unless it may be their own. To ask that is
 * to write into it (n8n knows no other way), and a question whose answer is lost must not look like a signature the
 * next time: a row is signed once for each question.
 *
 * @param callbackId names the callback that began this execution, in all its tries
 * @throws the database's error, where nobody knows what it did; UserError where nobody will ever know
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
	const asked = typeof note === 'number' ? note : 0;
	const row = new StartedTaskRow(context, key);
	const size = await row.size();
	const isWritten = size > 0;
	if (isWritten && asked === 0 && context.getMode() !== 'retry') return false;
	notes[key] = asked + 1;
	// Before the row says so: where the process is killed from here on, n8n keeps nothing that names the task.
	logStart(context, start);
	const signature = (question: number) => `${key} by ${callbackId}, ${question}`;
	const isOurs = isWritten
		? await row.held(signature(Math.min(asked, QUESTIONS.length - 1)))
		: await row.insert(QUESTIONS.map(signature));
	if (isWritten && isOurs && size >= ROW_OF_TWO) {
		// To start the workflow twice cannot be taken back; to start it again can be asked for.
		const message = `It is not known whether another execution has started for the task ${start.taskId}`;
		throw new UserError(message, {
			description: `Two callbacks of the task came at the same moment, and an answer of the database was lost. Look in the list of executions: has another execution started for this task? If not, use the operation Task → Send Result Again with 'Start Again' (execution ${context.getExecutionId()}).`,
		});
	}
	if (isOurs) notes[key] = 'recorded';
	else delete notes[key];
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

/** Entries of the one row that is used where a row for each task cannot be had. */
const FALLBACK_ENTRIES = 100_000;

let fallbackWasLogged = false;

/**
 * The row of one task in n8n's own de-duplication store.
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
 * Each of its methods throws the database's error.
 */
class StartedTaskRow {
	/**
	 * @param key names the row
	 * @param nodeId the trigger whose row it is, where that is another node of this workflow
	 */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly key: string,
		private readonly nodeId = context.getNode().id,
	) {}

	/**
	 * How many entries it holds: none where nobody has written it. The node's own row, where it has to serve, says
	 * nothing of one task.
	 */
	async size(): Promise<number> {
		const { answer, isOwnRow } = await this.named(
			async (helpers) => await helpers.getProcessedDataCount('node', { mode: 'entries' }),
		);
		return isOwnRow ? answer : 0;
	}

	/** Writes it, with entries beside the key, unless somebody else has. @returns whether it was this call that wrote it */
	async insert(entries: readonly string[]): Promise<boolean> {
		const recorded = await settled(this.record([this.key, ...entries]));
		if ('value' in recorded) return recorded.value.new.includes(this.key);
		if (isSecondRow(recorded.error)) return false;
		throw recorded.error;
	}

	/** Whether it has held an entry until now. From now on it does: n8n has no question that leaves nothing behind. */
	async held(entry: string): Promise<boolean> {
		return (await this.record([entry])).processed.includes(entry);
	}

	private async record(entries: string[]) {
		const options = { mode: 'entries', maxEntries: FALLBACK_ENTRIES } as const;
		const { answer } = await this.named(
			async (helpers) => await helpers.checkProcessedAndRecord(entries, 'node', options),
		);
		return answer;
	}

	/** Calls a helper of n8n's while the node bears the name of the row. */
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

/** Whether the database refused a second row of the same name: PostgreSQL, MySQL, SQLite. */
const isSecondRow = (error: unknown): boolean =>
	error instanceof Error &&
	(('code' in error && ['23505', 'ER_DUP_ENTRY'].includes(String(error.code))) ||
		/UNIQUE constraint failed|duplicate key value|Duplicate entry/i.test(error.message));
