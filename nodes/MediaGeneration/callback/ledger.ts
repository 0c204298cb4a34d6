import { type IExecuteFunctions, type IWebhookFunctions, UserError } from 'n8n-workflow';

import { executionIdOf, modeOf, nodeContext } from '../n8n/internals';
import { LedgerRow } from '../n8n/ledgerRow';
import { comparableId } from '../service/answerFields';
import { writeLog } from '../shared/log';

/**
 * The name of a task among the tasks of one trigger: however a callback writes a UUID, it is the same task. Neither the base
 * URL nor the credential is part of the name: people change both, and a task must not start its workflow again then.
 */
const ledgerKey = comparableId;

/** The name of a task among the tasks of all triggers in this process. */
export const keyInProcess = (
	context: IExecuteFunctions | IWebhookFunctions,
	taskId: string,
): string => `${context.getWorkflow().id} ${context.getNode().id} ${ledgerKey(taskId)}`;

/**
 * Whether a trigger of this workflow has started for a task.
 *
 * @returns undefined if n8n does not let each task have a row, so that nobody can tell
 * @throws the database's error
 */
export async function hasStarted(
	context: IExecuteFunctions,
	triggerId: string,
	taskId: string,
): Promise<boolean | undefined> {
	const row = new LedgerRow(context, ledgerKey(taskId), triggerId);
	if ((await row.size()) > 0) return true;
	return row.isOwnRow ? false : undefined;
}

/** The key in the node's context of what this execution has tried, by the ledger's key of each task. */
const TRIED_KEY = 'triedStarts';

/** `tried`: to write the row. `inDoubt`: nothing tells whether it has. */
type Tried = Record<string, 'tried' | 'inDoubt'>;

/**
 * Writes the ledger's row of a task. To be called when the items leave the trigger: what dies before is started by the next
 * callback. Of several executions that come so far, the one that writes the row starts the workflow. *Retry execution*
 * always starts: a person asks for it.
 *
 * The row names its execution, which goes on whenever it finds its own name: in its next try (n8n offers *Retry On Fail* on
 * triggers), also if the database's answer to the first try was lost, and in queue mode where n8n runs the job of a killed
 * worker again on another worker, under the same id (n8n 2.41), shown by test/e2e/queue.test.ts.
 *
 * @returns whether this execution starts the workflow
 * @throws the database's error; UserError if it is not known who has written the row
 */
export async function claimStart(context: IExecuteFunctions, taskId: string): Promise<boolean> {
	const key = ledgerKey(taskId);
	const row = new LedgerRow(context, key);
	const own = `execution ${executionIdOf(context)}`;
	const isRetry = modeOf(context) === 'retry';
	const tried = (nodeContext(context)[TRIED_KEY] ??= {}) as Tried;
	if (!isRetry && tried[key] === 'inDoubt') throw inDoubt(taskId);
	const isThere = !isRetry && (await row.size()) > 0;
	if (isThere && tried[key] === undefined) return await row.isOf(own);
	// The log comes before the row: if the process is killed in between, n8n keeps nothing that names the task.
	if (!isThere) {
		writeLog(context, 'info', `task ${taskId} starts the workflow (${own})`);
	}
	tried[key] = 'tried';
	const isFirst = await row.insert([own]);
	if (isRetry || isFirst !== undefined) return isRetry || isFirst === true;
	tried[key] = 'inDoubt';
	throw inDoubt(taskId);
}

/** A second start cannot be taken back. A person can make up for a missing start. */
const inDoubt = (taskId: string) =>
	new UserError(`It is not known whether another execution has started for the task ${taskId}`, {
		description:
			'The database did not answer when this execution was to start. Look in the list of executions: has another execution started for this task? If not, use Retry execution on this one, which always starts.',
	});
