import type { IExecuteFunctions } from 'n8n-workflow';

import { readOutputOptions } from '../report/taskItems';
import { MIN_READ_INTERVAL_MS } from '../service/client';
import { ItemParameters } from '../shared/parameters';
import type { ItemPlan, TaskPlan } from './planTypes';

/** What an earlier turn or try knows of one task of an item. */
export interface EarlierPart {
	/** Whether there is a task, or may be a task. */
	isBegun: boolean;
	/** The id of a task that the run has not created. */
	foreignId?: string | undefined;
}

/**
 * The plans of an item that was planned before. Expressions may give something else this time, or nothing. What was begun
 * goes on all the same, and an item gets no more tasks than it had.
 *
 * @param planned what the parameters give this time
 * @param earlier the item's tasks, in their order; none if the item was not planned before
 */
export function withEarlier(
	context: IExecuteFunctions,
	itemIndex: number,
	planned: ItemPlan[],
	earlier: readonly EarlierPart[],
): ItemPlan[] {
	if (earlier.length === 0) return planned;
	const parts = Math.max(planned.length, earlier.length);
	return Array.from({ length: parts }, (_, part) => part).flatMap((part) => {
		const [plan, known] = [planned[part], earlier[part]];
		if (known?.isBegun === true && (plan === undefined || plan.kind === 'refused')) {
			return takenUp(context, itemIndex, part, known);
		}
		const isNew = known === undefined && plan?.kind === 'create';
		return plan === undefined || isNew ? [] : plan;
	});
}

/** Waits for a task, and creates none. */
function takenUp(
	context: IExecuteFunctions,
	itemIndex: number,
	part: number,
	{ foreignId: taskId }: EarlierPart,
): TaskPlan {
	const output = readOutputOptions(new ItemParameters(context, itemIndex));
	const base = { itemIndex, part, output, pollIntervalMs: MIN_READ_INTERVAL_MS, timeoutMs: 0 };
	if (taskId !== undefined) return { ...base, kind: 'read', taskId, wait: true };
	return {
		...base,
		kind: 'create',
		completion: 'wait',
		model: '',
		input: {},
		sendsLinks: false,
		isDry: false,
		retryFailed: 0,
		maxCostUsd: 0,
		patienceMs: 0,
		estimatedCostUsd: undefined,
	};
}
