import { MINUTE, SECOND } from '../durations';
import { groupBy } from '../groupBy';
import { isTerminal, type Row } from '../workflow/n8n/database';
import { SECOND_NODE } from './day';
import { isOutOfDate, isPassedOver, isUntold, withRetried } from './exceptions';
import { errorOf, idOf, inputOf, isPaid, isStored } from './told';
import type { SeenRequest } from './world/network';
import { itemOf, type ServiceTask } from './world/service';
import { PRICE_USD } from './world/workflow';
import type { World } from './world/world';

const isRun = ({ start }: Row) => start === 'Start';

/** Whether an execution was stopped or killed. */
const wasCut = ({ status, isKilled }: Row) => isKilled || status === 'canceled';

const isOf = (row: Row, { by }: { by: string }) => by === `execution ${row.id}`;

/** The creates of an execution, and of the executions that it retries. */
const createsOf = (world: World, row: Row): SeenRequest[] => {
	const rows = withRetried(world, row.id);
	return world.network.seen.filter(
		(seen) => seen.kind === 'create' && rows.some((each) => isOf(each, seen)),
	);
};

/** Whether the service has asked to try a create again later. */
const isPaused = ({ status, retryAfterMs }: SeenRequest) =>
	status === 429 || (status === 503 && retryAfterMs !== undefined);

/** What left the node as an error, by the name of its item, and of the order of a second node for it. */
const errorsOf = (world: World, row: Row) =>
	world.n8n.sunk
		.filter(({ execution }) => execution === row.id)
		.flatMap(({ at, items }) =>
			items
				.filter(({ json }) => json.error !== undefined)
				.map((item) => ({
					at,
					item: itemOf(inputOf(row, item)?.json),
					second: inputOf(row, item)?.json.second,
					text: String(item.json.error),
				})),
		);

/** The place of an item in its run of the node: in a loop each round is a run. */
function positionOf({ history: { day } }: World, item: string): string {
	const number = Number(item.split(' ').pop()) % SECOND_NODE;
	return `${day[0]?.workflow === 'loop' ? 0 : number}.0`;
}

/** Whether an execution has noted in n8n's store that it is about to order an item. */
const isNoted = (world: World, row: Row, item: string): boolean =>
	[...world.n8n.ledger.noted.values()].some(
		({ by, entries }) => isOf(row, { by }) && entries.includes(positionOf(world, item)),
	);

/** What speaks of a pause or a turn that was too long. */
const WANT = /asks? to wait|longer than|429|503|\btime\b/;

const IN_DOUBT = /not known whether the task was created/;

/** The sentences of the contract that speak of turns, kills and retries. Each brings what contradicts it. */
export const turnSentences = {
	'no item of a run that may sleep is refused for want of time in a turn': (world) => {
		const { node } = world.history;
		const isWanting = (row: Row, at: number) =>
			node.completion === 'wait' && at - row.begunAt < node.timeoutSeconds * SECOND;
		return world.n8n.rows.filter(isRun).flatMap((row) => {
			const creates = createsOf(world, row);
			const lastOf = (item: string) => creates.findLast((create) => create.item === item);
			const refused = errorsOf(world, row).filter(({ item, at, text }) => {
				const last = lastOf(item);
				if (IN_DOUBT.test(text)) return false;
				return last && isOf(row, last) && isPaused(last) && WANT.test(text) && isWanting(row, at);
			});
			// Of a run that fails as a whole its error tells.
			const [cause] = withRetried(world, row.id).every(({ status }) => status === 'error')
				? [errorOf(row)?.message ?? '']
				: [];
			const isOnlyPaused = creates.every(
				(create) => create.taskId !== undefined || isPaused(create),
			);
			const hasFailed =
				cause !== undefined &&
				creates.some(isPaused) &&
				isOnlyPaused &&
				WANT.test(cause) &&
				!IN_DOUBT.test(cause) &&
				isWanting(row, row.endedAt ?? 0);
			return [
				...refused.map(({ item, text }) => `execution ${row.id} refuses ${item}: ${text}`),
				...(hasFailed ? [`execution ${row.id} fails: ${cause}`] : []),
			];
		});
	},

	'an item in doubt was sent, or was about to be': (world) =>
		world.n8n.rows.filter(isRun).flatMap((row) => {
			const creates = createsOf(world, row);
			return (
				errorsOf(world, row)
					// Of an execution that was killed after its node nothing tells which item it was.
					.filter(({ text, item }) => IN_DOUBT.test(text) && item !== '')
					.filter(
						({ item, second }) =>
							!creates.some((create) => [item, second].includes(create.item) && !create.isUnsent) &&
							!withRetried(world, row.id).some(
								(each) => wasCut(each) && isNoted(world, each, item),
							) &&
							!isOutOfDate(world, row.id),
					)
					.map(({ item }) => `execution ${row.id} has ${item} in doubt, which was not sent`)
			);
		}),

	'what is paid is never ordered again, also with other parameters or renamed files': (world) => {
		const { service, network } = world;
		const isKept = (task: ServiceTask, at: number) =>
			!task.isTwin && task.createdAt < at && (isPaid(task) || task.endsAt > at);
		return network.seen
			.filter(({ kind }) => kind === 'create')
			.flatMap(({ item, at, by }) => {
				const task = service.tasks.find((each) => each.item === item && isKept(each, at));
				return task && !isUntold(world, idOf(by))
					? [`${by} orders ${item} at ${at} ms, which has ${task.id} of ${task.by}`]
					: [];
			});
	},

	'a retry of a run that was killed in its first turn, after an order, orders nothing': (world) =>
		world.n8n.rows.filter(isRun).flatMap((row) => {
			const killed = withRetried(world, row.id).find(
				(each) =>
					each !== row &&
					each.isKilled &&
					each.retryOf === undefined &&
					!isStored(each) &&
					createsOf(world, each).some(({ isUnsent }) => !isUnsent),
			);
			const { length } = world.network.seen.filter(
				(seen) => seen.kind === 'create' && isOf(row, seen),
			);
			return killed && length > 0 && !isUntold(world, row.id)
				? [`execution ${row.id}, a retry of ${killed.id}, sends ${length} orders`]
				: [];
		}),

	'the rows of a run are gone when the run has ended': (world) => {
		const { ledger } = world.n8n;
		if (ledger.clearsFailed > 0 || ledger.hasBeenOut) return [];
		return [...ledger.rows.keys()].flatMap((key) => {
			const { by = '', entries = [] } = ledger.noted.get(key) ?? {};
			// Of several retries one orders, also after that one has ended.
			if (String(entries[0]).startsWith('retry of ')) return [];
			const row = world.n8n.row(idOf(by));
			if (!row || !isRun(row) || !hasEnded(world, row)) return [];
			// A retry of an execution that was ended in its first turn orders nothing, and neither does the next retry.
			if (wasCut(row) && String(entries[0]).startsWith('first turn of ')) return [];
			// A retry that orders nothing leaves the notes to the next retry.
			if (wasCut(row) && !hasRetryOrdered(world, row)) return [];
			return [`the row "${entries[0]}" of ${by} is still there`];
		});
	},

	'Max Cost is looked at whenever something is ordered': (world) => {
		const { budgetItems } = world.history.node;
		if (budgetItems === 0) return [];
		const priceOf = (row: Row) => world.n8n.priceIn(row);
		return world.n8n.rows.filter(isRun).flatMap((row) => {
			const paidIn = (each: Row) =>
				world.service.tasks.filter((task) => isPaid(task) && isOf(each, task)).length;
			if (paidIn(row) === 0) return [];
			const cost = withRetried(world, row.id)
				.map((each) => paidIn(each) * priceOf(each))
				.reduce((sum, each) => sum + each, 0);
			return cost > budgetItems * PRICE_USD + 1e-9
				? [`execution ${row.id} comes to ${cost} USD of ${budgetItems * PRICE_USD}`]
				: [];
		});
	},

	'a task of which the service says for five minutes that there is none ends as an error': (
		world,
	) => {
		if (world.history.forgotten.length === 0) return [];
		const [storeMs = 0] = world.history.slowStores;
		const missed = world.network.seen.filter(
			({ kind, status, taskId }) =>
				kind === 'read' && status === 404 && taskId && world.service.isForgotten(taskId),
		);
		return world.n8n.rows.filter(isRun).flatMap((row) =>
			[...groupBy(missed, ({ taskId = '' }) => taskId)].flatMap(([taskId, reads]) => {
				const [first, ...more] = reads.filter((read) => isOf(row, read));
				// A run that sleeps looks less and less often. Each further try of n8n looks once.
				// What a second wake stores may take the place of what the first one has heard.
				const againMs = row.isWokenTwice ? ASIDE_MS + FORGOTTEN_MS : 0;
				const lateAt = (first?.at ?? 0) + FORGOTTEN_MS + 2 * storeMs + againMs;
				const late = more.filter(({ at }) => at > lateAt);
				return late.length >= world.history.node.maxTries
					? [`execution ${row.id} reads ${taskId} until ${late.at(-1)?.at} ms`]
					: [];
			}),
		);
	},
} satisfies Record<string, (world: World) => string[]>;

/** A run that sleeps reads a task of which it hears nothing a few minutes later. */
const FORGOTTEN_MS = 10 * MINUTE;

/** So long a run stands aside that was woken twice. */
const ASIDE_MS = 10 * MINUTE;

const REFUSED = /Another retry of execution|n8n has not kept what it created/;

/**
 * Whether a retry orders nothing: it leaves the rows of the retried execution to whoever may order. After a try of
 * *Retry On Fail* n8n may show the stop of the first execution in place of its error.
 */
const isRefused = (world: World, row: Row): boolean =>
	REFUSED.test(row.data) ||
	(row.retryOf !== undefined &&
		/cancelled manually/.test(errorOf(row)?.message ?? '') &&
		!world.network.seen.some((seen) => seen.kind === 'create' && isOf(row, seen)));

/** Whether a retry of an execution, or a retry of that retry, has created a task, and come to its end. */
const hasRetryOrdered = (world: World, row: Row): boolean =>
	world.network.seen.some(({ kind, taskId, by }) => {
		const [retry, ...before] = withRetried(world, idOf(by));
		const isOrder = kind === 'create' && taskId !== undefined;
		return isOrder && retry !== undefined && !wasCut(retry) && before.includes(row);
	});

/** Whether an execution has come to an end, and all its retries: nobody goes on with it but by one more retry. */
function hasEnded(world: World, row: Row): boolean {
	const later = world.n8n.rows.filter((each) => withRetried(world, each.id).includes(row));
	if (later.some(({ id }) => isPassedOver(world, id))) return false;
	// The rows are cleared when the end is stored: a process may die between the two, and the world may end.
	const goesOnUntil = ({ process }: Row) => Math.min(process?.diedAt ?? Infinity, world.time.now);
	const isWhole = (each: Row) =>
		['success', 'error'].includes(each.status) &&
		!each.isKilled &&
		!isRefused(world, each) &&
		goesOnUntil(each) > (each.endedAt ?? 0) + SECOND;
	// Of a retry that was killed before it stored anything nobody knows which rows it was to clear.
	if (later.some((each) => each !== row && each.isKilled && each.sleeps === 0)) return false;
	// An execution that sleeps may be retried, and be killed after that.
	const killedAt = row.isKilled ? (row.process?.diedAt ?? 0) : -Infinity;
	return (
		later.every(({ status }) => isTerminal(status)) &&
		later.some((each) => isWhole(each) && each.begunAt >= killedAt)
	);
}
