import { type IDataObject, type IExecuteFunctions, UserError, type INode } from 'n8n-workflow';

import { digest } from '../shared/json';
import { CREDENTIAL_TYPE } from '../service/connect';
import { readStored } from '../shared/storedVersion';
import { StartedTaskRow } from './startedTaskRow';

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
	if (note === 'recorded') return true;
	const asked = typeof note === 'number' ? note : 0;
	const row = new StartedTaskRow(context, key);
	const size = await row.size();
	const isWritten = size > 0;
	if (isWritten && asked === 0 && context.getMode() !== 'retry') return false;
	notes[key] = asked + 1;
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

/** Whether a trigger of this workflow has started for a task. @throws the database's error */
export const hasStarted = async (
	context: IExecuteFunctions,
	triggerId: string,
	start: Start,
): Promise<boolean> => (await new StartedTaskRow(context, keyOf(start), triggerId).size()) > 0;
