import type { IExecuteFunctions } from 'n8n-workflow';

import { accountOf } from '../callback/account';
import { callbackAddress } from '../callback/callbackUrl';
import { redeliver } from '../callback/redeliver';
import { hasStarted } from '../callback/startedTasks';
import type { FinishedTask } from '../service/taskRecord';
import { webhookBase } from '../shared/insides';
import type { AwaitedDelivery } from './checkState';

/**
 * Whether the trigger has started for a task, as far as that can be told without asking the trigger itself: n8n may not
 * reach its own address, and the trigger's process knows what was stored, and not what has begun.
 *
 * @param baseUrl of the service, as `parseBaseUrl` returns it
 * @throws the database's error
 */
export async function hasArrived(
	context: IExecuteFunctions,
	{ taskId, triggerId, triggerCredentialId = '' }: AwaitedDelivery,
	baseUrl: string,
): Promise<boolean> {
	if (triggerId === undefined) return false;
	const account = accountOf(baseUrl, triggerCredentialId);
	return await hasStarted(context, triggerId, { account, taskId });
}

/** Where the trigger has stored an execution: n8n may be killed before the execution begins. */
const STORED = 'delivered, and has not started the workflow yet';

/**
 * Delivers a finished task to its trigger, whose callback has not been seen to arrive. Of a trigger of the same workflow
 * the ledger says at the next check whether the delivery has arrived. If the trigger takes the task twice, that counts,
 * too: its process forgets a task that was stored after ten minutes.
 *
 * @param apiKey signs the address anew, with the key of now
 * @returns undefined where the trigger has it, else why it has not
 * @throws Stopped where the execution was stopped
 */
export async function deliverTask(
	context: IExecuteFunctions,
	delivery: AwaitedDelivery,
	task: FinishedTask,
	apiKey: string,
): Promise<string | undefined> {
	const address = callbackAddress(presentAddress(context, delivery), apiKey);
	const answer = await redeliver(context, task, address);
	if ('refusal' in answer) return answer.refusal.message;
	if (answer.delivery === undefined) return 'something else answers in place of the trigger';
	if (delivery.triggerId === undefined || answer.delivery === 'notSelected') return undefined;
	return answer.delivery === 'accepted' && delivery.last === STORED ? undefined : STORED;
}

/**
 * A trigger of this very n8n is called at n8n's present address, and at no other: whoever has the former one now would
 * get the token.
 */
function presentAddress(context: IExecuteFunctions, { address, ownPath }: AwaitedDelivery): string {
	const base = webhookBase(context);
	return ownPath === undefined || base === undefined ? address : base + ownPath;
}
