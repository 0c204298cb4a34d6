import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { startCode } from './codeWorkflow';

/** The node of that execution. */
export const STOP_RECORD = 'Tasks of the stopped run';

const noteOf = (stopped: string) =>
	`## The tasks of execution ${stopped}, which was stopped\nThe service goes on with them, and bills those that succeed. To get the results without paying again, add a Media Generation node with **Task → Wait** to the same workflow, connected to nothing. Enter **execution** and the number of *this* execution as **Task ID**: it stands above, after ID#.\n\nAn item without a taskId is an order whose answer did not come: it may have a task, too.`;

/**
 * Leaves a short execution in the workflow's list of executions. n8n keeps nothing of a turn that is stopped, and a node
 * can still start an execution then (shown on n8n 2.41 by test/e2e/action.test.ts).
 *
 * @param items what the execution puts out
 * @returns the id of that execution
 * @throws n8n's error if n8n starts no execution
 */
export async function leaveRecord(
	context: IExecuteFunctions,
	items: INodeExecutionData[],
): Promise<string> {
	const settings = { saveDataSuccessExecution: 'all' as const };
	const note = noteOf(context.getExecutionId());
	const code = { name: STOP_RECORD, start: STOP_RECORD, note, settings };
	const { executionId } = await startCode(context, code, items);
	return executionId;
}
