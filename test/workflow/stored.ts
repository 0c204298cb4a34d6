import { createRequire } from 'node:module';

import { createRunExecutionData, type IExecuteData, type IRunExecutionData } from 'n8n-workflow';

/** The library that n8n stores run data with has types for ES modules only. */
const flatted = createRequire(__filename)('flatted') as {
	parse(text: string): unknown;
	stringify(value: unknown): string;
};

/** What n8n's database keeps of an execution. */
export const toStored = (data: IRunExecutionData): string => flatted.stringify(data);

export const fromStored = (text: string): IRunExecutionData =>
	flatted.parse(text) as IRunExecutionData;

/** What n8n stores of an execution that has not begun. */
export const beginning = (
	first: IExecuteData,
	more: Parameters<typeof createRunExecutionData>[0] = {},
): IRunExecutionData =>
	createRunExecutionData({ ...more, executionData: { nodeExecutionStack: [first] } });

/**
 * What *Retry execution* of n8n's list of executions begins with: the node that failed is next, and all that was stored
 * of the first execution is there.
 */
export function dataOfRetry(stored: string): IRunExecutionData {
	const data = fromStored(stored);
	const { lastNodeExecuted } = data.resultData;
	if (lastNodeExecuted) {
		delete data.resultData.error;
		const runs = data.resultData.runData[lastNodeExecuted];
		if (runs?.at(-1)?.error !== undefined) runs.pop();
	}
	return data;
}
