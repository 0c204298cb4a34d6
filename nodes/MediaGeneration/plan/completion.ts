import type { IExecuteFunctions } from 'n8n-workflow';

import { ItemError } from '../shared/itemError';
import type { ItemParameters } from '../shared/parameters';
import { isTool } from '../shared/tool';
import type { Completion } from './itemPlan';

/** @throws ItemError where the value is not in the list, or not for a tool */
export function readCompletion(context: IExecuteFunctions, parameters: ItemParameters): Completion {
	const value = parameters.value('completion');
	if (value === '' || value === 'wait') return 'wait';
	if (value === 'return') return 'return';
	if (value !== 'trigger') {
		throw new ItemError(`The parameter 'When to Continue' is '${String(value)}'`, {
			description: "Choose 'Wait for Results', 'Notify a Trigger' or 'Return Immediately'.",
		});
	}
	if (!isTool(context)) return value;
	// An agent needs the answer of the call itself: nothing of it would come back later.
	throw new ItemError('A tool of an AI agent cannot notify a trigger', {
		description: "Choose 'Wait for Results' or 'Return Immediately' in 'When to Continue'.",
	});
}
