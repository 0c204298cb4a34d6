import type { IExecuteFunctions } from 'n8n-workflow';

import {
	type DeliveryAnswer,
	noteAnswer,
	redeliver,
	signedAddress,
	TriggerBusy,
} from '../callback/delivery';
import { startCallbackWait } from '../callback/expectedCallbacks';
import { hasStarted } from '../callback/ledger';
import type { TaskEntry } from '../create/taskEntry';
import { type DeliveredPlan, isDelivered } from '../plan/planTypes';
import type { FinishedTask } from '../service/taskRecord';
import { clock, Stopped } from '../shared/clock';
import { count, ItemError, messageOf } from '../shared/itemError';
import { settled } from '../shared/promises';
import { NO_CREDENTIAL, type RunContext } from './runContext';

/**
 * The time of the task begins at once. In the first turn nobody looks: its callback has a minute to come by itself, and
 * then n8n has stored the run, so no kill ends it.
 *
 * @returns whether this turn leaves the task alone
 */
export function hasTimeToCome(
	{ turn, journal }: RunContext,
	{ timeoutMs }: DeliveredPlan,
	entry: TaskEntry,
): boolean {
	entry.until ??= clock.now() + timeoutMs;
	entry.deliveries ??= {};
	return turn.maySleep && !journal.isLater;
}

/** Ends an entry if its trigger has started for the task. @returns whether the task goes on in this turn */
export async function askLedger(run: RunContext, entry: TaskEntry): Promise<boolean> {
	const { context, connection } = run;
	const { plan, taskId = '', deliveries = {} } = entry;
	if (!isDelivered(plan)) return true;
	const { triggerId, baseUrl: ordered = connection.baseUrl } = plan.deliverTo;
	deliveries.askedAt = clock.now();
	const asked = [...new Set([ordered, connection.baseUrl])].map(async (baseUrl) => {
		return await hasStarted(context, String(triggerId), { baseUrl, taskId });
	});
	const known = await Promise.allSettled(asked);
	// What the ledger does not tell, the trigger tells.
	if (!known.some((answer) => answer.status === 'fulfilled' && answer.value)) return true;
	return end(run, entry, deliveries.answer ? 'accepted' : 'callback');
}

/** Hands the result of a finished task to its trigger. @returns whether the task goes on in this turn */
export async function deliver(run: RunContext, entry: TaskEntry): Promise<boolean> {
	const { deliveries = {} } = entry;
	const answer = await askTrigger(run, entry);
	if (answer === undefined) return false;
	noteAnswer(deliveries, answer, clock.now());
	if (answer.kind !== 'refused' && answer.kind !== 'notNow') {
		const delivery = answer.kind === 'taken' ? 'accepted' : answer.kind;
		entry.fields = { delivered: true, delivery };
	}
	return true;
}

function end(run: RunContext, entry: TaskEntry, delivery: string): false {
	entry.fields = { delivered: true, delivery };
	entry.end = 'result';
	run.noteEnd(entry);
	return false;
}

/** @returns undefined if this turn has no time for it: a delivery makes the trigger read the task */
async function askTrigger(run: RunContext, entry: TaskEntry): Promise<DeliveryAnswer | undefined> {
	const { context, connection, window, turn } = run;
	const { plan, task } = entry;
	if (!isDelivered(plan)) return undefined;
	if (connection.isBroken) return { kind: 'notNow', words: NO_CREDENTIAL };
	const address = signedAddress(context, plan.deliverTo, connection.apiKey);
	const sent = await settled(
		window.read(
			async () => ({ told: await redeliver(context, task as FinishedTask, address) }),
			turn.readsUntil,
		),
	);
	if ('error' in sent) {
		const { error } = sent;
		if (error instanceof Stopped) throw error;
		return { kind: error instanceof TriggerBusy ? 'notNow' : 'refused', words: messageOf(error) };
	}
	if (sent.value === undefined) return undefined;
	const { told } = sent.value;
	if (told === undefined) {
		return { kind: 'refused', words: 'Something else answers in place of the trigger' };
	}
	return { kind: told === 'notSelected' ? told : 'taken' };
}

/**
 * Ends a run whose results go to a trigger if they cannot: when nothing else is to be waited for, or when the trigger
 * refuses a task for good. Then another execution goes on with the tasks that are left.
 *
 * @returns an error that names the tasks that have not reached the trigger, and why; undefined if the run goes on
 */
export async function lostResults({
	context,
	journal,
}: RunContext): Promise<ItemError | undefined> {
	const awaited = journal.entries.filter(({ plan }) => isDelivered(plan));
	const failed = awaited.filter(({ end }) => end === 'error');
	const open = awaited.filter(({ end }) => end === undefined);
	const isRefused = ({ deliveries }: TaskEntry) => deliveries?.answer?.kind === 'refused';
	if (failed.length === 0 || (open.length > 0 && !failed.some(isRefused))) return undefined;
	const left = open.filter((entry) => !isRefused(entry));
	if (left.length > 0 && !(await handOver(context, left))) return undefined;
	const lost = awaited.filter(({ end }) => end !== 'result');
	const lists = lost.map(
		({ taskId, error, deliveries }) => `${taskId}: ${error?.message ?? deliveries?.answer?.words}`,
	);
	return new ItemError(
		`${count(lost.length, 'task')} of '${creatorOf(context)}' did not reach the trigger`,
		{
			description: `Deliver them with the operation Task → Send Result Again, or retry this execution. ${lists.join('; ')}`,
		},
	);
}

/** @returns whether another execution goes on with these tasks */
async function handOver(context: IExecuteFunctions, left: TaskEntry[]): Promise<boolean> {
	const callbacks = left.flatMap(({ plan, until = clock.now() }) =>
		isDelivered(plan) ? { ...plan.deliverTo, taskId: plan.taskId, until } : [],
	);
	const started = await settled(startCallbackWait(context, creatorOf(context), callbacks));
	if ('error' in started) return false;
	const fields = { delivered: false, delivery: 'handedOver' };
	// A retry of this execution leaves them to the other one.
	for (const entry of left) Object.assign(entry, { end: 'result', fields, task: undefined });
	return true;
}

/** The name of the node that has created the tasks. */
const creatorOf = (context: IExecuteFunctions): string =>
	String(context.getInputData()[0]?.json.createdBy ?? context.getNode().name);

/** How far a run is whose results go to a trigger, for a person; undefined for another run. */
export function describeDeliveries(entries: readonly TaskEntry[]): string | undefined {
	const awaited = entries.filter(({ plan }) => isDelivered(plan));
	if (awaited.length === 0) return undefined;
	const ended = awaited.filter(({ end }) => end === 'result');
	const byCallback = ended.filter(({ fields }) => fields?.delivery === 'callback').length;
	const answers = awaited.flatMap(({ end, deliveries }) =>
		end === undefined && deliveries?.answer ? deliveries.answer : [],
	);
	const taken = answers.filter(({ kind }) => kind === 'taken').length;
	const trouble = answers.find(({ words }) => words !== undefined);
	return [
		`${ended.length} of ${count(awaited.length, 'result')} have reached the trigger (${byCallback} by callback)`,
		...(taken > 0 ? [`the trigger works on ${taken} more`] : []),
		...(trouble ? [`its last answer: ${trouble.words}`] : []),
	].join('; ');
}
