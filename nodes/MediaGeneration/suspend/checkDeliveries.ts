import type { IExecuteFunctions } from 'n8n-workflow';

import { callbackAddress } from '../callback/callbackUrl';
import { redeliver } from '../callback/redeliver';
import { accountOf, hasStarted } from '../callback/startOnce';
import type { Connection } from '../service/connect';
import type { TaskRecord } from '../service/taskRecord';
import { settled } from '../shared/concurrency';
import { messageOf } from '../shared/itemError';
import { without } from '../shared/json';
import { webhookBase } from '../shared/n8nInternals';
import { type AwaitedDelivery, type DeliveryCheck } from './checkState';
import { askedPauseMs } from './checkSchedule';

/** Tasks at once at most. */
const PARALLEL = 25;

/** What an attempt came to: `undefined` where the trigger has the task now, else why it has not. */
type Attempt = (delivery: AwaitedDelivery) => Promise<string | undefined>;

/**
 * One check for tasks whose callback has not been seen to arrive. The check ends where the service asks to wait.
 *
 * @param now milliseconds since 1970
 * @returns the state after the check, with the deliveries that are left
 * @see specification, section 6: keep polling as a fallback
 */
export async function checkDeliveries(
	state: DeliveryCheck,
	attempt: Attempt,
	now: number,
): Promise<DeliveryCheck> {
	const left: AwaitedDelivery[] = [];
	let pauseMs = 0;
	const tryOne = async (delivery: AwaitedDelivery) => {
		const tried = await settled(attempt(delivery));
		if ('error' in tried) pauseMs = Math.max(pauseMs, askedPauseMs(tried.error));
		const last = 'value' in tried ? tried.value : messageOf(tried.error);
		if (last === undefined) return [];
		// The same object while nothing changes: n8n keeps the state of every check, and stores one object once.
		return [last === delivery.last ? delivery : { ...delivery, last }];
	};
	for (let at = 0; at < state.deliveries.length; at += PARALLEL) {
		const group = state.deliveries.slice(at, at + PARALLEL);
		left.push(...(pauseMs > 0 ? group : (await Promise.all(group.map(tryOne))).flat()));
	}
	return {
		...without(state, 'notBefore'),
		deliveries: left,
		...(pauseMs > 0 && { notBefore: now + pauseMs }),
	};
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
 * @param connection its API key signs the address anew, with the key of now
 * @returns undefined where the trigger has it, else why it has not
 * @throws ServiceError as `read` does; as `redeliver` does; the database's error
 */
export async function deliverTask(
	context: IExecuteFunctions,
	delivery: AwaitedDelivery,
	{ apiKey, baseUrl }: Pick<Connection, 'apiKey' | 'baseUrl'>,
	read: (taskId: string) => Promise<TaskRecord>,
): Promise<string | undefined> {
	const { taskId, address, triggerId, triggerCredentialId = '', last } = delivery;
	const account = accountOf(baseUrl, triggerCredentialId);
	if (triggerId !== undefined && (await hasStarted(context, triggerId, { account, taskId }))) {
		return undefined;
	}
	const task = await read(taskId);
	if (task.state === 'PENDING') return NOT_FINISHED;
	// A trigger of this very n8n is called at n8n's present address, and at no other: whoever has the former one now
	// would get the token.
	const url = address.startsWith('/') ? `${webhookBase(context)}${address}` : address;
	const answer = await redeliver(context, task, callbackAddress(url, apiKey));
	if (answer === undefined) return 'something else answers in place of the trigger';
	if (triggerId === undefined || answer === 'notSelected') return undefined;
	return answer === 'accepted' && last === STORED ? undefined : STORED;
}
