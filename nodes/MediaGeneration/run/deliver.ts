import type { IExecuteFunctions } from 'n8n-workflow';

import { type Recipient, signedAddress } from '../callback/callbackAddress';
import {
	type Delivery,
	noteAnswer,
	redeliver,
	startCallbackWait,
	TriggerBusy,
} from '../callback/delivery';
import { hasStarted } from '../callback/ledger';
import type { TaskEntry } from '../create/taskEntry';
import { type DeliveredPlan, isDelivered } from '../plan/planTypes';
import type { FinishedTask, TaskRecord } from '../service/taskRecord';
import { clock, settled, sleepUntil, Stopped } from '../shared/clock';
import { count, ItemError, messageOf, writeLog } from '../shared/itemError';
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
	const { plan, taskId = '', deliveries = {} } = entry;
	if (!isDelivered(plan)) return true;
	deliveries.askedAt = clock.now();
	// What the ledger does not tell, the trigger tells.
	if ((await startOf(run, plan.deliverTo, taskId)) !== true) return true;
	return end(run, entry, deliveries.answer ? 'accepted' : 'callback');
}

/**
 * Hands the result of a finished task to its trigger. Whether the trigger has started, its ledger tells in the next turn.
 *
 * @returns whether the task goes on in this turn; a delivery makes the trigger read the task, so this turn may have no time
 */
export async function deliver(run: RunContext, entry: TaskEntry): Promise<boolean> {
	const { plan, task, deliveries = {} } = entry;
	if (!isDelivered(plan) || task === undefined) return false;
	const { context, connection, window, turn } = run;
	const note = (words: string, isRefused: boolean) => {
		noteAnswer(deliveries, words, isRefused, clock.now());
		return true;
	};
	if (connection.isBroken) return note(NO_CREDENTIAL, false);
	const address = signedAddress(context, plan.deliverTo, connection.apiKey);
	const send = async () => ({ told: await redeliver(context, task as FinishedTask, address) });
	const sent = await settled(window.read(send, turn.readsUntil));
	if ('error' in sent) {
		const { error } = sent;
		if (error instanceof Stopped) throw error;
		return note(messageOf(error), !(error instanceof TriggerBusy));
	}
	if (sent.value === undefined) return false;
	const { told } = sent.value;
	if (told === undefined) return note('Something else answers in place of the trigger', true);
	const hasLedger = plan.deliverTo.triggerId !== undefined;
	// What a trigger has let in may have died. The ledger tells, and without it a delivery that comes a minute later.
	const isOpen = hasLedger || (told === 'duplicate' && deliveries.answer === undefined);
	if (told !== 'notSelected' && isOpen) return note(notStarted(task.taskId), false);
	return end(run, entry, told);
}

function end(run: RunContext, entry: TaskEntry, delivery: Delivery | 'callback'): false {
	entry.fields = { ...asDelivered(delivery) };
	entry.end = 'result';
	run.noteEnd(entry);
	return false;
}

/** What leaves with a task that was delivered. `delivered`: the workflow has started for the task, or starts now. */
interface Delivered {
	delivered: boolean;
	delivery?: Delivery | 'callback' | undefined;
}

const asDelivered = (delivery: Delivered['delivery']): Delivered => ({
	delivered: delivery !== 'notSelected',
	delivery,
});

/**
 * Sends the result of a task to its trigger once more (*Repeat Callback*).
 *
 * @throws ItemError if the trigger did not take the callback, or has taken it and has not started its workflow
 */
export async function sendAgain(
	run: RunContext,
	recipient: Recipient,
	task: TaskRecord,
): Promise<Delivered> {
	if (task.state === 'PENDING') return { delivered: false };
	const { taskId } = task;
	if (await startOf(run, recipient, taskId)) return asDelivered('duplicate');
	const delivery = await redeliver(run.context, task, recipient.address);
	const isLetIn = delivery === 'accepted' || delivery === 'duplicate';
	if (!isLetIn || (await startsNow(run, recipient, taskId))) return asDelivered(delivery);
	throw new ItemError(notStarted(taskId), {
		description:
			'Look at the newest execution of that workflow in the list of executions: has it failed, or does it wait for a place? Then send the result again.',
	});
}

const notStarted = (taskId: string): string =>
	`The trigger took the callback of task ${taskId}, and has not started its workflow`;

/** Whether the trigger has started for a task; undefined if nobody can tell: its ledger is in another workflow, or away. */
async function startOf(
	{ context }: RunContext,
	{ triggerId }: Recipient,
	taskId: string,
): Promise<boolean | undefined> {
	if (triggerId === undefined) return undefined;
	const told = await settled(hasStarted(context, triggerId, taskId));
	return 'value' in told ? told.value : undefined;
}

/** n8n begins an execution after its answer. How often and when the ledger is asked for it, milliseconds. */
const MOST_QUESTIONS = 6;
const FIRST_GAP_MS = 250;

/** Whether a trigger that has taken a task starts its workflow now: the execution may die before. */
async function startsNow(run: RunContext, recipient: Recipient, taskId: string): Promise<boolean> {
	for (let asked = 1; ; asked++) {
		// If nobody can tell, the word of the trigger counts.
		if ((await startOf(run, recipient, taskId)) !== false) return true;
		const nextAt = clock.now() + FIRST_GAP_MS * 2 ** (asked - 1);
		if (asked === MOST_QUESTIONS) return false;
		await sleepUntil(nextAt, run.signal);
	}
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
	const isRefused = ({ deliveries }: TaskEntry) => deliveries?.answer?.isRefused === true;
	if (failed.length === 0 || (open.length > 0 && !failed.some(isRefused))) return undefined;
	const left = open.filter((entry) => !isRefused(entry));
	if (left.length > 0 && !(await handOver(context, left))) return undefined;
	const lost = awaited.filter(({ end }) => end !== 'result');
	const lists = lost.map(
		({ taskId, error, deliveries }) => `${taskId}: ${error?.message ?? deliveries?.answer?.words}`,
	);
	const message = `${count(lost.length, 'task')} of '${creatorOf(context)}' did not reach the trigger`;
	const description = `Deliver them with the operation Repeat Callback, or retry this execution. ${lists.join('; ')}`;
	// The settings of the workflow may have n8n store no execution that fails.
	writeLog(context, 'warn', `${message}. ${description}`);
	return new ItemError(message, { description });
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
	const [trouble] = answers;
	return [
		`${ended.length} of ${count(awaited.length, 'result')} have reached the trigger (${byCallback} by callback)`,
		...(trouble ? [`its last answer: ${trouble.words}`] : []),
	].join('; ');
}
