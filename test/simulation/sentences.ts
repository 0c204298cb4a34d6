import { groupBy } from '../groupBy';
import { hasLostItsResults, isKilledUnsuspended, isN8nsDoing, setForwardMs } from './exceptions';
import {
	everythingSaid,
	firstOf,
	isFollowUp,
	isGivenUp,
	isOfTrigger,
	outputOf,
	runsThatWentOn,
	waitBegan,
	waits,
} from './told';
import { BASE_URL } from './world/service';
import { TRIGGER_PATH } from './world/workflow';
import type { World } from './world/world';

export interface Violation {
	/** The sentence of the contract that does not hold. */
	sentence: string;
	what: string;
}

type Check = (world: World) => string[];

/** The sentences of the contract. Each brings what contradicts it. */
export const sentences: Record<string, Check> = {
	'each item has at most one task that was not refused, failed or asked for again': (world) => {
		const made = groupBy(
			world.service.tasks.filter(({ outcome, isTwin }) => outcome === 'SUCCESS' && !isTwin),
			({ item }) => item,
		);
		return [...made].flatMap(([item, tasks]) => {
			const asked = world.user.asks.get(item) ?? 0;
			if (tasks.length <= asked) return [];
			const ids = tasks.map(({ id }) => id).join(', ');
			return [`${item} was asked for ${asked} times and has ${tasks.length} tasks: ${ids}`];
		});
	},

	'a failed task is made anew as often as the node allows, and after a pause': (world) => {
		const { completion, retryFailed, maxTries } = world.history.node;
		const most = (completion === 'wait' ? 1 + retryFailed : 1) + (maxTries - 1);
		const made = world.service.tasks.filter(({ isTwin }) => !isTwin);
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

	'every task that the service made is named in an output, an error or the log': (world) => {
		const said = everythingSaid(world);
		return world.service.tasks
			.filter(({ toldTo }) => toldTo && toldTo.event < (toldTo.process?.diedIn ?? Infinity))
			.filter(({ id }) => !said.includes(id))
			.map(({ id, item }) => `${id} (${item}) is named nowhere`);
	},

	'every finished task starts the workflow of the trigger once': (world) =>
		world.service.tasks
			.filter(({ webhookUrl }) => webhookUrl?.includes(TRIGGER_PATH))
			.map((task) => ({ ...task, count: world.n8n.starts(task.id) }))
			.filter((task) => task.count !== (world.service.isFinished(task) ? 1 : 0))
			.map(({ id, count }) => `${id} started it ${count} times`),

	'a callback that does not come is made up for by itself': (world) =>
		world.notMadeUpFor.map((id) => `${id} has not started it after ten minutes`),

	'no callback is taken for that of another task': (world) =>
		world.service.answered
			// A suspended run that is gone, or was tried anew, knows its former tasks no more.
			.filter(({ taskId }) => world.service.task(taskId)?.webhookUrl?.includes(TRIGGER_PATH))
			.filter(({ status, said }) => status === 400 || (status === 404 && isOfTrigger(said)))
			.filter(
				({ at, taskId }) =>
					!world.network.seen.some(
						(read) =>
							read.taskId === taskId &&
							read.status === 404 &&
							read.at <= at &&
							read.at > at - 20_000,
					),
			)
			.map(({ taskId, status }) => `the callback of ${taskId} is answered ${status}`),

	'a callback without its token is refused': (world) =>
		world.service.forged
			.filter((status) => status < 400)
			.map((status) => `a stranger's callback is answered ${status}`),

	'every item says what became of its task': (world) =>
		world.n8n.sunk
			.filter(({ node }) => node !== 'Sink' || waits(world))
			.flatMap(({ at, execution, items }) =>
				items.flatMap(({ json }) => {
					const task = world.service.task(String(json.taskId));
					if (!task || json.state === task.outcome) return [];
					// A suspended run goes by the wall clock, since other processes go on with it.
					const { createdAt } = firstOf(world, task);
					const age = at - createdAt + setForwardMs(world, execution);
					const isLate = json.timedOut === true && age >= world.history.node.timeoutSeconds * 1000;
					// An error may come before the end of the task.
					if (isLate || (json.timedOut !== true && json.error !== undefined)) return [];
					if (json.timedOut === true && isN8nsDoing(world, execution)) return [];
					return [`execution ${execution} says ${task.id} is ${String(json.state)}, ${age} ms old`];
				}),
			),

	'every run that waits goes on once': (world) => {
		if (!waits(world)) return [];
		if (world.service.tasks.some(({ by }) => isKilledUnsuspended(world, by))) {
			world.exceptions.add(
				'a run was killed between a create and its suspension: the log names its tasks',
			);
		}
		return runsThatWentOn(world).flatMap(({ id }) => {
			const on = world.n8n.sunk.filter(({ execution }) => execution === id);
			const places = new Set(on.map(({ node }) => node));
			return on.length === places.size && on.length > 0
				? []
				: [`execution ${id} goes on ${on.length} times`];
		});
	},

	'nothing waits for ever once the faults stop': (world) =>
		[...world.n8n.rows.values()]
			.filter(({ status }) => ['new', 'running', 'waiting'].includes(status))
			.map(({ id, status }) => `execution ${id} is ${status} to the end`),

	'every item comes out once, in its order and linked': (world) =>
		runsThatWentOn(world)
			.filter(({ id }) => !hasLostItsResults(world, id))
			.flatMap((row) => outputOf(world, row)),

	'no task is read twice within the interval': (world) => {
		const { completion, pollIntervalSeconds } = world.history.node;
		// Where nobody waits the option is not shown, and the specification's least time holds.
		const intervalMs = 1000 * (completion === 'wait' ? pollIntervalSeconds : 2);
		const reads = world.network.seen.filter(
			({ kind, by, status }) =>
				kind === 'read' &&
				by.startsWith('execution') &&
				// The same read is sent once more with a key that was changed meanwhile.
				![401, 403].includes(status),
		);
		return [...groupBy(reads, ({ by, taskId }) => `${by} ${taskId}`)].flatMap(([who, list]) =>
			list.slice(1).flatMap((read, index) => {
				const gap = read.at - (list[index]?.at ?? 0);
				if (gap >= intervalMs || isFollowUp(world, read, list[index])) return [];
				return [`${who} after ${gap} ms`];
			}),
		);
	},

	'there are never more tasks in flight than the node allows': (world) => {
		const { completion, maxInFlight, timeoutSeconds } = world.history.node;
		if (completion !== 'wait') return [];
		const { tasks } = world.service;
		return tasks.flatMap((task) => {
			const others = tasks.filter(
				(other) =>
					other.by === task.by &&
					other.toldTo &&
					other.createdAt <= task.createdAt &&
					other.endsAt > task.createdAt &&
					// One whose wait ended first is not waited for any more.
					waitBegan(world, other) + timeoutSeconds * 1000 > task.createdAt &&
					!isGivenUp(world, other, task.createdAt),
			);
			if (others.length <= maxInFlight) return [];
			return [
				`${task.by} has ${others.length} at ${task.createdAt} ms, and may have ${maxInFlight}`,
			];
		});
	},

	'a refused create waits as long as it was told': (world) => {
		const creates = world.network.seen.filter(({ kind }) => kind === 'create');
		return creates.flatMap((refused) => {
			const { answeredAt, retryAfterMs, by } = refused;
			if (answeredAt === undefined || retryAfterMs === undefined) return [];
			const early = creates.find(
				(create) =>
					create.by === by &&
					create.at > answeredAt &&
					create.at < answeredAt + retryAfterMs - 1 &&
					// One that the old key was refused for is on its way already.
					!creates.some(
						({ item, status, at }) =>
							item === create.item && [401, 403].includes(status) && at < create.at,
					),
			);
			if (!early) return [];
			const isSetForward = ({ at, byMs }: { at: number; byMs: number }) =>
				byMs > 0 && at >= answeredAt && at <= early.at;
			if (world.history.clockJumps.some(isSetForward)) {
				world.exceptions.add(
					'the clock was set forward in a pause that the service asked for: the next try knows the time of day alone',
				);
				return [];
			}
			return [
				`${by} sends ${early.item} at ${early.at} ms, told at ${answeredAt} to wait ${retryAfterMs}`,
			];
		});
	},

	'a service that refuses is not stormed': (world) =>
		[...groupBy(world.network.seen, ({ by }) => by)].flatMap(([by, list]) => {
			const refused = list.filter(
				({ kind, status }) => kind === 'create' && (status === 429 || status === 503),
			);
			const storm = refused.find(
				(one, index) => (refused[index + 14]?.at ?? Infinity) - one.at < 20_000,
			);
			return storm ? [`${by} is refused 15 times within 20 s, from ${storm.at} ms on`] : [];
		}),

	'the key and the tokens are nowhere but where they belong': (world) => {
		const { seen } = world.network;
		const { secrets } = world.service;
		const said = everythingSaid(world);
		return [
			...[...secrets]
				.filter((secret) => said.includes(secret))
				.map((secret) => `${secret.slice(0, 12)}… stands in an output, an error or the log`),
			...seen
				.filter(({ hasKey, host }) => hasKey && `https://${host}` !== BASE_URL)
				.map(({ host, by }) => `${by} sends the key to ${host}`),
		];
	},

	'the budget is never exceeded': (world) => {
		const { budgetItems } = world.history.node;
		if (budgetItems === 0) return [];
		// Those that fail cost nothing.
		const paid = world.service.tasks.filter(
			({ outcome, isTwin }) => outcome === 'SUCCESS' && !isTwin,
		);
		return [...groupBy(paid, ({ by }) => by)].flatMap(([by, tasks]) =>
			tasks.length > budgetItems ? [`${by} made ${tasks.length} tasks of ${budgetItems}`] : [],
		);
	},
};
