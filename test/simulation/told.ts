import { fromStored } from '../workflow/stored';
import type { Row } from './world/database';
import type { SeenRequest } from './world/network';
import { itemOf, type ServiceTask } from './world/service';
import type { World } from './world/world';

/** One that was retried after it had been stopped ends with the error of the first, wherever its items have gone. */
export const runsThatWentOn = ({ n8n: { rows, sunk } }: World) =>
	[...rows.values()].filter(
		({ id, start, status, retryOf }) =>
			start === 'Start' &&
			(status === 'success' ||
				(status === 'error' &&
					retryOf !== undefined &&
					sunk.some(({ execution }) => execution === id))),
	);

/** n8n's own answers speak of the webhook or the execution. */
export const isOfTrigger = (said: unknown) => JSON.stringify(said ?? '').includes('task');

/** The time of a task that was created anew is counted from the first one. */
export const firstOf = ({ service }: World, task: ServiceTask): ServiceTask =>
	service.tasks.find(({ by, item }) => by === task.by && item === task.item) ?? task;

/** When its time began to be counted. */
export function waitBegan(world: World, task: ServiceTask): number {
	const first = firstOf(world, task);
	const create = world.network.seen.find(
		({ kind, taskId }) => kind === 'create' && taskId === first.id,
	);
	return create?.answeredAt ?? first.createdAt;
}

/**
 * Whether a task was waited for no more at a moment, since the service had refused the key for it. Another try of n8n's
 * takes it up again.
 */
export function isGivenUp(
	{ network, history }: World,
	{ id, by }: ServiceTask,
	at: number,
): boolean {
	const reads = network.seen.filter(
		({ kind, taskId, by: who }) => kind === 'read' && taskId === id && who === by,
	);
	const last = reads.findLast((read) => read.at <= at);
	const next = reads.find((read) => read.at > at);
	const intervalMs = history.node.pollIntervalSeconds * 1000;
	return (
		last !== undefined &&
		[401, 403].includes(last.status) &&
		(next === undefined || next.at - last.at > 2 * intervalMs)
	);
}

export const waits = ({ history }: World) => history.node.completion === 'wait';

/** All that a user can find of what happened: outputs and errors of executions, and the log. */
export function everythingSaid(world: World): string {
	const stored = [...world.n8n.rows.values()].map(({ data }) =>
		JSON.stringify(fromStored(data).resultData),
	);
	return [...stored, ...world.logs.map(({ text }) => text)].join('\n');
}

export function outputOf(world: World, row: Row): string[] {
	const { items, onError } = world.history.node;
	const data = fromStored(row.data);
	const run = data.resultData.runData.Media?.at(-1);
	if (!run) return [];
	const [first = [], errors = []] = run.data?.main ?? [];
	const output = [...(first ?? []), ...(errors ?? [])];
	if (output.length !== items) return [`execution ${row.id} puts out ${output.length} of ${items}`];
	// A retry of an execution that was killed may have run the node before once more.
	const before = run.source[0]?.previousNodeRun ?? 0;
	const inputs = data.resultData.runData.Start?.[before]?.data?.main?.[0] ?? [];
	// Of a node that failed as a whole n8n puts out what came in.
	if (run.error) return [];
	const lists = onError === 'continueErrorOutput' ? [first ?? [], errors ?? []] : [output];
	return lists.flatMap((list) =>
		list.flatMap(({ json, pairedItem }, position) => {
			const index = typeof pairedItem === 'object' && 'item' in pairedItem ? pairedItem.item : -1;
			const before = list[position - 1]?.pairedItem;
			const earlier = typeof before === 'object' && 'item' in before ? before.item : -1;
			const name = itemOf(json);
			if (name !== '' && name !== itemOf(inputs[index]?.json)) {
				return [`execution ${row.id} links ${name} to item ${index}`];
			}
			return index > earlier ? [] : [`execution ${row.id} puts item ${index} after ${earlier}`];
		}),
	);
}

/** The specification's least time between two reads of a task. */
const MIN_INTERVAL_MS = 2_000;

/** Reads that follow no interval: the last one at the deadline, the one at the hand-over, and the first one of another try or after a callback. */
export function isFollowUp(
	world: World,
	read: SeenRequest,
	before: SeenRequest | undefined,
): boolean {
	const task = world.service.task(read.taskId ?? '');
	if (!task || !before) return true;
	const isWoken = world.n8n.webhooks.woken.some(
		({ at, execution }) => read.by === `execution ${execution}` && before.at <= at && at <= read.at,
	);
	if (isWoken) return true;
	const age = read.at - firstOf(world, task).createdAt;
	const { timeoutSeconds, maxTries, suspendAfter } = world.history.node;
	// With the last create every task is read once more, and handed over.
	const isHandedOver = suspendAfter === 0 && read.at - before.at >= MIN_INTERVAL_MS;
	return maxTries > 1 || isHandedOver || age >= timeoutSeconds * 1000;
}
