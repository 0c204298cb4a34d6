import { MINUTE, SECOND } from '../../durations';
import type { SeenRequest } from '../world/network';
import { isClaimUndecided, isPassedOver, isUntold } from './exceptions';
import type { Check } from './sentences';
import {
	createsBy,
	isOf,
	isOfSecond,
	isSent,
	isStored,
	isWaited,
	REFUSED,
	runsOf,
	wasCut,
	withRetried,
} from './told';

/** A run has heard of a stop within this time: where n8n tells it nothing, it asks every few seconds. */
const HEARD_MS = 5 * SECOND;

/** What who stops, restarts and retries relies on. Each brings what contradicts it. */
export const retrier: Record<string, Check> = {
	'a run that is awake for longer than Sleep After, or orders after that, is stored': (world) => {
		const { workflow, node, trouble, n8n } = world.history;
		// What is held is not stored, and without its database n8n stores nothing.
		if (workflow === 'hangs up' || !isWaited(world.history) || trouble.length > 0) return [];
		// An execution that waits for a place is not awake.
		if (/places?$/.test(n8n)) return [];
		return runsOf(world)
			.filter((row) => row.isKilled && row.sleeps === 0)
			.flatMap((row) => {
				const awakeMs = (row.process?.diedAt ?? 0) - row.begunAt;
				if (awakeMs < node.suspendAfter * MINUTE + 2 * MINUTE + world.history.fileSeconds * 1_000)
					return [];
				return [`execution ${row.id} dies after ${awakeMs} ms, and n8n has stored nothing of it`];
			});
	},

	'what n8n has stored goes on when it is retried': (world) =>
		runsOf(world)
			.filter((row) => row.isKilled && row.sleeps > 0 && row.retryOf === undefined)
			.flatMap((row) => {
				const retries = runsOf(world).filter(
					(each) => each !== row && !wasCut(each) && withRetried(world, each.id).includes(row),
				);
				// Of several retries the first one goes on, if the database has told it that it is the first.
				return world.n8n.ledger.failures === 0 &&
					retries.length > 0 &&
					retries.every(({ data }) => REFUSED.test(data)) &&
					!isClaimUndecided(world) &&
					!retries.every(({ id }) => isPassedOver(world, id))
					? [`of execution ${row.id} no retry goes on: ${retries.map(({ id }) => id).join(', ')}`]
					: [];
			}),

	'a retry of a run that was killed in its first turn, after an order, orders nothing': (world) =>
		runsOf(world).flatMap((row) => {
			const killed = withRetried(world, row.id).find(
				(each) =>
					each !== row &&
					each.isKilled &&
					each.retryOf === undefined &&
					each.sleeps === 0 &&
					!isStored(each),
			);
			if (!killed || isUntold(world, row.id)) return [];
			// Of two nodes one may not have begun.
			const isBegun = ({ item }: SeenRequest) =>
				createsBy(world, killed).some(
					(create) => isSent(create) && isOfSecond(create.item) === isOfSecond(item),
				);
			const { length } = createsBy(world, row).filter(isBegun);
			return length > 0
				? [`execution ${row.id}, a retry of ${killed.id}, sends ${length} orders`]
				: [];
		}),

	'of several retries one orders': (world) =>
		runsOf(world).flatMap((row) => {
			const retries = world.n8n.rows.filter(({ retryOf }) => retryOf === row.id);
			const ordering = retries.filter(
				(retry) => createsBy(world, retry).some(isSent) && !isUntold(world, retry.id),
			);
			return ordering.length > 1
				? [`${ordering.map(({ id }) => id).join(' and ')}, retries of ${row.id}, both order`]
				: [];
		}),

	'after a stop, also of a caller, orders leave for some seconds at most': (world) => {
		const { ends, workflow } = world.history;
		// n8n has ended the execution of an MCP server before the tool of the server begins.
		if (ends !== 'stopped' || workflow === 'beside' || workflow === 'hangs up') return [];
		const stopped = world.n8n.rows.find(({ status }) => status === 'canceled');
		const stoppedAt = stopped?.endedAt ?? Infinity;
		const ended = world.n8n.rows.filter(
			(row) => row === stopped || row.caller?.executionId === stopped?.id,
		);
		const { length } = world.network.seen.filter(
			(seen) =>
				seen.kind === 'create' &&
				seen.at > stoppedAt + HEARD_MS &&
				ended.some((row) => isOf(row, seen)),
		);
		return length > 0 ? [`${length} orders long after the stop at ${stoppedAt} ms`] : [];
	},

	'no retry lets the bare input out': (world) =>
		!isWaited(world.history)
			? []
			: world.n8n.sunk
					.filter(({ node }) => node === 'Sink')
					.flatMap(({ execution, items }) =>
						items
							.filter(
								({ json }) =>
									json.taskId === undefined &&
									json.error === undefined &&
									json.taskIds === undefined,
							)
							.map(() => `execution ${execution} lets its input out`),
					),
};
