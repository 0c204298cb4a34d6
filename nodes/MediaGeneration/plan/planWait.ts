import type { IExecuteFunctions } from 'n8n-workflow';

import {
	type Account,
	type Obstacle,
	obstacleOf,
	resumeAddress,
	suspensionWarnings,
} from '../suspend/canSuspend';
import { ItemError } from '../shared/itemError';
import type { ItemParameters } from '../shared/parameters';
import { patienceSeconds } from '../shared/n8nInternals';
import { isAwaited, type TaskPlan } from './taskPlan';

const MINUTE_MS = 60_000;

/** How long a task is waited for where the user leaves it to the node: a suspended wait holds no memory. */
export const DAY_SECONDS = 86_400;
export const HELD_SECONDS = 600;

/** How the tasks of a run are waited for. */
export interface WaitPlan {
	/** The plans, each with its time, and with a callback address where the run is suspended at once. */
	items: Array<TaskPlan | ItemError>;
	/** Milliseconds from the last create to the suspension; Infinity where the run is held to its end. */
	suspendAfterMs: number;
	/** What the user is to know. */
	warnings: string[];
}

/**
 * Decides whether a run may be suspended, and when.
 *
 * @param items the plan for each task
 * @param inputs how many input items there are
 * @param first the parameters that hold for the whole run
 * @throws ItemError where the user chose to suspend at once, and n8n cannot resume the execution
 */
export function planWait(
	context: IExecuteFunctions,
	items: ReadonlyArray<TaskPlan | ItemError>,
	inputs: number,
	first: ItemParameters,
	account: Account,
): WaitPlan {
	const awaited = items.filter((item): item is TaskPlan => 'kind' in item && isAwaited(item));
	if (awaited.length === 0)
		return { items: withTimes(items, DAY_SECONDS), suspendAfterMs: Infinity, warnings: [] };
	const minutes = first.number('suspendAfter');
	const isChosen = minutes === 0;
	const obstacle = obstacleOf(context) ?? (isOneToOne(items, inputs) ? undefined : SEVERAL_RESULTS);
	if (obstacle !== undefined && isChosen && obstacle.ifChosen === 'refuse') throw refused(obstacle);
	const isHeld = obstacle !== undefined && !(isChosen && obstacle.ifChosen === 'suspend');
	const told = obstacle && isChosen ? [tellOf(obstacle, isHeld)] : [];
	if (isHeld) {
		const seconds = patienceSeconds(context, HELD_SECONDS);
		return { items: withTimes(items, seconds), suspendAfterMs: Infinity, warnings: told };
	}
	const address = isChosen ? resumeAddress(context, account) : undefined;
	const called = items.map((item) =>
		address !== undefined && 'kind' in item && item.kind === 'create' && isAwaited(item)
			? { ...item, webhookUrl: address }
			: item,
	);
	return {
		items: withTimes(called, DAY_SECONDS),
		suspendAfterMs: minutes * MINUTE_MS,
		warnings: isChosen ? [...told, ...suspensionWarnings(context)] : [],
	};
}

/** n8n links what comes out of a suspended node by its place, so there must be one item for each input item. */
const isOneToOne = (items: ReadonlyArray<TaskPlan | ItemError>, inputs: number) =>
	items.length === inputs && items.every((item) => item instanceof ItemError || !item.output.split);

const SEVERAL_RESULTS: Obstacle = {
	why: 'n8n would link the items wrongly where an input item has several output items',
	ifChosen: 'hold',
};

const withTimes = (items: ReadonlyArray<TaskPlan | ItemError>, seconds: number) =>
	items.map((item) =>
		item instanceof ItemError ? item : { ...item, timeoutMs: item.timeoutMs || seconds * 1000 },
	);

const refused = ({ why }: Obstacle) =>
	new ItemError(`This execution cannot be suspended at once: ${why}`, {
		description:
			"Remove the option 'Suspend After', so that the node waits without suspending. No task was created.",
	});

const tellOf = ({ why }: Obstacle, isHeld: boolean) =>
	isHeld
		? `This execution is not suspended, although 'Suspend After' is 0: ${why}.`
		: `This execution is suspended, since 'Suspend After' is 0. But ${why}.`;
