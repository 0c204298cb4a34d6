import {
	type IDataObject,
	type IExecuteFunctions,
	type INode,
	type IWebhookFunctions,
	UserError,
} from 'n8n-workflow';

import { executionIdOf, modeOf, nodeContext } from '../n8n/internals';
import { LedgerRow } from '../n8n/ledgerRow';
import { digest, readStored } from '../shared/json';
import { CREDENTIAL_TYPE } from '../service/connect';
import { comparableId } from '../service/taskId';

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

/** A task that may start the workflow once. */
export interface Start {
	/** `accountOf` the task. */
	account: string;
	taskId: string;
}

/** The name of a start in the ledger: however a callback writes a UUID, it is the same task. */
export const startKey = ({ account, taskId }: Start): string =>
	JSON.stringify([account, comparableId(taskId)]);

/** The same name among the starts of all triggers in this process. */
export const keyInProcess = (
	context: IExecuteFunctions | IWebhookFunctions,
	start: Start,
): string => `${context.getWorkflow().id} ${context.getNode().id} ${startKey(start)}`;

/** Whether a trigger of this workflow has started for a task. @throws the database's error */
export const hasStarted = async (
	context: IExecuteFunctions,
	triggerId: string,
	start: Start,
): Promise<boolean> => (await new LedgerRow(context, startKey(start), triggerId).size()) > 0;

/**
 * The ledger's row of a task, as one execution sees it. The row is written when the items leave the trigger, so what
 * dies before that is started by the next callback. Of several executions that come so far, the first one starts the
 * workflow.
 *
 * An execution may have written the row in an earlier try: by *Retry On Fail*, which n8n offers on triggers, or by
 * *Retry execution*. The node's context says so, unless the process was killed or the database's answer was lost. Then
 * the signatures in the row tell.
 */
export class TaskStart {
	private readonly key: string;
	private readonly row: LedgerRow;

	/** @param callbackId names the callback that began this execution, in all its tries */
	constructor(
		private readonly context: IExecuteFunctions,
		private readonly start: Start,
		private readonly callbackId: string,
	) {
		this.key = startKey(start);
		this.row = new LedgerRow(context, this.key);
	}

	/**
	 * Whether another execution has started the workflow for the task.
	 *
	 * @throws the database's error if it is not known who wrote the row; UserError if it will never be known
	 */
	async isTaken(): Promise<boolean> {
		const { notes, key } = this;
		if (notes[key] === 'recorded' || (await this.row.size()) === 0) return false;
		// Only an execution that may have written the row asks, because a question adds to the row.
		if (notes[key] === undefined && modeOf(this.context) !== 'retry') return true;
		notes[key] = (await this.isSigned()) ? 'recorded' : 'asked';
		return notes[key] !== 'recorded';
	}

	/**
	 * Starts the workflow for the task, unless another execution has. To be called when the items leave.
	 *
	 * @returns whether this execution starts the workflow
	 * @throws the database's error if it is not known whether the row was written
	 */
	async claim(): Promise<boolean> {
		const { notes, key, context, row } = this;
		const { taskId } = this.start;
		// The downloads took their time, and n8n would add entries to a row that is there by now.
		if (notes[key] !== 'recorded' && (await row.size()) > 0) return false;
		// The log comes before the row: if the process is killed in between, n8n keeps nothing that names the task.
		context.logger.info(
			`${context.getNode().name}: task ${taskId} starts the workflow (execution ${executionIdOf(context)})`,
		);
		if (notes[key] === 'recorded') return true;
		notes[key] = 'asked';
		const isOurs = await row.insert(this.signatures);
		if (isOurs) notes[key] = 'recorded';
		return isOurs;
	}

	/** What this execution knows of its own tries, by the key of the task. */
	private get notes(): IDataObject {
		const stored = (nodeContext(this.context)[KEY] ??= { version: VERSION, tasks: {} });
		return readStored<{ tasks: IDataObject }>(stored, VERSION).tasks;
	}

	private get signatures(): string[] {
		return QUESTIONS.map((question) => `${this.key} by ${this.callbackId}, ${question}`);
	}

	/**
	 * Whether this execution wrote the row. To ask n8n for a signature is also to write it. So the execution wrote the row
	 * if the row has more of its signatures than entries that were added later.
	 */
	private async isSigned(): Promise<boolean> {
		const { row, signatures, context } = this;
		for (const [earlier, signature] of signatures.entries()) {
			if (!(await row.add(signature))) return false;
			const grown = (await row.size()) - 1 - signatures.length;
			if (earlier >= grown) return true;
		}
		// The row has grown by more entries than there are signatures: by many questions, or by another execution that found
		// no row in the same milliseconds. A second start cannot be taken back. A missing start can be made up for.
		const { taskId } = this.start;
		const message = `It is not known whether another execution has started for the task ${taskId}`;
		throw new UserError(message, {
			description: `Two callbacks of the task came at the same moment, and an answer of the database was lost. Look in the list of executions: has another execution started for this task? If not, read the task with the operation Task → Get (execution ${executionIdOf(context)}).`,
		});
	}
}
