import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import { settled } from '../shared/concurrency';
import { messageOf } from '../shared/itemError';
import { without } from '../shared/json';
import { askedPauseMs, type AwaitedDelivery, type DeliveryCheck } from './checkState';
import type { IExecuteFunctions } from 'n8n-workflow';
import { accountOf, hasStarted } from '../callback/startedTasks';
import { callbackAddress } from '../callback/callbackUrl';
import { redeliver } from '../callback/redeliver';
import { webhookBase } from '../shared/n8nInternals';

/** Tasks at once at most. */
const PARALLEL = 25;

type Read = (taskId: string) => Promise<TaskRecord>;

/** What a delivery came to: `undefined` where the trigger has the task now, else why it has not. */
type Deliver = (delivery: AwaitedDelivery, task: FinishedTask) => Promise<string | undefined>;

/** Whether a trigger is known to have started for a task. */
type HasArrived = (delivery: AwaitedDelivery) => Promise<boolean>;

/**
 * One check for finished tasks whose callback has not been seen to arrive: each is delivered to its trigger, whose
 * ledger knows the tasks that it had. The check ends where the service asks to wait.
 *
 * @param now milliseconds since 1970
 * @returns the state after the check, with the deliveries that are left
 * @see specification, section 6: keep polling as a fallback
 */
export async function checkDeliveries(
	state: DeliveryCheck,
	read: Read,
	deliver: Deliver,
	hasArrived: HasArrived,
	now: number,
): Promise<DeliveryCheck> {
	const left: AwaitedDelivery[] = [];
	let pauseMs = 0;
	for (let at = 0; at < state.deliveries.length; at += PARALLEL) {
		const group = state.deliveries.slice(at, at + PARALLEL);
		if (pauseMs > 0) {
			left.push(...group);
			continue;
		}
		const checked = await Promise.all(
			group.map(async (delivery) => await checkDelivery(delivery, read, deliver, hasArrived)),
		);
		left.push(...checked.flatMap(({ delivery }) => delivery ?? []));
		pauseMs = Math.max(...checked.map((each) => each.pauseMs));
	}
	return {
		...without(state, 'notBefore'),
		deliveries: left,
		...(pauseMs > 0 && { notBefore: now + pauseMs }),
	};
}

/** @returns no delivery where the trigger has the task now */
async function checkDelivery(
	delivery: AwaitedDelivery,
	read: Read,
	deliver: Deliver,
	hasArrived: HasArrived,
): Promise<{ delivery?: AwaitedDelivery; pauseMs: number }> {
	let isPending = false;
	const answer = await settled(async () => {
		if (await hasArrived(delivery)) return undefined;
		const task = await read(delivery.taskId);
		isPending = task.state === 'PENDING';
		return task.state === 'PENDING' ? 'not finished' : await deliver(delivery, task);
	});
	const last = 'value' in answer ? answer.value : messageOf(answer.error);
	if (last === undefined) return { pauseMs: 0 };
	const pauseMs = 'error' in answer ? askedPauseMs(answer.error) : 0;
	// The same object while nothing changes: n8n keeps the state of every check, and stores one object once.
	const isSame = last === delivery.last && isPending === delivery.isPending;
	return { delivery: isSame ? delivery : { ...delivery, last, isPending }, pauseMs };
}

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
 * @throws as `redeliver` does
 */
export async function deliverTask(
	context: IExecuteFunctions,
	delivery: AwaitedDelivery,
	task: FinishedTask,
	apiKey: string,
): Promise<string | undefined> {
	const address = callbackAddress(presentAddress(context, delivery), apiKey);
	const answer = await redeliver(context, task, address);
	if (answer === undefined) return 'something else answers in place of the trigger';
	if (delivery.triggerId === undefined || answer === 'notSelected') return undefined;
	return answer === 'accepted' && delivery.last === STORED ? undefined : STORED;
}

/**
 * A trigger of this very n8n is called at n8n's present address, and at no other: whoever has the former one now would
 * get the token.
 */
function presentAddress(context: IExecuteFunctions, { address, ownPath }: AwaitedDelivery): string {
	const base = webhookBase(context);
	return ownPath === undefined || base === undefined ? address : base + ownPath;
}
