import type { INodeExecutionData } from 'n8n-workflow';

import { MIN_READ_INTERVAL_MS } from '../../nodes/MediaGeneration/service/client';
import { fromStored } from '../workflow/stored';
import type { Row } from '../workflow/n8n/database';
import type { SeenRequest } from './world/network';
import { itemOf, type ServiceTask } from './world/service';
import type { World } from './world/world';

/** One that was retried after it had been stopped ends with the error of the first, wherever its items have gone. */
export const runsThatWentOn = ({ n8n: { rows, sunk } }: World) =>
	rows.filter(
		({ id, start, status, retryOf }) =>
			start === 'Start' &&
			(status === 'success' ||
				(status === 'error' &&
					retryOf !== undefined &&
					sunk.some(({ execution }) => execution === id))),
	);

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
export function isGivenUp({ network }: World, task: ServiceTask, at: number): boolean {
	const reads = network.seen.filter(
		({ kind, taskId, by }) => kind === 'read' && taskId === task.id && by === task.by,
	);
	const last = reads.findLast((read) => read.at <= at);
	const next = reads.find((read) => read.at > at);
	return (
		last !== undefined &&
		[401, 403].includes(last.status) &&
		(next === undefined || next.at - last.at > 3 * MIN_READ_INTERVAL_MS)
	);
}

/** All that a user can find of what happened: outputs and errors of executions, and the log. */
export const everythingSaid = ({ n8n, logs }: World): string =>
	[...n8n.rows.map(({ data }) => JSON.stringify(fromStored(data).resultData)), ...logs].join('\n');

export const isKeyRefused = (status: number): boolean => status === 401 || status === 403;

/** Why an execution failed. */
export const errorOf = ({ data }: Row) => fromStored(data).resultData.error;

/** The id of the execution that has done something. */
export const idOf = (by: string): string => by.replace('execution ', '');

/** Those that cost something, and are the node's doing. */
export const isPaid = ({ outcome, isTwin, isCharged }: ServiceTask): boolean =>
	(outcome === 'SUCCESS' || isCharged) && !isTwin;

const linkOf = (item: INodeExecutionData | undefined): number =>
	typeof item?.pairedItem === 'object' && 'item' in item.pairedItem ? item.pairedItem.item : -1;

/** What the node was given in an execution, when it ran last. */
function inputsOf({ data }: Row): INodeExecutionData[] {
	const { Media, Start } = fromStored(data).resultData.runData;
	// A retry of an execution that was killed may have run the node before once more.
	const before = Media?.at(-1)?.source[0]?.previousNodeRun ?? 0;
	return Start?.[before]?.data?.main?.[0] ?? [];
}

/** What the node was given for an item that it has put out. */
export const inputOf = (row: Row, item: INodeExecutionData): INodeExecutionData | undefined =>
	inputsOf(row)[linkOf(item)];

/** A task that an item should name and does not: the node has learnt its id. */
export function unsaidOf(
	{ n8n, service }: World,
	execution: string,
	item: INodeExecutionData,
): ServiceTask | undefined {
	const row = n8n.row(execution);
	const name = itemOf(item.json) || itemOf(row && inputsOf(row)[linkOf(item)]?.json);
	const said = JSON.stringify(item.json);
	// n8n goes on by itself with some runs that were killed in a turn: the log has the ids of that turn.
	if (row?.isKilled && said.includes('It is not known whether the task was created'))
		return undefined;
	return service.tasks.find(
		(task) =>
			task.by === `execution ${execution}` &&
			task.item === name &&
			task.outcome === 'SUCCESS' &&
			task.toldTo !== undefined &&
			!said.includes(task.id),
	);
}

/** What is wrong with the order and the links of the node's output. */
export function outputOf({ history }: World, row: Row): string[] {
	const { items, onError } = history.node;
	const run = fromStored(row.data).resultData.runData.Media?.at(-1);
	if (!run) return [];
	const [first, errors] = [0, 1].map((output) => run.data?.main?.[output] ?? []);
	const all = [...(first ?? []), ...(errors ?? [])];
	if (all.length !== items) return [`execution ${row.id} puts out ${all.length} of ${items}`];
	// Of a node that failed as a whole n8n puts out what came in.
	if (run.error) return [];
	const inputs = inputsOf(row);
	const lists = onError === 'continueErrorOutput' ? [first ?? [], errors ?? []] : [all];
	return lists.flatMap((list) =>
		list.flatMap((item, position) => {
			const [earlier, index] = [linkOf(list[position - 1]), linkOf(item)];
			const name = itemOf(item.json);
			if (name !== '' && name !== itemOf(inputs[index]?.json)) {
				return [`execution ${row.id} links ${name} to item ${index}`];
			}
			return index > earlier ? [] : [`execution ${row.id} puts item ${index} after ${earlier}`];
		}),
	);
}

/** Reads that follow no interval: the last one at the deadline, and the first one of another try or turn. */
export function isFollowUp(
	world: World,
	read: SeenRequest,
	before: SeenRequest | undefined,
): boolean {
	const { service, history } = world;
	const task = service.task(read.taskId ?? '');
	if (!task || !before) return true;
	const age = read.at - firstOf(world, task).createdAt;
	const { timeoutSeconds, maxTries } = history.node;
	return maxTries > 1 || age >= timeoutSeconds * 1000;
}

/** Whether n8n keeps anything that the node has stored in an execution. */
export const isStored = ({ data }: Row): boolean =>
	Object.keys(fromStored(data).executionData?.contextData['node:Media'] ?? {}).length > 0;
