import type { IDataObject } from 'n8n-workflow';

import { SECOND } from '../../durations';
import { groupBy } from '../../groupBy';
import type { Row } from '../../workflow/n8n/database';
import type { SeenRequest } from '../world/network';
import { PRICE_USD } from '../world/workflow';
import type { ServiceTask } from '../world/service';
import type { World } from '../world/world';
import { isOutOfDate, isUntold } from './exceptions';
import type { Check } from './sentences';
import {
	createsBy,
	createsOf,
	errorOf,
	errorsOf,
	everythingSaid,
	idOf,
	IN_DOUBT,
	isHeard,
	isOf,
	isPaid,
	isWaited,
	runsOf,
	wasCut,
	withRetried,
} from './told';

/** The least window of orders that a turn may send before n8n has stored them. */
const LEAST_WINDOW = 10;

/** Whether it stays open what became of an order: no answer was heard, or none that names a task or refuses the order. */
function isOpen({ service }: World, { status, taskId = '', isUnsent, told }: SeenRequest): boolean {
	if (isUnsent === true) return false;
	const isNamed = isHeard(service.task(taskId)?.toldTo);
	// Something between the two may have handed the order on.
	const isRefusal = status >= 400 && status < 499 && status !== 425;
	return !isHeard(told) || status === 303 || !(isNamed || isRefusal);
}

/** Most orders of one execution within a minute. */
function mostInMinute(world: World, row: Row): number {
	const times = createsBy(world, row).map(({ at }) => at);
	return Math.max(
		0,
		...times.map((from) => times.filter((at) => at >= from && at < from + 60 * SECOND).length),
	);
}

/** What whoever pays for the tasks relies on. Each brings what contradicts it. */
export const payer: Record<string, Check> = {
	'what is paid for or under way is never ordered again': (world) => {
		const { service, network } = world;
		const paid = [...groupBy(service.tasks.filter(isPaid), ({ item }) => item)].flatMap(
			([item, all]) => {
				// What an execution orders that is told nothing of the others stands for itself.
				const whoseOf = ({ by }: ServiceTask) => (isUntold(world, idOf(by)) ? by : 'all others');
				return [...groupBy(all, whoseOf).values()]
					.filter(({ length }) => length > 1)
					.map(
						(tasks) => `${item} has ${tasks.length} tasks: ${tasks.map(({ id }) => id).join(', ')}`,
					);
			},
		);
		const again = network.seen
			.filter(({ kind }) => kind === 'create')
			.flatMap(({ item, at, by }) => {
				const task = service.tasks.find(
					(each) =>
						each.item === item &&
						!each.isTwin &&
						each.createdAt < at &&
						(isPaid(each) || each.endsAt > at) &&
						(each.by === by || ![each.by, by].some((who) => isUntold(world, idOf(who)))),
				);
				return task ? [`${by} orders ${item} at ${at} ms, which has ${task.id} of ${task.by}`] : [];
			});
		return [...paid, ...again];
	},

	'every task that the service made is named in an output, an error or the log': (world) => {
		const said = everythingSaid(world);
		return world.service.tasks
			.filter(({ toldTo }) => isHeard(toldTo))
			.filter(({ id }) => !said.includes(id))
			.map(({ id, item }) => `${id} (${item}) is named nowhere`);
	},

	'an item is in doubt only if its order has no answer, or if it was in the window of a turn that was cut':
		(world) =>
			runsOf(world).flatMap((row) => {
				const rows = withRetried(world, row.id);
				const creates = createsOf(world, row);
				const doubts = errorsOf(world, row).filter(({ text }) => IN_DOUBT.test(text));
				const isOfOrder = (names: string[]) =>
					creates.some((create) => names.includes(create.item ?? '') && isOpen(world, create));
				const others = doubts.filter(({ names }) => !isOfOrder(names));
				// A retry of an execution that sleeps, or whose stop or death n8n has not noticed yet, may take its turn for cut.
				const cuts = rows.filter(
					(each) => wasCut(each) || each.isWokenTwice || each.retriedBy !== undefined,
				);
				const window = Math.max(LEAST_WINDOW, ...cuts.map((each) => 2 * mostInMinute(world, each)));
				const most = cuts.length * window;
				return others.length > most && !isOutOfDate(world, row.id)
					? [
							`execution ${row.id} has ${others.length} items in doubt, and may have ${most}: ${others[0]?.names[0]}`,
						]
					: [];
			}),

	'a create that is answered 303 is not sent again, and what is said names its address': (
		world,
	) => {
		const creates = world.network.seen.filter(({ kind }) => kind === 'create');
		return creates
			.filter(({ status, told }) => status === 303 && isHeard(told))
			.flatMap(({ item = '', at, by, location = '' }) => {
				const again = creates.find(
					(create) => create.item === item && create.at > at && !isUntold(world, idOf(create.by)),
				);
				const row = world.n8n.row(idOf(by));
				// A retry may have the error of the execution before, which was stopped.
				const isOver =
					row?.status === 'success' || (row?.status === 'error' && !row.isKilled && !row.retryOf);
				return [
					...(again ? [`${by} sends ${item} again at ${again.at} ms`] : []),
					...(everythingSaid(world).includes(location) ? [] : [`${location} is named nowhere`]),
					...(isOver && !/not known whether|may exist/.test(row.data)
						? [`${by} does not say that ${item} is in doubt`]
						: []),
				];
			});
	},

	'Max Cost is looked at whenever something is ordered': (world) => {
		const { budgetItems } = world.history.node;
		if (budgetItems === 0) return [];
		return runsOf(world).flatMap((row) => {
			const paidIn = (each: Row) =>
				world.service.tasks.filter((task) => isPaid(task) && isOf(each, task)).length;
			if (paidIn(row) === 0) return [];
			const cost = withRetried(world, row.id)
				.map((each) => paidIn(each) * world.n8n.priceIn(each))
				.reduce((sum, each) => sum + each, 0);
			// Each round of a loop is a run of its own.
			const most = (world.history.workflow === 'loop' ? Infinity : budgetItems) * PRICE_USD;
			return cost > most + 1e-9 && !isUntold(world, row.id)
				? [`execution ${row.id} comes to ${cost} USD of ${budgetItems * PRICE_USD}`]
				: [];
		});
	},

	'a failed task is made anew as often as the node allows, and after a pause': ({
		service,
		history,
	}) => {
		const { retryFailed, maxTries } = history.node;
		const most = (isWaited(history) ? retryFailed : 0) + maxTries;
		const made = service.tasks.filter(({ isTwin }) => !isTwin);
		return [...groupBy(made, ({ by, item }) => `${item} (${by})`)].flatMap(([item, tasks]) => {
			const early = tasks.find(
				({ createdAt }, index) =>
					// A try of n8n's may follow at once.
					maxTries === 1 && createdAt < (tasks[index - 1]?.endsAt ?? -Infinity) + 5 * SECOND,
			);
			return [
				...(tasks.length > most ? [`${item} has ${tasks.length} tasks, and may have ${most}`] : []),
				...(early ? [`${early.id} for ${item} comes at ${early.createdAt} ms`] : []),
			];
		});
	},

	'a failed task that was charged for is put out as charged': ({ n8n, service }) =>
		service.tasks
			.filter(({ isCharged }) => isCharged)
			.flatMap(({ id }) => [
				...n8n.sunk.flatMap(({ execution, items }) =>
					items
						.map(({ json }) => ({ ...json, ...(json.details as IDataObject | undefined) }))
						.filter(({ taskId, state }) => taskId === id && state === 'FAILURE')
						.filter(({ creditsConsumed }) => !(Number(creditsConsumed) > 0))
						.map(() => `execution ${execution} puts out ${id} as free`),
				),
				...n8n.rows.flatMap((row) => {
					const { message = '', description = '' } = errorOf(row) ?? {};
					return message.includes(`${id} failed`) && !String(description).includes('charged')
						? [`execution ${row.id} fails for ${id}, and does not say that it was charged for`]
						: [];
				}),
			]),

	'the key and the tokens are nowhere but where they belong': (world) => {
		const said = everythingSaid(world);
		return [
			...[...world.service.secrets]
				.filter((secret) => said.includes(secret))
				.map((secret) => `${secret.slice(0, 12)}… stands in an output, an error or the log`),
			...world.network.seen
				.filter(({ hasKey, kind }) => hasKey && kind === 'download')
				.map(({ host, by }) => `${by} sends the key to ${host}`),
		];
	},
};
