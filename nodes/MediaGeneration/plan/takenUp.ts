import type { IExecuteFunctions } from 'n8n-workflow';

import { readOutputOptions } from '../report/taskItems';
import { ItemParameters } from '../shared/parameters';
import type { CreatePlan } from './planTypes';

/**
 * The plans of an item whose tasks were created in an earlier turn or try, and whose parameters are refused now: they wait
 * for these tasks, and create no other task.
 *
 * @param parts how many tasks the item has
 */
export function takenUp(
	context: IExecuteFunctions,
	itemIndex: number,
	parts: number,
): CreatePlan[] {
	const parameters = new ItemParameters(context, itemIndex);
	const output = readOutputOptions(parameters, parameters.value('downloadResults'));
	return Array.from({ length: parts }, (_, part) => ({
		...({
			kind: 'create',
			completion: 'wait',
			model: '',
			input: {},
			itemIndex,
			part,
			output,
		} as const),
		...{ sendsLinks: false, isDry: false, retryFailed: 0, maxCostUsd: 0 },
		...{ pollIntervalMs: 2_000, timeoutMs: 0, patienceMs: 0, estimatedCostUsd: undefined },
	}));
}
