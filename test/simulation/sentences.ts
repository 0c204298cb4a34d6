import { MIN_READ_INTERVAL_MS } from '../../nodes/MediaGeneration/service/client';
import { groupBy } from '../groupBy';
import { callbackSentences } from './callbackSentences';
import { createSentences } from './createSentences';
import { daySentences } from './daySentences';
import { isEndUnstored, isOutOfDate, isPassedOver, setForwardMs } from './exceptions';
import {
	everythingSaid,
	firstOf,
	isFollowUp,
	isGivenUp,
	isKeyRefused,
	outputOf,
	runsThatWentOn,
	unsaidOf,
	waitBegan,
} from './told';
import { turnSentences } from './turnSentences';
import { isTerminal } from '../workflow/n8n/database';
import { BASE_URL } from './world/service';
import type { World } from './world/world';

export interface Violation {
	/** The sentence of the contract that does not hold. */
	sentence: string;
	what: string;
}

type Check = (world: World) => string[];

/** The sentences of the contract. Each brings what contradicts it. */
export const sentences: Record<string, Check> = {
	...createSentences,

	...callbackSentences,

	...turnSentences,

	'every item says what became of its task': (world) => {
		const { completion, timeoutSeconds } = world.history.node;
		const out = world.n8n.sunk.filter(({ node }) => node !== 'Sink' || completion === 'wait');
		return out.flatMap(({ at, execution, items }) =>
			items.flatMap((item) => {
				const { json } = item;
				const task = world.service.task(String(json.taskId));
				if (!task) {
					const unsaid = unsaidOf(world, execution, item);
					if (!unsaid || isPassedOver(world, execution) || isOutOfDate(world, execution)) return [];
					return [`execution ${execution} does not say what became of ${unsaid.id}`];
				}
				if (json.state === task.outcome) return [];
				// An error may come before the end of the task.
				if (json.timedOut !== true && json.error !== undefined) return [];
				// A run that sleeps goes by the wall clock, since other processes go on with it.
				const age = at - firstOf(world, task).createdAt + setForwardMs(world, execution);
				const isLate = age >= timeoutSeconds * 1000;
				if (json.timedOut === true && isLate) return [];
				return [`execution ${execution} says ${task.id} is ${String(json.state)}, ${age} ms old`];
			}),
		);
	},

	'every run that waits goes on once': (world) => {
		if (world.history.node.completion !== 'wait') return [];
		return runsThatWentOn(world).flatMap(({ id }) => {
			const on = world.n8n.sunk.filter(({ execution }) => execution === id);
			const places = new Set(on.map(({ node }) => node));
			return on.length === places.size && on.length > 0
				? []
				: [`execution ${id} goes on ${on.length} times`];
		});
	},

	'what is retried after a kill while it slept, or in a later turn, goes on': (world) =>
		world.n8n.rows
			.filter(({ start, isKilled, sleeps, retriedBy }) => {
				const retry = world.n8n.row(retriedBy);
				return start === 'Start' && isKilled && sleeps > 0 && retry?.status === 'error';
			})
			.filter(({ retriedBy }) => /was stopped or killed/.test(world.n8n.row(retriedBy)?.data ?? ''))
			.map(({ id, retriedBy }) => `execution ${retriedBy}, the retry of ${id}, refuses to go on`),

	'no retry lets the bare input out': (world) =>
		world.history.node.completion !== 'wait'
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

	'every execution comes to its end': (world) =>
		world.n8n.rows
			// Whether a caller goes on whose sub-workflow was killed is n8n's own.
			.filter(({ status, start }) => !isTerminal(status) && start !== 'Call')
			.filter((row) => !isEndUnstored(world, row))
			.map(({ id, status }) => `execution ${id} is ${status}`),

	'every item comes out once, in its order and linked': (world) =>
		runsThatWentOn(world)
			.filter(({ id }) => !isPassedOver(world, id))
			.flatMap((row) => outputOf(world, row)),

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
		const { completion, maxInFlight, timeoutSeconds } = world.history.node;
		const { tasks } = world.service;
		if (completion !== 'wait') return [];
		return tasks.flatMap(({ by, createdAt }) => {
			const { length } = tasks.filter(
				(other) =>
					other.by === by &&
					other.toldTo &&
					other.createdAt <= createdAt &&
					other.endsAt > createdAt &&
					// One whose wait ended first is not waited for any more.
					waitBegan(world, other) + timeoutSeconds * 1000 > createdAt &&
					!isGivenUp(world, other, createdAt),
			);
			if (length <= maxInFlight) return [];
			return [`${by} has ${length} at ${createdAt} ms, and may have ${maxInFlight}`];
		});
	},

	'the key and the tokens are nowhere but where they belong': (world) => {
		const said = everythingSaid(world);
		return [
			...[...world.service.secrets]
				.filter((secret) => said.includes(secret))
				.map((secret) => `${secret.slice(0, 12)}… stands in an output, an error or the log`),
			...world.network.seen
				.filter(({ hasKey, host }) => hasKey && `https://${host}` !== BASE_URL)
				.map(({ host, by }) => `${by} sends the key to ${host}`),
		];
	},
};

const alsoOfDays = [
	'each item has at most one task that was not refused, and did not fail',
	'every task that the service made is named in an output, an error or the log',
	'every finished task starts the workflow of the trigger once',
	'an item in doubt was sent, or was about to be',
	'no retry lets the bare input out',
	'every execution comes to its end',
	'the key and the tokens are nowhere but where they belong',
];

/** What is checked after a user's day. */
export const ofDays: Record<string, Check> = {
	...Object.fromEntries(alsoOfDays.map((name) => [name, sentences[name]!])),
	...daySentences,
};
