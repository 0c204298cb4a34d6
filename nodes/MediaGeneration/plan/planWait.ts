import { type Obstacle, obstacleOf, suspensionWarnings } from '../suspend/canSuspend';
import { resumeCallbackUrl } from '../suspend/resumeUrl';
import type { Account } from '../service/connect';
import { ItemError } from '../shared/itemError';
import type { ItemParameters } from '../shared/parameters';
import { patienceSeconds } from '../shared/n8nInternals';
import { isAwaited, type TaskPlan } from './planTypes';

const MINUTE_MS = 60_000;

/** How long a task is waited for where the user leaves it to the node: a suspended wait holds no memory. */
export const DAY_SECONDS = 86_400;
export const HELD_SECONDS = 600;

/** How the tasks of a run are waited for. */
export interface WaitPlan {
	/** How long a task is waited for where the user leaves it to the node, seconds. */
	seconds: number;
	/** Milliseconds from the last create to the suspension; Infinity where the run is held to its end. */
	suspendAfterMs: number;
	/** Where the service calls a run back that is suspended at once. */
	webhookUrl?: string | undefined;
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
	items: ReadonlyArray<TaskPlan | ItemError>,
	inputs: number,
	first: ItemParameters,
	account: Account,
): WaitPlan {
	const { context } = first;
	const held = { suspendAfterMs: Infinity, warnings: [] };
	if (!items.some((item) => 'kind' in item && isAwaited(item))) {
		return { ...held, seconds: DAY_SECONDS };
	}
	const minutes = first.number('suspendAfter');
	const isAtOnce = minutes === 0;
	const obstacle = obstacleOf(context) ?? (isOneToOne(items, inputs) ? undefined : SEVERAL_RESULTS);
	if (obstacle && !(isAtOnce && obstacle.ifChosen === 'suspend')) {
		const seconds = patienceSeconds(context, HELD_SECONDS);
		if (!isAtOnce) return { ...held, seconds };
		if (obstacle.ifChosen === 'refuse') throw refused(obstacle);
		const told = `This execution is not suspended, although 'Suspend After' is 0: ${obstacle.why}.`;
		return { ...held, seconds, warnings: [told] };
	}
	const wait = { seconds: DAY_SECONDS, suspendAfterMs: minutes * MINUTE_MS };
	if (!isAtOnce) return { ...wait, warnings: [] };
	const told = `This execution is suspended, since 'Suspend After' is 0. But ${obstacle?.why}.`;
	return {
		...wait,
		webhookUrl: resumeCallbackUrl(context, account),
		warnings: [...(obstacle ? [told] : []), ...suspensionWarnings(context)],
	};
}

/** n8n links what comes out of a suspended node by its place, so there must be one item for each input item. */
const isOneToOne = (items: ReadonlyArray<TaskPlan | ItemError>, inputs: number) =>
	items.length === inputs && items.every((item) => item instanceof ItemError || !item.output.split);

const SEVERAL_RESULTS: Obstacle = {
	why: 'n8n would link the items wrongly where an input item has several output items',
	ifChosen: 'hold',
};

const refused = ({ why }: Obstacle) =>
	new ItemError(`This execution cannot be suspended at once: ${why}`, {
		description:
			"Remove the option 'Suspend After', so that the node waits without suspending. No task was created.",
	});
