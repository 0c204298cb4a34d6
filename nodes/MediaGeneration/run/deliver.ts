import { type IExecuteFunctions, UserError } from 'n8n-workflow';

import { startCallbackWait } from '../callback/callbackWait';
import {
	afterAnswer,
	type DeliveryAnswer,
	endOfDeliveries,
	type Recipient,
	signedAddress,
} from '../callback/delivery';
import { hasStarted } from '../callback/ledger';
import { redeliver, TriggerBusy } from '../callback/redeliver';
import type { TaskEntry } from '../create/taskEntry';
import type { ReadPlan } from '../plan/planTypes';
import type { FinishedTask } from '../service/taskRecord';
import { Stopped } from '../shared/clock';
import { count } from '../shared/count';
import { ItemError, messageOf } from '../shared/itemError';
import { settled } from '../shared/promises';
import type { RunContext } from './runContext';

/** Ends an entry if its trigger has started for the task, as the trigger's ledger says without a read. */
export async function endIfStarted(
	{ context, connection }: RunContext,
	{ triggerId }: Recipient,
	entry: TaskEntry,
): Promise<boolean> {
	const { taskId = '', deliveries } = entry;
	const { baseUrl } = connection;
	if (triggerId === undefined) return false;
	const asked = await settled(hasStarted(context, triggerId, { baseUrl, taskId }));
	// What the ledger does not tell, the trigger's answer tells.
	if (!('value' in asked && asked.value)) return false;
	entry.fields = { delivered: true, delivery: deliveries?.answer ? 'accepted' : 'callback' };
	entry.end = 'result';
	return true;
}

/**
 * Hands the result of a finished task to its trigger. The entry has ended when the trigger has the task; until then each
 * turn delivers again.
 *
 * @throws ItemError with the trigger's answer if the trigger refuses the task for good
 * @throws Stopped if the execution was stopped
 */
export async function deliver(
	run: RunContext,
	recipient: Recipient,
	entry: TaskEntry,
	task: FinishedTask,
): Promise<void> {
	entry.task = task;
	const answer = await askTrigger(run, recipient, task);
	if (answer === undefined) {
		run.isSoon = true;
		return;
	}
	const now = Date.now();
	const { until = now } = entry;
	const before = entry.deliveries ?? {};
	const after = afterAnswer(before, answer, now);
	entry.deliveries = after;
	// What was delivered starts within a minute.
	run.isSoon ||= answer.kind === 'taken' && before.answer?.kind !== 'taken';
	const hasLedger = recipient.triggerId !== undefined;
	const end = endOfDeliveries(after, { until, hasLedger }, now);
	if (end === 'error') throw new ItemError(answer.words ?? '');
	if (end === undefined) return;
	entry.fields = { delivered: true, delivery: answer.kind === 'taken' ? 'accepted' : answer.kind };
	entry.end = end;
}

/** @returns undefined if this turn has no time for it: a delivery makes the trigger read the task */
async function askTrigger(
	run: RunContext,
	recipient: Recipient,
	task: FinishedTask,
): Promise<DeliveryAnswer | undefined> {
	const { context, connection, window, turn } = run;
	const address = signedAddress(context, recipient, connection.apiKey);
	const sent = await settled(
		window.read(async () => ({ told: await redeliver(context, task, address) }), turn.endsAt),
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
export async function lostResults(run: RunContext): Promise<UserError | undefined> {
	const { context, plan, journal } = run;
	const awaited = plan.items
		.filter((item) => item.kind === 'read' && item.wait && item.deliverTo !== undefined)
		.map((item) => ({ item: item as ReadPlan, entry: journal.entryOf(item as ReadPlan) }));
	const failed = awaited.filter(({ entry }) => entry.end === 'error');
	const open = awaited.filter(({ entry }) => entry.end === undefined);
	const isRefused = ({ entry }: { entry: TaskEntry }) => entry.deliveries?.answer?.kind === 'refused';
	if (failed.length === 0 || (open.length > 0 && !failed.some(isRefused))) return undefined;
	const left = open.filter((each) => !isRefused(each));
	if (left.length > 0 && !(await handOver(context, left))) return undefined;
	const lost = awaited.filter((each) => each.entry.end !== 'result');
	const lists = lost.map(
		({ entry: { taskId, error, deliveries } }) =>
			`${taskId}: ${error?.message ?? deliveries?.answer?.words}`,
	);
	return new UserError(
		`${count(lost.length, 'task')} of '${creatorOf(context)}' did not reach the trigger`,
		{
			description: `Deliver them with the operation Task → Send Result Again, or retry this execution. ${lists.join('; ')}`,
		},
	);
}

/** @returns whether another execution goes on with these tasks */
async function handOver(
	context: IExecuteFunctions,
	left: ReadonlyArray<{ item: ReadPlan; entry: TaskEntry }>,
): Promise<boolean> {
	const callbacks = left.map(({ item: { deliverTo, taskId }, entry: { until = Date.now() } }) => ({
		...(deliverTo as Recipient),
		taskId,
		until,
	}));
	const started = await settled(startCallbackWait(context, creatorOf(context), callbacks));
	if ('error' in started) return false;
	for (const { entry } of left) {
		Object.assign(entry, { end: 'result', fields: { delivered: false, delivery: 'handedOver' } });
	}
	return true;
}

/** The name of the node that has created the tasks. */
const creatorOf = (context: IExecuteFunctions): string =>
	String(context.getInputData()[0]?.json.createdBy ?? context.getNode().name);

/** How far the deliveries of a run are, for a person; undefined if the results do not go to a trigger. */
export function describeDeliveries(entries: readonly TaskEntry[]): string | undefined {
	if (!entries.some(({ deliveries }) => deliveries)) return undefined;
	const by = (way: string) =>
		entries.filter(({ fields }) => fields?.delivery === way).length;
	const arrived = entries.filter(({ fields }) => fields?.delivered === true).length;
	const answers = entries.flatMap(({ end, deliveries }) =>
		end === undefined && deliveries?.answer ? deliveries.answer : [],
	);
	const trouble = answers.find(({ words }) => words !== undefined);
	const taken = answers.filter(({ kind }) => kind === 'taken').length;
	return [
		`${arrived} of ${count(entries.length, 'result')} have reached the trigger, ${by('callback')} of them by callback.`,
		...(taken > 0 ? [`The trigger has taken ${taken} more, and has not started the workflow yet.`] : []),
		...(trouble ? [`The trigger's last answer: ${trouble.words}.`] : []),
	].join(' ');
}
