import { type IExecuteFunctions, type ITaskData, UserError } from 'n8n-workflow';

import { internalsOf } from '../shared/n8nInternals';

/** The place in the node's context that says that this was refused before: a retry of the retry is no better. */
const KEY = 'retriesKilledExecution';

/**
 * Refuses to run where *Retry execution* repeats an execution that was stopped or killed after this node had begun. n8n
 * stores what a node has created when the execution ends or is suspended. Here nothing is stored, so each of the tasks
 * would be created and paid for again. n8n before 2.41 does not tell which execution is retried.
 *
 * @throws UserError there
 */
export async function refuseKilledRetry(context: IExecuteFunctions): Promise<void> {
	if (context.getMode() !== 'retry') return;
	const stored = context.getContext('node');
	if (stored[KEY] !== true && !(await wasKilledHere(context))) return;
	stored[KEY] = true;
	throw new UserError(
		'The execution that is retried was stopped or killed, and n8n has not kept what it created',
		{
			description:
				'No task was created now: a retry would order each task again. Take the task ids from n8n\'s log ("created task"), and fetch the results with Task → Wait. To order again all the same, start the workflow anew.',
		},
	);
}

async function wasKilledHere(context: IExecuteFunctions): Promise<boolean> {
	const retryOf = internalsOf(context).additionalData?.hooks?.retryOf;
	if (typeof retryOf !== 'string' || typeof context.getExecutionDataById !== 'function')
		return false;
	const { resultData, executionData } = (await context.getExecutionDataById(retryOf)) ?? {};
	if (resultData === undefined) return false;
	const { runData, error } = resultData;
	const { name } = context.getNode();
	const { nodes = {} } = internalsOf(context).workflow ?? {};
	// A node that the workflow does not have any more may be this one by its former name.
	const begun = Object.keys(runData).filter((node) => node === name || nodes[node] === undefined);
	const isBegun = begun.some((node) => runData[node]?.some(isRebuilt));
	// n8n rebuilds from its log which nodes had begun. Where it has no log, nothing is there.
	if (Object.keys(runData).length === 0 || isBegun) return true;
	// Where n8n had saved the progress, it names the node that was next, and no error: nothing tells of an end.
	const [next] = executionData?.nodeExecutionStack ?? [];
	return error === undefined && next?.node.name === name;
}

/** Whether n8n has put this in after the execution was killed. */
const isRebuilt = ({ executionStatus, data }: ITaskData): boolean =>
	executionStatus === 'crashed' ||
	data?.main?.[0]?.[0]?.json.isArtificialRecoveredEventItem === true;
