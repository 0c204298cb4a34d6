import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { isRecord } from '../shared/json';
import { settled } from '../shared/promises';

/** What n8n has stored of the node. */
interface Stored {
	/** The data of the node, as `nodeContext` gives them. */
	kept: IDataObject;
	/** When n8n is to wake the execution, milliseconds since 1970; undefined if it does not sleep. */
	wakeAt: number | undefined;
}

/**
 * Reads what n8n has stored last of this very execution: another process may run it, too.
 *
 * @returns `gone` if n8n has removed the execution: it does so at the end, where the workflow's settings save no successful
 *   executions; undefined if n8n does not tell
 */
export async function storedContext(
	context: IExecuteFunctions,
): Promise<Stored | 'gone' | undefined> {
	const read = await settled(context.getExecutionDataById(context.getExecutionId()));
	if ('error' in read) return undefined;
	if (read.value === undefined) return 'gone';
	const { executionData, waitTill } = read.value;
	const kept = executionData?.contextData[`node:${context.getNode().name}`];
	if (!isRecord(kept)) return undefined;
	return { kept, wakeAt: waitTill === undefined ? undefined : new Date(waitTill).getTime() };
}
