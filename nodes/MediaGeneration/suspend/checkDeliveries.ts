import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import { attempt } from '../shared/attempt';
import { messageOf } from '../shared/itemError';
import { without } from '../shared/json';
import { askedPauseMs } from './checkSchedule';
import type { AwaitedDelivery, DeliveryCheck } from './checkState';

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
	const answer = await attempt(async () => {
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
