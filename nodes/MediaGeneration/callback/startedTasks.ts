import { type IDataObject, type IExecuteFunctions, UserError } from 'n8n-workflow';

import { readStored } from '../shared/storedState';
import { TaskRow } from './taskRow';

/** The place in the node's context, which outlives a try of the node. */
const KEY = 'startedTasks';

/** Raised when the shape of what is noted there changes. Version 0.1.0 noted nothing. */
const VERSION = 1;

/** So often an execution may ask whether a row is its own: only a question whose answer was lost is followed by another. */
const MAX_QUESTIONS = 3;

/** So many entries has a row at least that two have meant to write first. */
const ROW_OF_TWO = 1 + 2 * MAX_QUESTIONS;

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
 * @param key the task id, or what else is to start the workflow once
 * @param callbackId names the callback that this execution was begun by, in all its tries; undefined where an older
 *   version of this package has begun it: then a retry from the list goes on in any case
 * @throws the database's error, where nobody knows what it did; UserError where nobody will ever know
 */
export async function mayStart(
	context: IExecuteFunctions,
	key: string,
	callbackId?: string,
): Promise<boolean> {
	const stored = (context.getContext('node')[KEY] ??= { version: VERSION, tasks: {} });
	const { tasks: notes } = readStored(stored, VERSION, { tasks: 'object' }) as {
		tasks: IDataObject;
	};
	const note = notes[key];
	if (note === 'recorded') return true;
	const isRetry = context.getMode() === 'retry';
	const asked = typeof note === 'number' ? note : 0;
	const row = new TaskRow(context, key);
	const size = await row.size();
	const isWritten = size > 0;
	if (isWritten && asked === 0 && !isRetry) return false;
	notes[key] = asked + 1;
	const owner = callbackId ?? `execution ${context.getExecutionId()}`;
	const signature = (question: number) => `${key} by ${owner}, ${question}`;
	const isOurs = isWritten
		? await row.held(signature(Math.min(asked, MAX_QUESTIONS - 1)))
		: await row.insert(Array.from({ length: MAX_QUESTIONS }, (_, index) => signature(index)));
	const isOfOlder = isRetry && callbackId === undefined;
	// Of two that find no row in the same milliseconds, n8n adds what the later one writes to the row of the first.
	if (isWritten && isOurs && size >= ROW_OF_TWO && !isOfOlder) throw unknownFirst(context, key);
	const mayGoOn = isOurs || isOfOlder;
	if (mayGoOn) notes[key] = 'recorded';
	else delete notes[key];
	return mayGoOn;
}

/**
 * Whether a trigger of this workflow has started for a task.
 *
 * @param triggerId the id of its node
 * @throws the database's error
 */
export async function hasStarted(
	context: IExecuteFunctions,
	triggerId: string,
	taskId: string,
): Promise<boolean> {
	return (await new TaskRow(context, taskId, triggerId).size()) > 0;
}

/** To start the workflow twice cannot be taken back; to start it again can be asked for. */
function unknownFirst(context: IExecuteFunctions, key: string): UserError {
	return new UserError(
		`It is not known whether another execution has started for the task${key.startsWith(' ') ? '' : ` ${key}`}`,
		{
			description: `Two callbacks of it came in the same moment, and the database's answer to this one was lost. Look in the list of executions whether another has started with it. If none has, use the operation Task → Redeliver with 'Start Again' (execution ${context.getExecutionId()}).`,
		},
	);
}
