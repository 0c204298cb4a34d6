import { MIN_READ_INTERVAL_MS } from '../../../nodes/MediaGeneration/service/client';
import { MINUTE, SECOND } from '../../durations';
import { groupBy } from '../../groupBy';
import type { Row } from '../../workflow/n8n/database';
import { type History, hasTwoNodes, longestTaskMs } from '../history';
import type { SeenRequest } from '../world/network';
import type { ServiceTask } from '../world/service';
import type { World } from '../world/world';
import { isEndUnstored } from './exceptions';
import type { Check } from './sentences';
import {
	createsBy,
	createsOf,
	errorOf,
	errorsOf,
	firstOf,
	IN_DOUBT,
	isKeyRefused,
	isOf,
	isOfSecond,
	isSent,
	isWaited,
	outOf,
	runsOf,
	withRetried,
} from './told';

/** A run may be late by this. */
const LATE_MS = 10 * SECOND;

/** Between two looks of n8n. */
const LOOK_MS = MINUTE;

/** So long before n8n's time limit the items leave, and some seconds are for the work that is under way. */
const LEFT_MS = 15 * SECOND;

/** A turn after the first one lasts so long, while there is something left to order. */
const TURN_MS = 55 * SECOND;

/** A run that sleeps reads a task of which it hears nothing a few minutes later. */
const FORGOTTEN_MS = 10 * MINUTE;

/** Whether nothing happens but the work itself, and nobody else is in its way. */
export const isCalm = (history: History): boolean => {
	const { ends, limitSeconds, n8n, service, node } = history;
	const bad = [
		...[history.trouble, history.requests, history.limits, history.keyChanges],
		...[history.clockJumps, history.kills, history.acts, history.sleeps, history.doubleWakes],
		...[history.storeTroubles, history.longPauses, history.unfit, history.forgotten],
		...[service.failing, service.hanging],
	];
	return (
		bad.every(({ length }) => length === 0) &&
		ends === 'by itself' &&
		limitSeconds === 0 &&
		node.budgetItems === 0 &&
		service.maxUnfinished + service.maxPerSecond + service.maxPerMinute + service.lagMs === 0 &&
		!/places?$/.test(n8n)
	);
};

/** Whether the runs are those of one node whose items leave together, and nothing disturbs them. */
const isPlain = (history: History) =>
	isCalm(history) && ['one node', 'beside'].includes(history.workflow);

/** The orders that the service took, of one node of an execution. */
const ordersOf = (world: World, row: Row, second: boolean) =>
	createsBy(world, row).filter(
		({ taskId, item }) => taskId !== undefined && isOfSecond(item) === second,
	);

/** So many files of a run come at a time. */
const FILES_AT_ONCE = 10;

/** How long the tasks and the files of a node of an execution take at least, milliseconds. */
function idealMs({ service, history }: World, row: Row, second: boolean): number {
	const tasks = service.tasks.filter((task) => isOf(row, task) && isOfSecond(task.item) === second);
	const times = tasks.map(({ createdAt, endsAt }) => endsAt - createdAt);
	const sum = times.reduce((all, each) => all + each, 0);
	const longest = Math.max(0, ...times);
	const fileMs = history.fileSeconds * SECOND;
	const filesMs = fileMs * Math.ceil(times.length / FILES_AT_ONCE);
	const onPlaces = sum / history.node.maxInFlight + longest / 2;
	return Math.max(Math.max(longest, onPlaces) + fileMs, longest / 2 + filesMs);
}

/** Whether the service, or something before it, has certainly not taken an order. */
const isRefused = ({ status, taskId, isUnsent }: SeenRequest) =>
	taskId === undefined && isUnsent !== true && status >= 400;

/**
 * Whether an item may be given up in a trouble: its node had no task before, or the item was refused twice, and no other item of
 * the node since the service has taken an order.
 */
function mayGiveUp(world: World, row: Row, troubledAt: number, item: string) {
	const run = createsBy(world, row).filter((seen) => isOfSecond(seen.item) === isOfSecond(item));
	const taken = run.flatMap(({ taskId, answeredAt }) =>
		taskId !== undefined && answeredAt !== undefined ? [answeredAt] : [],
	);
	if (!taken.some((at) => at < troubledAt)) return true;
	const [again, before] = run.filter((seen) => seen.item === item && isRefused(seen)).reverse();
	if (!again || !before) return false;
	const takenAt = Math.max(...taken.filter((at) => at < again.at));
	return !run.some(
		(seen) => seen.item !== item && isRefused(seen) && seen.at > takenAt && seen.at <= again.at,
	);
}

/** When n8n cancels an execution, milliseconds since the history began. */
const limitAtOf = ({ limitSeconds }: History, { startedAt = 0 }: Row) =>
	limitSeconds === 0 ? Infinity : startedAt + limitSeconds * SECOND;

/**
 * Whether the time of an execution was up while n8n had no database, or no place for it: n8n could not wake it, and cancels it
 * when it does.
 */
function wasNotWoken(history: History, row: Row) {
	const [trouble] = history.trouble;
	const { wokenAt = 0, endedAt = 0 } = row;
	const limitAt = limitAtOf(history, row);
	if (/places?$/.test(history.n8n) && wokenAt > limitAt - LEFT_MS) return true;
	if (trouble?.what !== 'database away') return false;
	const backAt = trouble.at + trouble.forMs;
	return endedAt > backAt && limitAt >= trouble.at && limitAt <= backAt + LOOK_MS;
}

/** Whether the service has asked to try a create again later. */
const isPaused = ({ status, retryAfterMs }: SeenRequest) =>
	status === 429 || (status === 503 && retryAfterMs !== undefined);

/** What speaks of a pause or a turn that was too long. */
const WANT = /asks? to wait|longer than|\b(?:429|503|time)\b/;

/** When the time of a task began to be counted. */
function waitBegan(world: World, task: ServiceTask): number {
	const first = firstOf(world, task);
	const create = world.network.seen.find(
		({ kind, taskId }) => kind === 'create' && taskId === first.id,
	);
	return create?.answeredAt ?? first.createdAt;
}

/** Whether a task was waited for no more at a moment, since the service had refused the key for it. A further try takes it up. */
function isGivenUp({ network }: World, task: ServiceTask, at: number): boolean {
	const reads = network.seen.filter(
		({ kind, taskId, by }) => kind === 'read' && taskId === task.id && by === task.by,
	);
	const last = reads.findLast((read) => read.at <= at);
	const next = reads.find((read) => read.at > at);
	return (
		last !== undefined &&
		isKeyRefused(last.status) &&
		(next === undefined || next.at - last.at > 3 * MIN_READ_INTERVAL_MS)
	);
}

/** Reads that follow no interval: the last one at the deadline, and the first one of another try or turn. */
function isFollowUp(world: World, read: SeenRequest, before: SeenRequest | undefined): boolean {
	const task = world.service.task(read.taskId ?? '');
	if (!task || !before) return true;
	const { timeoutSeconds, maxTries } = world.history.node;
	return maxTries > 1 || read.at - firstOf(world, task).createdAt >= timeoutSeconds * SECOND;
}

/** What who runs a batch sees, and when. Each brings what contradicts it. */
export const batch: Record<string, Check> = {
	'what ends within Sleep After is out ten seconds later at the latest': (world) => {
		const { history } = world;
		const { items, maxInFlight, suspendAfter } = history.node;
		// The second node of an execution begins when the first one has ended.
		const tasksMs = longestTaskMs(history) * (hasTwoNodes(history) ? 2 : 1);
		const isShort = tasksMs + LATE_MS < suspendAfter * MINUTE;
		if (!isPlain(history) || items > maxInFlight || history.fileSeconds > 0 || !isShort) return [];
		return runsOf(world).flatMap((row) => {
			const ends = world.service.tasks
				.filter((task) => isOf(row, task))
				.map(({ endsAt }) => endsAt);
			const last = Math.max(...ends);
			return outOf(world, row)
				.filter(({ at }) => at > last + LATE_MS)
				.map(
					({ at }) => `execution ${row.id} is out ${(at - last) / SECOND} s after its last task`,
				);
		});
	},

	'no minute passes in which orders are possible and none leaves': (world) => {
		const { history } = world;
		if (!isPlain(history) || history.node.suspendAfter < 1) return [];
		return runsOf(world).flatMap((row) =>
			[false, true].flatMap((second) => {
				const orders = ordersOf(world, row, second);
				const ends = orders
					.map(({ taskId = '' }) => world.service.task(taskId)?.endsAt ?? Infinity)
					.sort((one, other) => one - other);
				return orders.slice(1).flatMap(({ at }, index) => {
					const freeAt = ends[index + 1 - history.node.maxInFlight] ?? -Infinity;
					const since = Math.max(orders[index]?.at ?? 0, freeAt);
					if (at - since <= LONGEST_GAP_MS) return [];
					return [
						`execution ${row.id} sends nothing for ${(at - since) / SECOND} s, until ${at} ms`,
					];
				});
			}),
		);
	},

	'a batch takes at most 1.2 times its ideal where nothing fails': (world) => {
		const { history } = world;
		if (!isPlain(history)) return [];
		const { suspendAfter } = history.node;
		return runsOf(world).flatMap((row) => {
			// n8n runs two nodes that get the same items one after the other.
			const nodes = [false, true]
				.map((each) => idealMs(world, row, each))
				.filter((each) => each > 0);
			const ideal = nodes.reduce((all, each) => all + each, 0);
			// An old run that has ordered everything sleeps for a part of the time waited. With *Sleep After* below a minute it
			// sleeps before its first order, too. A file that takes longer than a turn is another turn.
			const sleepMs = (suspendAfter < 1 ? 2 : 1) * LOOK_MS;
			const fileMs = history.fileSeconds * SECOND >= TURN_MS ? LOOK_MS : 0;
			const isOld = (ms: number) => ms > suspendAfter * MINUTE - 2 * LATE_MS;
			const lateMs = (each: number) =>
				LATE_MS + fileMs + (isOld(each) || isOld(ideal) ? Math.max(sleepMs, each / 4) : 0);
			const most = nodes.reduce((all, each) => all + lateMs(each), 1.2 * ideal);
			return outOf(world, row)
				.filter(({ at }) => at - row.begunAt > most)
				.map(
					({ at }) =>
						`execution ${row.id} takes ${(at - row.begunAt) / SECOND} s, ideal are ${ideal / SECOND} s`,
				);
		});
	},

	'no item is lost to a trouble of five minutes': (world) => {
		const { history } = world;
		const {
			trouble: [trouble],
			ends,
			limitSeconds,
			workflow,
		} = history;
		if (!trouble || trouble.forMs > 5 * MINUTE || ends !== 'by itself') return [];
		if (trouble.what === 'media host away' || limitSeconds > 0) return [];
		if (workflow === 'hangs up') return [];
		// n8n reads the credential when a node begins, and fails every node whose credential it cannot read.
		const isOneNode = ['one node', 'called', 'triggered'].includes(workflow);
		if (trouble.what === 'database away' && !isOneNode) return [];
		return runsOf(world).flatMap((row) => {
			// A service that has taken nothing yet may be a wrong address.
			const [first = Infinity] = createsBy(world, row)
				.filter(({ taskId }) => taskId !== undefined)
				.map(({ at }) => at);
			if (first > trouble.at) return [];
			const isByLaw = (names: string[]) => {
				const untaken = names.filter(
					(name) => !world.service.tasks.some((task) => task.item === name),
				);
				const own = hasTwoNodes(history) ? untaken : untaken.slice(0, 1);
				return own.length > 0 && own.every((name) => mayGiveUp(world, row, trouble.at, name));
			};
			const lost = errorsOf(world, row).filter(
				({ text, names }) =>
					!IN_DOUBT.test(text) && !isByLaw(hasTwoNodes(history) ? names : names.slice(0, 1)),
			);
			return [
				...(row.status === 'success' || isEndUnstored(world, row)
					? []
					: [`execution ${row.id} is ${row.status}: ${errorOf(row)?.message}`]),
				...lost
					.slice(0, 1)
					.map(({ text }) => `execution ${row.id} loses ${lost.length} items: ${text}`),
			];
		});
	},

	'a stretch of 5xx leaves at most six orders in doubt, in a loop as in a batch': (world) => {
		const {
			trouble: [trouble],
			ends,
			workflow,
		} = world.history;
		if (!trouble?.what.startsWith('blip') || ends !== 'by itself' || !isWaited(world.history))
			return [];
		return runsOf(world).flatMap((row) => {
			const { length } = errorsOf(world, row).filter(({ text }) => IN_DOUBT.test(text));
			// After minutes each probe comes after a longer rest.
			const probes = Math.ceil(Math.max(0, trouble.forMs - STRETCH_MS) / PROBE_MS);
			const most = (hasTwoNodes({ workflow }) ? 2 : 1) * (6 + probes);
			return length > most ? [`execution ${row.id} has ${length} items in doubt`] : [];
		});
	},

	'no item of a run that may sleep is refused for want of time in a turn': (world) => {
		const { node, workflow } = world.history;
		// What a client waits for does not sleep.
		if (workflow === 'hangs up') return [];
		const isWanting = (row: Row, at: number) =>
			isWaited(world.history) &&
			at - row.begunAt < node.timeoutSeconds * SECOND &&
			at < limitAtOf(world.history, row) - LEFT_MS;
		return runsOf(world).flatMap((row) => {
			const creates = createsOf(world, row);
			const refused = errorsOf(world, row).filter(({ names, at, text }) => {
				// In a row it is the second node that lets the item out.
				const own = workflow === 'in a row' ? names.slice(1) : names;
				const last = creates.find((create) => own.includes(create.item ?? ''));
				if (IN_DOUBT.test(text)) return false;
				return last && isOf(row, last) && isPaused(last) && WANT.test(text) && isWanting(row, at);
			});
			// Of a run that fails as a whole its error tells.
			const isWhole = withRetried(world, row.id).every(({ status }) => status === 'error');
			const cause = isWhole ? (errorOf(row)?.message ?? '') : '';
			const hasFailed =
				creates.some(isPaused) &&
				creates.every((create) => create.taskId !== undefined || isPaused(create)) &&
				WANT.test(cause) &&
				!IN_DOUBT.test(cause) &&
				isWanting(row, row.endedAt ?? 0);
			return [
				...refused.map(({ names, text }) => `execution ${row.id} refuses ${names[0]}: ${text}`),
				...(hasFailed ? [`execution ${row.id} fails: ${cause}`] : []),
			];
		});
	},

	'a task of which the service says for five minutes that there is none ends as an error': (
		world,
	) => {
		if (world.history.forgotten.length === 0) return [];
		const missed = world.network.seen.filter(
			({ kind, status, taskId }) =>
				kind === 'read' && status === 404 && taskId && world.service.isForgotten(taskId),
		);
		return runsOf(world).flatMap((row) =>
			[...groupBy(missed, ({ taskId = '' }) => taskId)].flatMap(([taskId, reads]) => {
				const [first, ...more] = reads.filter((read) => isOf(row, read));
				// What a second wake stores may take the place of what the first one has heard.
				const againMs = row.isWokenTwice ? 2 * FORGOTTEN_MS : 0;
				const late = more.filter(({ at }) => at > (first?.at ?? 0) + FORGOTTEN_MS + againMs);
				// Each further try of n8n looks once.
				return late.length >= world.history.node.maxTries
					? [`execution ${row.id} reads ${taskId} until ${late.at(-1)?.at} ms`]
					: [];
			}),
		);
	},

	"n8n's time limit cancels nothing that could have let out what it has": (world) =>
		world.history.ends === 'stopped' || world.history.limitSeconds === 0
			? []
			: runsOf(world)
					.filter((row) => row.status === 'canceled' && !wasNotWoken(world.history, row))
					.map(({ id }) => `execution ${id} is cancelled`),

	'no task is read twice within the interval': (world) => {
		const reads = world.network.seen.filter(
			({ kind, by, status }) =>
				// The same read is sent once more with a key that was changed meanwhile.
				kind === 'read' && by.startsWith('execution') && !isKeyRefused(status),
		);
		return [...groupBy(reads, ({ by, taskId }) => `${by} ${taskId}`)].flatMap(([who, list]) =>
			list.slice(1).flatMap((read, index) => {
				const gap = read.at - (list[index]?.at ?? 0);
				if (gap >= MIN_READ_INTERVAL_MS || isFollowUp(world, read, list[index])) return [];
				return [`${who} after ${gap} ms`];
			}),
		);
	},

	'there are never more tasks in flight than the node allows': (world) => {
		const { maxInFlight, timeoutSeconds } = world.history.node;
		const { tasks } = world.service;
		if (!isWaited(world.history)) return [];
		return tasks.flatMap(({ by, createdAt, item }) => {
			const { length } = tasks.filter(
				(other) =>
					other.by === by &&
					isOfSecond(other.item) === isOfSecond(item) &&
					other.toldTo &&
					other.createdAt <= createdAt &&
					other.endsAt > createdAt &&
					// One whose wait ended first is not waited for any more.
					waitBegan(world, other) + timeoutSeconds * SECOND > createdAt &&
					!isGivenUp(world, other, createdAt),
			);
			if (length <= maxInFlight) return [];
			return [`${by} has ${length} at ${createdAt} ms, and may have ${maxInFlight}`];
		});
	},

	'a refused create waits as long as it was told': (world) => {
		const creates = world.network.seen.filter(({ kind }) => kind === 'create');
		return creates.flatMap(({ answeredAt, retryAfterMs, by, item }) => {
			if (answeredAt === undefined || retryAfterMs === undefined) return [];
			const early = creates.find(
				(create) =>
					create.by === by &&
					isOfSecond(create.item) === isOfSecond(item) &&
					create.at > answeredAt &&
					create.at < answeredAt + retryAfterMs - 1 &&
					// One that the old key was refused for is on its way already.
					!creates.some(
						({ item, status, at }) =>
							item === create.item && isKeyRefused(status) && at < create.at,
					),
			);
			const what =
				'the clock was set forward in a pause that the service asked for: the next try knows the time of day alone';
			if (!early || (world.setForwardMs > 0 && world.except(what))) return [];
			return [
				`${by} sends ${early.item} at ${early.at} ms, told at ${answeredAt} to wait ${retryAfterMs}`,
			];
		});
	},

	'a service that refuses is not stormed': ({ network }) => {
		const isNoPlace = ({ status }: SeenRequest) => status === 429 || status === 503;
		const creates = network.seen.filter((seen) => seen.kind === 'create' && isSent(seen));
		return [...groupBy(creates, ({ by }) => by)].flatMap(([by, list]) => {
			// Where runs share an account, each create that is let in may be followed by some that are refused.
			const storm = list.find(({ at }) => {
				const soon = list.filter((each) => each.at >= at && each.at < at + 20 * SECOND);
				const { length } = soon.filter(isNoPlace);
				return length >= 15 + 3 * (soon.length - length);
			});
			return storm ? [`${by} is refused too often within 20 s, from ${storm.at} ms on`] : [];
		});
	},
};

/** A turn ends before n8n's look, and the next one begins at it: between two orders. */
const LONGEST_GAP_MS = LOOK_MS + LATE_MS;

/** So long a stretch of 5xx leaves six orders in doubt, and a longer one another order in each of these times at most. */
const STRETCH_MS = 5 * MINUTE;
const PROBE_MS = 8 * MINUTE;
