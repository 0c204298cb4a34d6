import type { Row } from '../../workflow/n8n/database';
import { SUB } from '../../workflow/n8n/executions';
import type { ServiceTask } from '../world/service';
import type { World } from '../world/world';
import { isStored, withRetried } from './told';

/** What n8n leaves no way around: each is accepted only where that very thing has happened, and is counted. */

/** The clock counts for what outlives its process. */
export const setForwardMs = (world: World, execution: string) =>
	withRetried(world, execution).some(({ sleeps }) => sleeps > 0) ? world.setForwardMs : 0;

/** n8n runs no execution again that died in a turn: nobody looks for the callback, until a user retries the check. */
export function isUnwatched(world: World, { id }: ServiceTask): boolean {
	const what = 'the check for callbacks was killed in a turn: lost ones are not made up for';
	const killed = world.n8n.rows.filter(
		({ start, isKilled, begin }) => start === SUB && isKilled && begin.includes(id),
	);
	return killed.length > 0 && world.except(what);
}

/**
 * The database's answer was lost when an execution wrote the row of its task, and another execution has written into the
 * same row in the same milliseconds: nothing tells who was first. The error says so.
 */
export function isUndecided(world: World, { id }: ServiceTask): boolean {
	const what =
		'the answer to the row of a start was lost: the execution says so, and starts when it is retried';
	const said = `It is not known whether another execution has started for the task ${id}`;
	const isSaid = world.n8n.rows.some(({ data }) => data.includes(said));
	return world.n8n.ledger.failures >= 1 && isSaid && world.except(what);
}

/** A retry was killed while it asked for a claim that another one had in the same milliseconds: nothing tells who was first. */
export const isClaimUndecided = (world: World): boolean =>
	[...world.n8n.ledger.rows.values()].some(
		(entries) => entries.filter((entry) => `${entry}`.startsWith('claimed by ')).length > 1,
	) && world.except('two retries asked for one claim, and were killed: no retry goes on');

/** In queue mode n8n erases what it has stored of an execution of the trigger whose worker was killed: nobody can retry it. */
export const isErased = (world: World, { id }: ServiceTask): boolean =>
	world.n8n.rows.some(
		({ start, isKilled, status, begin }) =>
			start === 'Trigger' && isKilled && status === 'error' && begin.includes(id),
	) && world.except('n8n erased an execution of the trigger whose worker was killed');

/** With the currently saved workflow n8n passes over a node that slept: what leaves then says what it is. */
export const isPassedOver = (world: World, execution: string): boolean =>
	withRetried(world, execution).some(({ isOfSaved }) => isOfSaved) &&
	world.except('a run was retried with the currently saved workflow: the node is passed over');

/**
 * A run was killed in its first turn, and so was its retry before its node wrote anything: the retry of that retry cannot
 * know of the first execution, since n8n tells it of the second one alone.
 */
const isUnnamed = (world: World, execution: string): boolean =>
	withRetried(world, execution).some(
		(row) =>
			row.id !== execution &&
			row.retryOf !== undefined &&
			row.isKilled &&
			!isStored(row) &&
			![...world.n8n.ledger.rows.values()].flat().includes(`first turn of ${row.id}`),
	) &&
	world.except('a retry was killed before its node began: n8n names the first execution nowhere');

/** A user stops an execution in the moment before n8n begins it: n8n stores the stop, and the execution runs all the same. */
const isStopUnheard = (world: World, execution: string): boolean =>
	withRetried(world, execution).some((row) => row.isStopUnheard) &&
	world.except('an execution was stopped before n8n had begun it, and ran all the same');

/** n8n stores the second wake of an execution after the first: what the first wake has done stands in the log alone. */
export const isOutOfDate = (world: World, execution: string): boolean =>
	withRetried(world, execution).some((row) => row.isOutOfDate) &&
	world.except('n8n stored the second wake of an execution last: what the first one did is lost');

/** The database is away when an execution ends: n8n lists it as running until n8n is started again, whatever its nodes are. */
export const isEndUnstored = (world: World, { isEndUnstored }: Row): boolean =>
	isEndUnstored === true &&
	world.except('an execution ended while the database was away: n8n lists it as running');

/** Whether nothing tells an execution that another one has ordered the same. */
export const isUntold = (world: World, execution: string): boolean =>
	isUnnamed(world, execution) || isStopUnheard(world, execution);
