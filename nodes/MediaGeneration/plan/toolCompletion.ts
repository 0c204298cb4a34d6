import type { IExecuteFunctions } from 'n8n-workflow';

import { ItemError } from '../shared/itemError';
import { isTool } from '../shared/tool';
import type { Completion } from './itemPlan';

/**
 * An agent needs the answer of the call itself: nothing of it would come back later.
 *
 * @throws ItemError where a tool is to suspend the execution or to notify a trigger
 */
export function refuseInTool(context: IExecuteFunctions, completion: Completion): void {
	if (!isTool(context) || completion === 'poll' || completion === 'return') return;
	throw new ItemError(
		`A tool of an AI agent cannot ${completion === 'suspend' ? 'suspend the execution' : 'notify a trigger'}`,
		{ description: "Choose 'Wait by Polling' or 'Return Immediately' as 'Completion'." },
	);
}
