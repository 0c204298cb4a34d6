import { MINUTE, SECOND } from '../durations';
import { type Row } from '../workflow/n8n/database';
import { type Day, hasTwoNodes, isCalm, longestTaskMs, SECOND_NODE } from './day';
import { isEndUnstored } from './exceptions';
import { errorOf } from './told';
import type { SeenRequest } from './world/network';
import type { World } from './world/world';

/** Of an order whose outcome nobody knows. */
const IN_DOUBT = /not known whether the task was created/;

/** What a retry says that does not go on. */
const ANOTHER = /Another retry of execution/;
const REFUSED = /n8n has not kept what it created|Another retry of execution/;

/** A run may be late by this. */
const LATE_MS = 10 * SECOND;

/** A run has heard of a stop within this time: where n8n tells it nothing, it asks every few seconds. */
const HEARD_MS = 5 * SECOND;

/** Between two looks of n8n, with the time that a turn leaves before the look. */
const LONGEST_GAP_MS = 62 * SECOND;

/** Between a look of n8n and the end of the turn that begins there. */
const LONGEST_TURN_MS = 55 * SECOND;

/** A process that does not know when n8n looks may miss one look, and sleeps a minute for nothing. */
const UNLEARNT_MS = 70 * SECOND;

type OfDay = (world: World, day: Day) => string[];

const onDay =
	(check: OfDay) =>
	(world: World): string[] => {
		const [day] = world.history.day;
		return day ? check(world, day) : [];
	};

const isRun = ({ start }: Row) => start === 'Start';

const isOf = (row: Row, { by }: { by: string }) => by === `execution ${row.id}`;

const isOfSecond = (item = '') => Number(item.split(' ').pop()) >= SECOND_NODE;

/** The orders that the service took, of one node of an execution. */
const ordersOf = ({ network }: World, row: Row, second: boolean): SeenRequest[] =>
	network.seen.filter(
		(seen) =>
			seen.kind === 'create' &&
			seen.taskId !== undefined &&
			isOf(row, seen) &&
			isOfSecond(seen.item) === second,
	);

/** What has left for the end of the workflow. */
const outOf = ({ n8n }: World, { id }: Row) =>
	n8n.sunk.filter(({ execution, node }) => execution === id && node === 'Sink');

/** Whether the runs of this day are those of one node whose items leave together, and nothing disturbs them. */
const isPlain = (day: Day) =>
	isCalm(day) && day.limitSeconds === 0 && ['one node', 'beside'].includes(day.workflow);

/** So many files of a run come at a time. */
const FILES_AT_ONCE = 10;

/** Whether n8n's processes know when it looks, or nobody sleeps before. */
const unlearntMs = ({ isWarm }: Day) => (isWarm ? 0 : UNLEARNT_MS);

/** How long the tasks and the files of a node of an execution take at least, milliseconds. */
function idealMs(world: World, row: Row, { places, fileSeconds }: Day, second: boolean): number {
	const tasks = world.service.tasks.filter(
		(task) => isOf(row, task) && isOfSecond(task.item) === second,
	);
	const times = tasks.map(({ createdAt, endsAt }) => endsAt - createdAt);
	const sum = times.reduce((all, each) => all + each, 0);
	const longest = Math.max(0, ...times);
	const fileMs = fileSeconds * SECOND;
	const filesMs = fileMs * Math.ceil(times.length / FILES_AT_ONCE);
	return Math.max(Math.max(longest, sum / places + longest / 2) + fileMs, longest / 2 + filesMs);
}

/** Whether the service may have taken an order. */
const mayHaveOrdered = ({ status, taskId, isUnsent }: SeenRequest) =>
	taskId !== undefined || (!isUnsent && (status === 0 || status >= 500));

/** Whether the service, or something before it, has certainly not taken an order. */
const isRefused = ({ status, taskId, isUnsent }: SeenRequest) =>
	taskId === undefined && !isUnsent && status >= 400;

/**
 * Whether an item may be given up in a trouble: its run had no task before, or the item was refused twice, and no other item of
 * the run since the service has taken an order. In a loop each round is a run of its own.
 */
function mayGiveUp({ network }: World, row: Row, day: Day, troubledAt: number, item: string) {
	const run = network.seen.filter(
		(seen) =>
			seen.kind === 'create' &&
			isOf(row, seen) &&
			(day.workflow === 'loop' ? seen.item === item : isOfSecond(seen.item) === isOfSecond(item)),
	);
	const taken = run.flatMap(({ taskId, answeredAt }) =>
		taskId !== undefined && answeredAt !== undefined ? [answeredAt] : [],
	);
	if (!taken.some((at) => at < troubledAt)) return true;
	const [again, before] = run.filter((seen) => seen.item === item && isRefused(seen)).reverse();
	if (!again || !before) return false;
	const refusedAt = again.at;
	const takenAt = Math.max(...taken.filter((at) => at < refusedAt));
	return !run.some(
		(seen) => seen.item !== item && isRefused(seen) && seen.at > takenAt && seen.at <= refusedAt,
	);
}

/** Whether the time of an execution was up while n8n had no database: n8n could not wake it, and cancels it when it does. */
function wasNotWoken({ trouble, limitSeconds }: Day, { startedAt = 0, endedAt = 0 }: Row): boolean {
	if (trouble?.what !== 'database away') return false;
	const backAt = trouble.at + trouble.forMs;
	const limitAt = startedAt + limitSeconds * SECOND;
	return endedAt > backAt && limitAt >= trouble.at && limitAt <= backAt + LONGEST_GAP_MS;
}

const isOld = ({ suspendAfter }: Day, ms: number) => ms > suspendAfter * MINUTE - LATE_MS;

/** The sentences about what a user sees in a day, and when. Each brings what contradicts it. */
export const daySentences = {
	'a task of a young run is out ten seconds after its end at the latest': onDay((world, day) => {
		const { items, places, fileSeconds, suspendAfter } = day;
		// The second node of an execution begins when the first one has ended.
		const tasksMs = longestTaskMs(day) * (hasTwoNodes(day) ? 2 : 1);
		const isYoung = tasksMs + LATE_MS < suspendAfter * MINUTE;
		if (!isPlain(day) || items > places || fileSeconds > 0 || !isYoung) return [];
		return world.n8n.rows.filter(isRun).flatMap((row) => {
			const last = Math.max(
				...world.service.tasks.filter((task) => isOf(row, task)).map(({ endsAt }) => endsAt),
			);
			return outOf(world, row)
				.filter(({ at }) => at > last + LATE_MS)
				.map(
					({ at }) => `execution ${row.id} is out ${(at - last) / SECOND} s after its last task`,
				);
		});
	}),

	'no minute passes in which orders are possible and none leaves': onDay((world, day) => {
		if (!isPlain(day)) return [];
		return world.n8n.rows.filter(isRun).flatMap((row) =>
			[false, true].flatMap((second) => {
				const orders = ordersOf(world, row, second);
				const ends = orders
					.map(({ taskId = '' }) => world.service.task(taskId)?.endsAt ?? Infinity)
					.sort((one, other) => one - other);
				const most = LONGEST_GAP_MS + unlearntMs(day);
				return orders.slice(1).flatMap(({ at }, index) => {
					const freeAt = ends[index + 1 - day.places] ?? -Infinity;
					const since = Math.max(orders[index]?.at ?? 0, freeAt);
					if (at - since <= most) return [];
					return [
						`execution ${row.id} sends nothing for ${(at - since) / SECOND} s, until ${at} ms`,
					];
				});
			}),
		);
	}),

	'a batch takes at most 1.2 times its ideal where nothing fails': onDay((world, day) => {
		if (!isPlain(day)) return [];
		return world.n8n.rows.filter(isRun).flatMap((row) => {
			// n8n runs two nodes that get the same items one after the other.
			const nodes = [false, true].map((each) => idealMs(world, row, day, each));
			const ideal = nodes.reduce((all, each) => all + each, 0);
			// An old run that has ordered everything sleeps for a part of the time waited. With *Sleep After* 0 it sleeps before its
			// first order, too. A file that takes longer than a turn waits for the next one.
			const sleepMs = day.suspendAfter === 0 ? MINUTE : 0;
			const fileMs = day.fileSeconds * SECOND >= LONGEST_TURN_MS ? MINUTE : 0;
			const lateMs = nodes
				.filter((each) => each > 0)
				.map(
					(each) => LATE_MS + unlearntMs(day) + sleepMs + fileMs + (isOld(day, each) ? MINUTE : 0),
				);
			const most = lateMs.reduce((all, each) => all + each, 1.2 * ideal);
			return outOf(world, row)
				.filter(({ at }) => at - row.begunAt > most)
				.map(
					({ at }) =>
						`execution ${row.id} takes ${(at - row.begunAt) / SECOND} s, ideal are ${ideal / SECOND} s`,
				);
		});
	}),

	'no item is lost to a trouble of five minutes': onDay((world, day) => {
		const { trouble, ends, limitSeconds, workflow } = day;
		if (!trouble || trouble.forMs > 5 * MINUTE || ends !== 'by itself') return [];
		if (trouble.what === 'media host away' || limitSeconds > 0) return [];
		if (workflow === 'hangs up') return [];
		// n8n reads the credential when a node begins, and fails every node whose credential it cannot read.
		const isOneNode = ['one node', 'called', 'triggered'].includes(workflow);
		if (trouble.what === 'database away' && !isOneNode) return [];
		return world.n8n.rows.filter(isRun).flatMap((row) => {
			// A service that has taken nothing yet may be a wrong address.
			const [first = Infinity] = world.service.tasks
				.filter((task) => isOf(row, task))
				.map(({ createdAt }) => createdAt);
			if (first > trouble.at) return [];
			const isByLaw = (...items: unknown[]) => {
				const untaken = items.filter(
					(item) => !world.service.tasks.some((task) => task.item === item),
				);
				return (
					untaken.length > 0 &&
					untaken.every((item) => mayGiveUp(world, row, day, trouble.at, String(item)))
				);
			};
			const lost = outOf(world, row).flatMap(({ items }) =>
				items.filter(
					({ json: { error, prompt, second } }) =>
						error !== undefined &&
						!IN_DOUBT.test(String(error)) &&
						!isByLaw(prompt, ...(hasTwoNodes(day) ? [second] : [])),
				),
			);
			return [
				...(row.status === 'success' || isEndUnstored(world, row)
					? []
					: [`execution ${row.id} is ${row.status}: ${errorOf(row)?.message}`]),
				...lost
					.slice(0, 1)
					.map(
						({ json }) => `execution ${row.id} loses ${lost.length} items: ${String(json.error)}`,
					),
			];
		});
	}),

	'what was killed after some minutes goes on when it is retried': onDay((world, day) =>
		world.n8n.rows.filter(isRun).flatMap((row) => {
			const retried = world.n8n.row(row.retryOf);
			const isRefused = REFUSED.test(row.data);
			// A further retry stands back behind the first one.
			const [firstRetry] = world.n8n.rows.filter(({ retryOf }) => retryOf === row.retryOf);
			if (!retried?.isKilled || !isRefused || row !== firstRetry) return [];
			const { diedAt = 0 } = retried.process ?? {};
			const [first = Infinity] = world.network.seen
				.filter((seen) => seen.kind === 'create' && isOf(retried, seen))
				.map(({ at }) => at);
			// The first turn of a process that does not know the look ends with Sleep After.
			const storedMs = day.isWarm ? UNLEARNT_MS : day.suspendAfter * MINUTE + UNLEARNT_MS;
			if (diedAt - first < 2 * MINUTE + storedMs) return [];
			return [
				`execution ${row.id}, the retry of ${retried.id}, which died ${(diedAt - first) / SECOND} s after its first order, orders nothing`,
			];
		}),
	),

	'a retry that ended without an order leaves the way to the next one': onDay((world) => {
		const hasOrdered = (row: Row) =>
			world.network.seen.some(
				(seen) => seen.kind === 'create' && isOf(row, seen) && mayHaveOrdered(seen),
			);
		return world.n8n.rows
			.filter((row) => row.retryOf !== undefined && ANOTHER.test(errorOf(row)?.message ?? ''))
			.filter((row) =>
				world.n8n.rows
					.filter((other) => other.retryOf === row.retryOf && other !== row)
					.every((other) => (other.endedAt ?? Infinity) < row.begunAt && !hasOrdered(other)),
			)
			.map((row) => `execution ${row.id}: ${errorOf(row)?.message}`);
	}),

	'after a stop, also of a caller, orders leave for some seconds at most': onDay(
		(world, { ends, workflow }) => {
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
	),

	"n8n's time limit cancels nothing that could have let out what it has": onDay((world, day) =>
		day.ends === 'stopped'
			? []
			: world.n8n.rows
					.filter((row) => isRun(row) && row.status === 'canceled' && !wasNotWoken(day, row))
					.map(({ id }) => `execution ${id} is cancelled`),
	),

	'a caller that hangs up after a minute has heard the ids of all tasks before': onDay(
		(world, day) => {
			if (day.workflow !== 'hangs up' || day.ends !== 'by itself') return [];
			if (day.trouble?.what === 'database away') return [];
			return world.n8n.rows
				.filter(({ start }) => start === 'Call')
				.flatMap((caller) => {
					const tookMs = (caller.endedAt ?? Infinity) - caller.begunAt;
					const child = world.n8n.rows.find((row) => row.caller?.executionId === caller.id);
					const unsaid = world.service.tasks.filter(
						(task) => child && isOf(child, task) && !caller.data.includes(task.id),
					);
					return [
						...(tookMs < MINUTE
							? []
							: [`execution ${caller.id} answers after ${tookMs / SECOND} s`]),
						...unsaid.map(({ id }) => `execution ${caller.id} does not name ${id}`),
					];
				});
		},
	),
} satisfies Record<string, (world: World) => string[]>;
