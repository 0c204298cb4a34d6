import type { IExecuteFunctions } from 'n8n-workflow';

import { redeliver } from '../callback/redeliver';
import { accountOf, hasStarted } from '../callback/startOnce';
import { callbackAddress } from '../callback/callbackToken';
import type { Connection } from '../service/connect';
import { settled, inGrowingGroups } from '../shared/promises';
import { messageOf } from '../shared/itemError';
import { webhookBase } from '../shared/n8nInternals';
import { afterPause, askedPauseMs } from './checkSchedule';
import type { AwaitedDelivery, DeliveryCheck } from './checkState';

/**
 * One check for tasks whose callback has not been seen to arrive. The check ends where the service asks to wait.
 *
 * @param attempt comes to nothing where the trigger has the task now, else to why it has not
 * @param now milliseconds since 1970
 * @returns the state after the check, with the deliveries that are left
 * @see specification, section 6: keep polling as a fallback
 */
export async function checkDeliveries(
	state: DeliveryCheck,
	attempt: (delivery: AwaitedDelivery) => Promise<string | undefined>,
	now: number,
): Promise<DeliveryCheck> {
	const left: Array<AwaitedDelivery | undefined> = [...state.deliveries];
	let pauseMs = 0;
	const tryOne = async ([index, delivery]: [number, AwaitedDelivery]) => {
		const tried = await settled(attempt(delivery));
		if ('error' in tried) pauseMs = Math.max(pauseMs, askedPauseMs(tried.error));
		const last = 'value' in tried ? tried.value : messageOf(tried.error);
		left[index] = last === undefined ? undefined : { ...delivery, last };
	};
	await inGrowingGroups([...state.deliveries.entries()], tryOne, () => pauseMs > 0);
	return afterPause(
		{ ...state, deliveries: left.filter((each) => each !== undefined) },
		pauseMs,
		now,
	);
}

/** What is said of a task that the service has not finished. */
export const NOT_FINISHED = 'not finished';

/** Where the trigger has stored an execution: n8n may be killed before the execution begins. */
const STORED = 'delivered, and has not started the workflow yet';

/**
 * Delivers a task to its trigger, where it is finished and its callback has not been seen to arrive. The ledger of a
 * trigger of the same workflow is asked first: n8n may not reach its own address, and the trigger's process knows what
 * was stored, and not what has begun. So it says at the next check whether the delivery has arrived. If the trigger takes
 * the task twice, that counts, too: its process forgets a task that was stored after ten minutes.
 *
 * @param service its API key signs the address anew, with the key of now
 * @returns undefined where the trigger has it, else why it has not
 * @throws ServiceError; as `redeliver` does; the database's error
 */
export async function deliverTask(
	context: IExecuteFunctions,
	{ taskId, address, triggerId, triggerCredentialId = '', last }: AwaitedDelivery,
	{ apiKey, baseUrl, client }: Connection,
): Promise<string | undefined> {
	const account = accountOf(baseUrl, triggerCredentialId);
	if (triggerId !== undefined && (await hasStarted(context, triggerId, { account, taskId }))) {
		return undefined;
	}
	const task = await client.readTask(taskId);
	if (task.state === 'PENDING') return NOT_FINISHED;
	// A trigger of this very n8n is called at n8n's present address, and at no other: whoever has the former one now
	// would get the token.
	const url = address.startsWith('/') ? `${webhookBase(context)}${address}` : address;
	const answer = await redeliver(context, task, callbackAddress(url, apiKey));
	if (answer === undefined) return 'something else answers in place of the trigger';
	if (triggerId === undefined || answer === 'notSelected') return undefined;
	return answer === 'accepted' && last === STORED ? undefined : STORED;
}
