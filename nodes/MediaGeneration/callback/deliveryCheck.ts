import { type IDataObject, type IExecuteFunctions, UserError } from 'n8n-workflow';

import { startSubExecution } from '../n8n/subExecution';
import { MIN_READ_INTERVAL_MS } from '../service/client';
import { count } from '../shared/count';
import { readStored } from '../shared/json';
import { nextWakeAt } from '../wait/nextWake';
import type { TriggerNode } from './triggerCallbackUrl';

/** The operation of the node in the sub-execution, which no panel offers. */
export const CHECK_CALLBACKS = 'checkCallbacks';

/** To be raised when the stored shape changes: an update of this package may read what the version before it stored. */
const VERSION = 1;

/** A task that its trigger is not known to have started for; with the trigger, if it is in the same workflow. */
export interface AwaitedDelivery extends Partial<TriggerNode> {
	taskId: string;
	/** When its time is up, milliseconds since 1970. */
	until: number;
	/** The trigger's address without its token; without n8n's own address, too, if that is where the trigger is. */
	address: string;
	/** How the last attempt ended, and when it began, milliseconds since 1970. */
	last?: string;
	triedAt?: number;
}

/** What a sub-execution checks: tasks whose callbacks are made up for if they do not come. Times as above. */
export interface DeliveryCheck {
	version: typeof VERSION;
	/** The node that created the tasks, for messages. */
	nodeName: string;
	startedAt: number;
	deliveries: AwaitedDelivery[];
	/** The end of the pause that the service asked for. */
	notBefore?: number | undefined;
	/** Whether the last turn had no time for all tasks, or delivered one: the next turn follows in a minute. */
	isSoon?: boolean;
	/** When a turn first found the time of all tasks up. */
	overdueAt?: number | undefined;
}

/** @throws UserError if another version of this package wrote the state */
export const parseCheck = (stored: unknown): DeliveryCheck =>
	readStored<DeliveryCheck>(stored, VERSION);

const NOTE =
	'## n8n made this execution by itself\nA Media Generation node has created tasks for a Media Generation Trigger. This execution makes up for callbacks that do not come, and ends by itself when the trigger has started for all tasks.\n\n**Do not stop or delete it** while you wait for results.';

/**
 * Starts the sub-execution that makes up for callbacks that do not come.
 *
 * @throws n8n's error if n8n starts no sub-execution
 */
export async function startCheck(
	context: IExecuteFunctions,
	deliveries: AwaitedDelivery[],
): Promise<void> {
	const { name } = context.getNode();
	const check: DeliveryCheck = {
		version: VERSION,
		nodeName: name,
		startedAt: Date.now(),
		deliveries,
	};
	const how = {
		operation: CHECK_CALLBACKS,
		title: `${name}: waiting for callbacks`,
		nodeName: 'Makes up for lost callbacks',
		note: NOTE,
	};
	await startSubExecution(context, how, check as unknown as IDataObject);
}

/** What is said of a task that the service has not finished. */
export const NOT_FINISHED = 'not finished';

/** The trigger has stored an execution. n8n may be killed before its items leave the trigger. */
export const STORED = 'delivered, and has not started the workflow yet';

/** A task that cannot be read or delivered when its time is up is tried for so long: the trouble may pass. */
const LAST_TRIES_MS = 10 * 60_000;

/**
 * So long if no turn could try it since, or if the trigger has it: the trigger tries to download results for an hour.
 */
const LONGEST_TRIES_MS = 75 * 60_000;

/** When the next turn is due, milliseconds since 1970. @param now when the last turn ended */
export function nextTurnAt(check: DeliveryCheck, now: number): number {
	const { deliveries, notBefore = 0, overdueAt } = check;
	const dueAt = deliveries.map(({ until }) => until);
	// The last tries come each minute.
	const isSoon = check.isSoon === true || overdueAt !== undefined;
	const wakeAt = nextWakeAt({ ...check, intervalMs: 0, isOverdue: isSoon, dueAt }, now);
	return Math.max(notBefore, now + MIN_READ_INTERVAL_MS, wakeAt);
}

/**
 * Notes when a turn first found the time of all tasks up: the last tries begin then. n8n may have been down or asleep
 * before, and may begin before its network.
 */
export const noteOverdue = (check: DeliveryCheck, now: number): DeliveryCheck =>
	check.deliveries.every(({ until }) => until <= now)
		? { ...check, overdueAt: Math.min(check.overdueAt ?? now, now) }
		: check;

/**
 * Why tasks have not started the workflow of their trigger. While one task is awaited, the others are tried as well.
 *
 * @param now milliseconds since 1970
 * @returns undefined if one is awaited; otherwise an error that names all tasks
 */
export function undelivered(
	{ deliveries, nodeName, overdueAt }: DeliveryCheck,
	now: number,
): UserError | undefined {
	const isLost = ({ until, last, triedAt = -Infinity }: AwaitedDelivery) => {
		const isTried = triedAt >= until;
		if (isTried && last === NOT_FINISHED) return true;
		const triesMs = isTried && last !== STORED ? LAST_TRIES_MS : LONGEST_TRIES_MS;
		return (overdueAt ?? Infinity) + triesMs <= now;
	};
	if (!deliveries.every(isLost)) return undefined;
	const lists = deliveries.map(({ taskId, last }) => `${taskId}: ${last ?? 'not read'}`);
	return new UserError(
		`${count(deliveries.length, 'task')} of '${nodeName}' did not reach the trigger in time`,
		{
			description: `Deliver them with the operation Task → Send Result Again. ${lists.join('; ')}`,
		},
	);
}
