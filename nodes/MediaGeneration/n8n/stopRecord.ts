import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { startCode } from './codeWorkflow';

const START = 'Tasks of the stopped run';

/**
 * Leaves a short execution in the workflow's list of executions. n8n keeps nothing of a turn that is stopped, and a node
 * can still start an execution then (shown on n8n 2.41 by test/e2e/action.test.ts).
 *
 * @param items what the execution puts out
 * @throws n8n's error if n8n starts no execution
 */
export async function leaveRecord(
	context: IExecuteFunctions,
	items: INodeExecutionData[],
): Promise<void> {
	const settings = { saveDataSuccessExecution: 'all' as const };
	await startCode(context, { name: START, start: START, settings }, items);
}
