import { ARTIFICIAL_ITEM } from './world/crash';
import type { Row } from './world/database';
import type { ServiceTask } from './world/service';
import type { World } from './world/world';

/**
 * Whether n8n let a suspended run's items out before their time, as they were when it was suspended. It runs no
 * execution again that has died, so that nobody looks any more where the supervisor is killed at work; and it runs a
 * suspended node not again where a user retries the execution that she has stopped.
 */
export function isN8nsDoing(world: World, execution: string): boolean {
	if (!wasSuspended(world, execution)) return false;
	const [, ...retried] = withRetried(world, execution);
	if (retried.some(({ status, waits }) => status === 'canceled' && waits > 0)) {
		return world.except('a suspended run was stopped and retried: its items leave as they were');
	}
	const what = 'the supervisor of a suspended run was killed at work: its items leave as they were';
	return supervisorsKilledAtWork(world, execution).length > 0 && world.except(what);
}

/** It was not suspended yet, so that nothing has it go on but a retry by hand. */
export function isKilledUnsuspended({ n8n }: World, by: string): boolean {
	const row = n8n.row(by.replace('execution ', ''));
	return row !== undefined && row.isKilled && row.waits === 0;
}

/**
 * Of such a supervisor n8n may have no results: in queue mode it ends it with an error of its own, and the node that
 * waits fails with that; and where its log says that the last node had ended, n8n makes up one item in their place.
 */
export function hasLostItsResults(world: World, execution: string): boolean {
	if (!wasSuspended(world, execution)) return false;
	const killed = supervisorsKilledAtWork(world, execution);
	const what = 'the supervisor of a suspended run was killed at work';
	if (killed.some(({ status }) => status === 'error'))
		return world.except(`${what}: the node fails`);
	const isMadeUp = killed.some(({ data }) => data.includes(ARTIFICIAL_ITEM));
	return isMadeUp && world.except(`${what}: n8n makes up an item`);
}

const supervisorsKilledAtWork = ({ n8n }: World, execution: string) =>
	n8n.rows.filter(
		({ parent, isKilled, resumes }) => parent === execution && isKilled && resumes > 0,
	);

/** The clock counts for what outlives its process. */
export const setForwardMs = (world: World, execution: string) =>
	wasSuspended(world, execution) ? world.setForwardMs : 0;

/** An execution, and back along its retries to the first. */
function withRetried(world: World, execution: string): Row[] {
	const row = world.n8n.row(execution);
	return row ? [row, ...withRetried(world, row.retryOf ?? '')] : [];
}

/** Whether an execution was suspended, or goes back by retries to one that was. */
const wasSuspended = (world: World, execution: string): boolean =>
	withRetried(world, execution).some(({ waits }) => waits > 0);

/** n8n runs no resumed execution again, so that nobody looks any more where the supervisor is killed at work. */
export function isUnwatched(world: World, { by }: ServiceTask): boolean {
	const what = 'the supervisor of callbacks was killed at work: lost ones are not made up for';
	const killed = supervisorsKilledAtWork(world, by.replace('execution ', ''));
	return killed.length > 0 && world.except(what);
}
