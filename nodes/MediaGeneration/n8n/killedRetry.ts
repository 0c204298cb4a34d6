import { type IExecuteFunctions, type ITaskData, UserError } from 'n8n-workflow';

import { internalsOf, isStopOf, modeOf, nodeContext } from './internals';

/** The key in the node's context that marks a refused retry: a retry of that retry is refused, too. */
const REFUSED = 'retriesKilledExecution';

/**
 * Refuses the retry of an execution that was stopped or killed in the first turn of this node. n8n stores what a node has
 * created when the execution sleeps or ends. Of the first turn nothing is stored, so the retry would create each task
 * again, and each task would be paid for twice. It relies on what n8n rebuilds from its log after a kill (n8n 2.41), shown by
 * test/e2e/restart.test.ts.
 *
 * @param isFirstTry whether this execution has not tried the node before
 * @throws UserError if the retried execution was stopped or killed in this node
 */
export async function refuseKilledRetry(
	context: IExecuteFunctions,
	isFirstTry: boolean,
): Promise<void> {
	if (modeOf(context) !== 'retry') return;
	const stored = nodeContext(context);
	const isRefused = stored[REFUSED] === true || (isFirstTry && (await wasKilledHere(context)));
	if (!isRefused) return;
	stored[REFUSED] = true;
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
	if (typeof retryOf !== 'string') return false;
	const { resultData, executionData, waitTill } =
		(await context.getExecutionDataById(retryOf)) ?? {};
	if (resultData === undefined) return false;
	const { runData, error } = resultData;
	const { name } = context.getNode();
	const { nodes = {} } = internalsOf(context).workflow ?? {};
	// A node that the workflow no longer has may be this node by its former name.
	const begun = Object.keys(runData).filter((node) => node === name || nodes[node] === undefined);
	const isBegun = begun.some((node) => runData[node]?.some(isRebuilt));
	// n8n rebuilds from its log which nodes had begun. Without a log there is no run data.
	if (Object.keys(runData).length === 0 || isBegun) return true;
	// If n8n had saved the progress, the data name the node that was next, and no error but that of a stop. n8n keeps what
	// a sleeping execution has created.
	const [next] = executionData?.nodeExecutionStack ?? [];
	const isCut = error === undefined || (waitTill === undefined && isStopOf(retryOf, error));
	return isCut && next?.node.name === name;
}

/** Whether n8n added this run after the execution was killed. */
const isRebuilt = ({ executionStatus, data }: ITaskData): boolean =>
	executionStatus === 'crashed' ||
	data?.main?.[0]?.[0]?.json.isArtificialRecoveredEventItem === true;
