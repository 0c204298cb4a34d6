import type { IExecuteFunctions } from 'n8n-workflow';

import { digest } from '../shared/json';
import type { ResultsCheck } from './checkState';

/** What became of the execution that waits for a sub-execution. */
export type ParentState = 'waiting' | 'ended' | 'gone';

/**
 * Whether an execution still waits for its supervisor. It may have been stopped, deleted, or killed before it was
 * suspended.
 *
 * @param check.earlierError of an error that it had before it was suspended
 */
export async function parentState(
	context: IExecuteFunctions,
	{ parentExecutionId, supervisorId = '', earlierError }: ResultsCheck,
): Promise<ParentState> {
	const data = await context.getExecutionDataById(parentExecutionId);
	if (data === undefined) return 'gone';
	const { error } = data.resultData;
	if (error !== undefined && digest(error) !== earlierError) return 'ended';
	const [waiting] = data.executionData?.nodeExecutionStack ?? [];
	const children = waiting?.metadata?.waitingChildExecutionIds;
	// Older n8n does not name them.
	const isOurs = Array.isArray(children)
		? children.includes(supervisorId)
		: data.waitTill !== undefined;
	return isOurs ? 'waiting' : 'ended';
}

/**
 * The error that an execution has which is still under way. n8n hands a stopped execution to its retry with the error
 * in it, unless it has stored which node ran last: so an error alone does not say that the retry has ended.
 *
 * @returns a digest of it; undefined where it has none
 */
export async function earlierError(context: IExecuteFunctions): Promise<string | undefined> {
	if (context.getMode() !== 'retry') return undefined;
	const data = await context.getExecutionDataById(context.getExecutionId());
	const error = data?.resultData.error;
	return error && digest(error);
}
