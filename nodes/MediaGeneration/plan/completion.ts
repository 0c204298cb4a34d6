import type { IExecuteFunctions } from 'n8n-workflow';

import { ItemError } from '../shared/itemError';
import type { ItemParameters } from '../shared/parameters';
import { isTool } from '../shared/tool';
import type { Completion } from './itemPlan';

/** @throws ItemError where it is none of the list, or not for a tool */
export function readCompletion(context: IExecuteFunctions, parameters: ItemParameters): Completion {
	const value = parameters.value('completion');
	if (value === '' || value === 'poll') return 'poll';
	if (value === 'return') return 'return';
	if (value !== 'suspend' && value !== 'trigger') {
		throw new ItemError(
			`The parameter 'Completion' is '${String(value)}', which this version does not know`,
			{
				description:
					"Choose one of the list: 'Wait by Polling', 'Suspend Until Finished', 'Notify a Trigger' or 'Return Immediately'.",
			},
		);
	}
	if (!isTool(context)) return value;
	// An agent needs the answer of the call itself: nothing of it would come back later.
	throw new ItemError(
		`A tool of an AI agent cannot ${value === 'suspend' ? 'suspend the execution' : 'notify a trigger'}`,
		{ description: "Choose 'Wait by Polling' or 'Return Immediately' as 'Completion'." },
	);
}

/** Whether sub-executions wait for the item's task, and not this run of the node. */
export function isWatched(parameters: ItemParameters): boolean {
	return ['suspend', 'trigger'].includes(String(parameters.value('completion')));
}
