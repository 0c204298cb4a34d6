import type { ItemPlan } from '../plan/planTypes';
import { fail, isOrdered, positionOf, type TaskEntry } from './taskEntry';

/**
 * The entries of a run that is planned anew. What is ordered stays as it is, whatever the parameters say now; what failed
 * or was not ordered takes the new parameters.
 *
 * @param before the entries of the try before
 * @param items in the order of the input items
 * @param mayFailAgain whether what has failed is tried again
 * @returns in the order of the input items
 */
export function replanned(
	before: readonly TaskEntry[],
	items: readonly ItemPlan[],
	mayFailAgain = true,
): TaskEntry[] {
	const known = new Map(before.map((entry) => [positionOf(entry), entry]));
	const planned = items.flatMap((plan) => {
		const entry = known.get(positionOf(plan));
		if (entry?.end === 'error' && !mayFailAgain) return [entry];
		return plan.kind === 'refused' ? refused(plan, entry, before) : entryOf(plan, entry);
	});
	const positions = new Set(planned.map(positionOf));
	const left = before.filter((entry) => isOrdered(entry) && !positions.has(positionOf(entry)));
	return [...planned, ...left].sort(
		(a, b) => a.itemIndex - b.itemIndex || a.taskIndex - b.taskIndex,
	);
}

type Refused = Extract<ItemPlan, { kind: 'refused' }>;
type Planned = Exclude<ItemPlan, Refused>;

function entryOf(plan: Planned, known: TaskEntry | undefined): TaskEntry {
	const { itemIndex, taskIndex } = plan;
	if (known && isOrdered(known)) {
		const isAlike = known.plan === undefined || known.plan.kind === plan.kind;
		return isAlike ? { ...known, plan } : known;
	}
	// A task that was only read is read on, if it is still the same one.
	if (known && plan.kind === 'read' && known.taskId === plan.taskId) return { ...known, plan };
	return {
		itemIndex,
		taskIndex,
		plan,
		state: 'free',
		...(known?.failed && { failed: known.failed }),
	};
}

/** The refusal of an item concerns what is not ordered. @returns none if all is ordered */
function refused(
	{ itemIndex, taskIndex, error }: Refused,
	known: TaskEntry | undefined,
	before: readonly TaskEntry[],
): TaskEntry[] {
	const isLeft = (entry: TaskEntry) => entry.itemIndex === itemIndex && !isOrdered(entry);
	const left = known && isOrdered(known) ? before.find(isLeft)?.taskIndex : taskIndex;
	const free = left !== undefined && { itemIndex, taskIndex: left, plan: undefined, state: 'free' };
	// Without a plan nobody can go on with the task, which the error names.
	const entry = (free || (known?.plan === undefined && { ...known })) as TaskEntry | false;
	if (!entry) return [];
	fail(entry, error);
	return [entry];
}
