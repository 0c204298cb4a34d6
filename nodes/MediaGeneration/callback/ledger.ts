import {
	type IDataObject,
	type IExecuteFunctions,
	type INode,
	type IWebhookFunctions,
	UserError,
} from 'n8n-workflow';

import { executionIdOf, modeOf, nodeContext } from '../n8n/internals';
import { LedgerRow } from '../n8n/ledgerRow';
import { comparableId } from '../service/answerFields';
import { CREDENTIAL_TYPE } from '../service/connect';
import { readStored } from '../shared/json';

/** @returns the id that n8n gave to the node's credential; empty where it has none */
export const credentialIdOf = ({ credentials }: INode): string =>
	credentials?.[CREDENTIAL_TYPE]?.id ?? '';

/** The key in the node's context, which lasts from one try of the node to the next. */
const KEY = 'startedTasks';

/** To be raised when the stored shape changes. */
const VERSION = 1;

/** A task that may start the workflow once. */
export interface Start {
	/** The address of the service: two services may use the same task ids. */
	baseUrl: string;
	taskId: string;
}

/**
 * The name of a start in the ledger: however a callback writes a UUID, it is the same task. Neither the credential nor its
 * key is part of the name: people replace both, and a task must not start its workflow again then.
 */
export const startKey = ({ baseUrl, taskId }: Start): string =>
	JSON.stringify([baseUrl, comparableId(taskId)]);

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
 * dies before that is started by the next callback. Of several executions that come so far, the one that writes the row
 * starts the workflow. *Retry execution* always starts: a person asks for it.
 *
 * n8n offers *Retry On Fail* on triggers: the next try of an execution that has written the row goes on, because the
 * node's context says so.
 */
export class TaskStart {
	private readonly key: string;
	private readonly row: LedgerRow;

	constructor(
		private readonly context: IExecuteFunctions,
		private readonly start: Start,
	) {
		this.key = startKey(start);
		this.row = new LedgerRow(context, this.key);
	}

	/**
	 * Whether another execution has started the workflow for the task.
	 *
	 * @throws the database's error; UserError if it is not known who wrote the row
	 */
	async isTaken(): Promise<boolean> {
		const { notes, key, context } = this;
		if (modeOf(context) === 'retry' || notes[key] === 'written') return false;
		if ((await this.row.size()) === 0) return false;
		if (notes[key] === undefined) return true;
		// A second start cannot be taken back. A person can make up for a missing start.
		const message = `It is not known whether another execution has started for the task ${this.start.taskId}`;
		throw new UserError(message, {
			description:
				'The database did not answer when this execution was to start. Look in the list of executions: has another execution started for this task? If not, use Retry execution on this one, which always starts.',
		});
	}

	/**
	 * Starts the workflow for the task, unless another execution has. To be called when the items leave.
	 *
	 * @returns whether this execution starts the workflow
	 * @throws as `isTaken`
	 */
	async claim(): Promise<boolean> {
		// The downloads took their time.
		if (await this.isTaken()) return false;
		const { notes, key, context } = this;
		// The log comes before the row: if the process is killed in between, n8n keeps nothing that names the task.
		context.logger.info(
			`${context.getNode().name}: task ${this.start.taskId} starts the workflow (execution ${executionIdOf(context)})`,
		);
		if (notes[key] === 'written') return true;
		notes[key] = 'asked';
		const isFirst = await this.row.insert();
		if (isFirst) notes[key] = 'written';
		else delete notes[key];
		return isFirst || modeOf(context) === 'retry';
	}

	/** What this execution knows of its own tries, by the key of the task. */
	private get notes(): IDataObject {
		const stored = (nodeContext(this.context)[KEY] ??= { version: VERSION, tasks: {} });
		return readStored<{ tasks: IDataObject }>(stored, VERSION).tasks;
	}
}
