import type { IExecuteFunctions } from 'n8n-workflow';

import { callbackAddress } from '../callback/callbackUrl';
import { redeliver } from '../callback/redeliver';
import { hasStarted } from '../callback/startedTasks';
import type { FinishedTask } from '../service/taskRecord';
import { webhookBase } from '../shared/insides';
import type { WatchedDelivery } from '../wait/watchState';

/**
 * Whether the trigger has started for a task, as far as that can be told without asking the trigger itself: n8n may not
 * reach its own address, and the trigger's process knows what was stored, and not what has begun.
 *
 * @throws the database's error
 */
export async function hasArrived(
	context: IExecuteFunctions,
	{ taskId, triggerId }: WatchedDelivery,
): Promise<boolean> {
	return triggerId !== undefined && (await hasStarted(context, triggerId, taskId));
}

/**
 * Delivers a finished task to its trigger, whose callback has not been seen to arrive.
 *
 * @param apiKey signs the address anew, with the key of now
 * @returns undefined where the trigger has it, else why it has not
 * @throws Stopped where the execution was stopped
 */
export async function deliverTask(
	context: IExecuteFunctions,
	delivery: WatchedDelivery,
	task: FinishedTask,
	apiKey: string,
): Promise<string | undefined> {
	let refusal: string | undefined;
	for (const address of addressesOf(context, delivery)) {
		const answer = await redeliver(context, task, callbackAddress(address, apiKey));
		if ('delivery' in answer) {
			// It was stored, and has not begun, or n8n has lost it: then it is taken again after a while.
			const isStored = answer.delivery === 'duplicate' && delivery.triggerId !== undefined;
			return isStored ? 'delivered, and has not started the workflow yet' : undefined;
		}
		refusal ??= answer.refusal.message;
	}
	return refusal;
}

/** A trigger of this very n8n is reached where n8n is now; at the address of then somebody else may be. */
function addressesOf(
	context: IExecuteFunctions,
	{ address, ownPath }: WatchedDelivery,
): Set<string> {
	const base = webhookBase(context);
	const isOwn = ownPath !== undefined && base !== undefined;
	return new Set(isOwn ? [base + ownPath, address] : [address]);
}
