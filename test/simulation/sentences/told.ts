import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { isTerminal, type Row } from '../../workflow/n8n/database';
import { fromStored } from '../../workflow/stored';
import { type History, SECOND_NODE } from '../history';
import type { SeenRequest, Told } from '../world/network';
import { itemOf, type ServiceTask } from '../world/service';
import type { World } from '../world/world';

export const isRun = ({ start }: Row): boolean => start === 'Start';

export const isOf = (row: Row, { by }: { by: string }): boolean => by === `execution ${row.id}`;

/** The id of the execution that has done something. */
export const idOf = (by: string): string => by.replace('execution ', '');

/** The executions of the user's workflow. */
export const runsOf = ({ n8n }: World): Row[] => n8n.rows.filter(isRun);

/** Whether the workflow itself waits for the results. */
export const isWaited = ({ workflow }: History): boolean =>
	workflow !== 'triggered' && workflow !== 'returned';

/** Whether an execution was stopped or killed. */
export const wasCut = ({ status, isKilled }: Row): boolean => isKilled || status === 'canceled';

/** An execution, and back along its retries to the first. */
export function withRetried(world: World, execution: string): Row[] {
	const row = world.n8n.row(execution);
	return row ? [row, ...withRetried(world, row.retryOf ?? '')] : [];
}

/** The creates of an execution. */
export const createsBy = ({ network }: World, row: Row): SeenRequest[] =>
	network.seen.filter((seen) => seen.kind === 'create' && isOf(row, seen));

/** The creates of an execution, and of the executions that it retries. */
export const createsOf = (world: World, row: Row): SeenRequest[] =>
	withRetried(world, row.id).flatMap((each) => createsBy(world, each));

/** Whether it may have reached the service. */
export const isSent = ({ isUnsent }: SeenRequest): boolean => isUnsent !== true;

export const isOfSecond = (item = ''): boolean => Number(item.split(' ').pop()) >= SECOND_NODE;

/** Whether whoever was told lived on, so that it could be said. */
export const isHeard = (told: Told | undefined): boolean =>
	told !== undefined && told.event < (told.process?.diedIn ?? Infinity);

/** The time of a task that was created anew is counted from the first one. */
export const firstOf = ({ service }: World, task: ServiceTask): ServiceTask =>
	service.tasks.find(({ by, item }) => by === task.by && item === task.item) ?? task;

/** All that a user can find of what happened: outputs and errors of executions, and the log. */
export const everythingSaid = ({ n8n, logs }: World): string =>
	[...n8n.rows.map(({ data }) => JSON.stringify(fromStored(data).resultData)), ...logs].join('\n');

export const isKeyRefused = (status: number): boolean => status === 401 || status === 403;

/** Why an execution failed. */
export const errorOf = ({ data }: Row) => fromStored(data).resultData.error;

/** Tasks that cost something, and are the node's doing. */
export const isPaid = ({ outcome, isTwin, isCharged }: ServiceTask): boolean =>
	(outcome === 'SUCCESS' || isCharged) && !isTwin;

export const linkOf = (item: INodeExecutionData | undefined): number =>
	typeof item?.pairedItem === 'object' && 'item' in item.pairedItem ? item.pairedItem.item : -1;

/** What the node was given in an execution, when it ran last. */
export function inputsOf({ data }: Row): INodeExecutionData[] {
	const { Media, Start } = fromStored(data).resultData.runData;
	// A retry of an execution that was killed may have run the node before once more.
	const before = Media?.at(-1)?.source[0]?.previousNodeRun ?? 0;
	return Start?.[before]?.data?.main?.[0] ?? [];
}

/** Of an order whose outcome nobody knows. */
export const IN_DOUBT = /not known whether the task was created/;

/** What a retry says that does not go on. */
export const REFUSED = /n8n has not kept what it created|retry of (?:this )?execution.* goes on/;

/** Whether n8n keeps anything that a node has stored in an execution. */
export const isStored = ({ data }: Row): boolean => {
	const { contextData = {} } = fromStored(data).executionData ?? {};
	return ['node:Media', 'node:Second'].some(
		(name) => Object.keys((contextData[name] ?? {}) as IDataObject).length > 0,
	);
};

/** What has left for the end of the workflow. */
export const outOf = ({ n8n }: World, { id }: Row) =>
	n8n.sunk.filter(({ execution, node }) => execution === id && ['Sink', 'Failed'].includes(node));

/** What has left the node as an error: when, with the names of its item and of the order of a second node for it. */
export const errorsOf = (world: World, row: Row) =>
	outOf(world, row).flatMap(({ at, items }) =>
		items
			.filter(({ json }) => json.error !== undefined)
			.map(({ json }) => {
				const names = [json.prompt, json.second].map((name) => itemOf(name));
				return { at, names, text: String(json.error), taskId: json.taskId };
			}),
	);

export const hasEnded = ({ status }: Row): boolean => isTerminal(status);
