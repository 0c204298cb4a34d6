import type { IExecuteFunctions } from 'n8n-workflow';

import { callbackAddress } from '../callback/callbackUrl';
import { redeliver } from '../callback/redeliver';
import type { FinishedTask } from '../service/taskRecord';
import { webhookBase } from '../shared/insides';
import type { WatchedDelivery } from '../wait/watchState';

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
		if ('delivery' in answer) return undefined;
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
