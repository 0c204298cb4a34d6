import { endOfDeliveries } from '../callback/delivery';
import type { TaskEntry } from '../create/taskEntry';
import { type DeliveredPlan, isDelivered } from '../plan/planTypes';
import { ItemError } from '../shared/itemError';
import type { RunView, Step } from './nextStep';

/** Between two deliveries of a result, milliseconds. */
const PAUSE_MS = 60_000;

/** Whether the ledger is asked now, as once in each turn: a callback that came needs no read and no delivery. */
export function isToAskLedger(
	{ plan, deliveries: { askedAt = -Infinity } = {} }: TaskEntry,
	{ turnStartedAt }: Pick<RunView, 'turnStartedAt'>,
): boolean {
	const hasLedger = isDelivered(plan) && plan.deliverTo.triggerId !== undefined;
	return hasLedger && askedAt < turnStartedAt;
}

/** Decides what happens next to a task that has ended, and whose result goes to a trigger. */
export function deliveryStep(
	{ deliveries = {}, until = Infinity }: TaskEntry,
	{ deliverTo: { triggerId } }: DeliveredPlan,
	now: number,
): Step {
	const { answer, at = -Infinity } = deliveries;
	const end = endOfDeliveries(deliveries, { until, hasLedger: triggerId !== undefined });
	if (end === 'result') return { kind: 'result' };
	if (end === 'error') return { kind: 'failed', error: new ItemError(answer?.words ?? '') };
	return { kind: 'deliver', at: Math.max(now, at + PAUSE_MS) };
}
