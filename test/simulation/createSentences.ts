import type { IDataObject } from 'n8n-workflow';

import { groupBy } from '../groupBy';
import { isUntold } from './exceptions';
import { errorOf, everythingSaid, idOf, isKeyRefused, isPaid } from './told';
import type { SeenRequest, Told } from './world/network';
import type { World } from './world/world';

/** Whether whoever was told lived on, so that it could be said. */
const isHeard = (told: Told | undefined) =>
	told !== undefined && told.event < (told.process?.diedIn ?? Infinity);

/** The sentences of the contract that speak of creates and of what they cost. Each brings what contradicts it. */
export const createSentences = {
	'each item has at most one task that was not refused, and did not fail': (world) =>
		[...groupBy(world.service.tasks.filter(isPaid), ({ item }) => item)].flatMap(([item, all]) => {
			const tasks = all.filter(({ by }, index) => index === 0 || !isUntold(world, idOf(by)));
			const ids = tasks.map(({ id }) => id).join(', ');
			return tasks.length > 1 ? [`${item} has ${tasks.length} tasks: ${ids}`] : [];
		}),

	'a failed task is made anew as often as the node allows, and after a pause': ({
		service,
		history,
	}) => {
		const { completion, retryFailed, maxTries } = history.node;
		const most = (completion === 'wait' ? retryFailed : 0) + maxTries;
		const made = service.tasks.filter(({ isTwin }) => !isTwin);
		return [...groupBy(made, ({ by, item }) => `${item} (${by})`)].flatMap(([item, tasks]) => {
			const early = tasks.find(
				({ createdAt }, index) =>
					// A try of n8n's may follow at once.
					maxTries === 1 && createdAt < (tasks[index - 1]?.endsAt ?? -Infinity) + 5_000,
			);
			return [
				...(tasks.length > most ? [`${item} has ${tasks.length} tasks, and may have ${most}`] : []),
				...(early ? [`${early.id} for ${item} comes at ${early.createdAt} ms`] : []),
			];
		});
	},

	'every task that the service made is named in an output, an error or the log': (world: World) => {
		const said = everythingSaid(world);
		return world.service.tasks
			.filter(({ toldTo }) => isHeard(toldTo))
			.filter(({ id }) => !said.includes(id))
			.map(({ id, item }) => `${id} (${item}) is named nowhere`);
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

	'a refused create waits as long as it was told': (world: World) => {
		const creates = world.network.seen.filter(({ kind }) => kind === 'create');
		return creates.flatMap(({ answeredAt, retryAfterMs, by }) => {
			if (answeredAt === undefined || retryAfterMs === undefined) return [];
			const early = creates.find(
				(create) =>
					create.by === by &&
					create.at > answeredAt &&
					create.at < answeredAt + retryAfterMs - 1 &&
					// One that the old key was refused for is on its way already.
					!creates.some(
						({ item, status, at }) =>
							item === create.item && isKeyRefused(status) && at < create.at,
					),
			);
			if (!early) return [];
			const isSetForward =
				world.history.clockJumps.some(
					({ at, byMs }) => byMs > 0 && at >= answeredAt && at <= early.at,
				) || world.history.sleeps.some(({ what }) => what === 'clock set forward');
			const what =
				'the clock was set forward in a pause that the service asked for: the next try knows the time of day alone';
			if (isSetForward && world.except(what)) return [];
			return [
				`${by} sends ${early.item} at ${early.at} ms, told at ${answeredAt} to wait ${retryAfterMs}`,
			];
		});
	},

	'a service that refuses is not stormed': ({ network }) => {
		const isRefused = ({ status }: SeenRequest) => status === 429 || status === 503;
		const creates = network.seen.filter(({ kind }) => kind === 'create');
		return [...groupBy(creates, ({ by }) => by)].flatMap(([by, list]) => {
			// Where runs share an account, each create that is let in may be followed by some that are refused.
			const storm = list.find(({ at }) => {
				const soon = list.filter((each) => each.at >= at && each.at < at + 20_000);
				const { length } = soon.filter(isRefused);
				return length >= 15 + 3 * (soon.length - length);
			});
			return storm ? [`${by} is refused too often within 20 s, from ${storm.at} ms on`] : [];
		});
	},

	'the budget is never exceeded': ({ service, history: { node } }) =>
		[...groupBy(service.tasks.filter(isPaid), ({ by }) => by)].flatMap(([by, { length }]) =>
			node.budgetItems > 0 && length > node.budgetItems
				? [`${by} made ${length} tasks of ${node.budgetItems}`]
				: [],
		),
} satisfies Record<string, (world: World) => string[]>;
