import {
	type IDataObject,
	type IExecuteFunctions,
	type INode,
	type INodeExecutionData,
	type IWebhookFunctions,
	UserError,
} from 'n8n-workflow';

import { endWithError, executionIdOf, modeOf, nodeContext, runningNode } from '../n8n/internals';
import { failedTask, isWithoutResult, missingResults, withoutResult } from '../report/taskErrors';
import { taskJson } from '../report/taskItems';
import type { TaskRecord } from '../service/taskRecord';
import { inTableOrder, writeLog } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { settled } from '../shared/clock';
import { LedgerRow } from '../n8n/ledgerRow';
import { comparableId } from '../service/answerFields';

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
 * triggers), also if the database's answer to the first try was lost, and in queue mode where Redis comes back a moment older:
 * then n8n runs an execution again, under the same id, that a worker had taken (test/e2e/queue.test.ts). A job that only
 * stalls n8n 2.41 runs no second time.
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
	if (!isRetry && tried[key] === 'inDoubt') throw unknownStart(taskId);
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
	throw unknownStart(taskId);
}

/** A second start cannot be taken back. A person can make up for a missing start. */
const unknownStart = (taskId: string) =>
	new UserError(`It is not known whether another execution has started for the task ${taskId}`, {
		description:
			'The database did not answer when this execution was to start. Look in the list of executions: has another execution started for this task? If not, use Retry execution on this one.',
	});

/** The settings of each trigger whose last try failed, for its next try by *Retry On Fail*. */
const asChosen = new WeakMap<INode, INode>();

/**
 * Starts the workflow for the tasks that the gate admitted, once for each task. A test run always starts, and neither asks
 * the ledger nor writes to it.
 *
 * @returns the items to go on with: none for a task that another execution starts
 * @throws the database's error, whatever *On Error* says
 */
export async function startWorkflow(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	const node = runningNode(context);
	// Otherwise n8n would start the workflow with an empty item for a task that has started it before.
	Object.assign(node, asChosen.get(node), { alwaysOutputData: false });
	const started = await settled(startAll(context));
	if ('value' in started) return [started.value];
	// Otherwise *On Error: Continue* would start the workflow with the callback as it came, although the task may have
	// started the workflow before.
	asChosen.set(node, { ...node });
	endWithError(context);
	throw started.error;
}

async function startAll(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	const isTest = modeOf(context) === 'manual';
	const output: INodeExecutionData[] = [];
	const tasks: TaskRecord[] = [];
	for (const { json } of context.getInputData()) {
		const { taskId, task: admitted, reference } = json;
		if (typeof taskId !== 'string' || !isRecord(admitted)) continue;
		const task = admitted as unknown as TaskRecord;
		const isStart = isTest || (await claimStart(context, taskId));
		if (!isStart) continue;
		tasks.push(task);
		output.push({ json: fieldsOf(task, { reference }) });
	}
	const empty = withoutResult(output.map(({ json }) => json).filter(isWithoutResult));
	for (const message of [empty, missingResults(tasks)]) {
		if (message === undefined) continue;
		context.addExecutionHints({ message, type: 'warning', location: 'outputPane' });
	}
	return output;
}

/** The output fields of a task. Of a failed task they say why and what to do, as those of the action node do. */
function fieldsOf(task: TaskRecord, sent: IDataObject): IDataObject {
	const fields = taskJson(task, sent);
	if (task.state !== 'FAILURE') return inTableOrder(fields);
	const { told: error, description: advice } = failedTask(task, sent);
	return inTableOrder({ ...fields, error, advice });
}
