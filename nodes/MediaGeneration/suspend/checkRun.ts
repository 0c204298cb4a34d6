import { type IExecuteFunctions, type INodeExecutionData, NodeOperationError } from 'n8n-workflow';

import { type Connection, connect } from '../service/connect';
import { RequestGap } from '../service/requestPace';
import type { TaskRecord } from '../service/taskRecord';
import { settled } from '../shared/concurrency';
import { type Clock, sleepUntil, systemClock } from '../shared/clock';
import { ItemError, messageOf } from '../shared/itemError';
import { without } from '../shared/json';
import { checkDeliveries, deliverTask, NOT_FINISHED } from './checkDeliveries';
import {
	keepState,
	keptState,
	noteResumeUrl,
	parentState,
	superviseCheck,
} from './checkExecutions';
import {
	type AwaitedDelivery,
	type CheckState,
	checkItem,
	type DeliveryCheck,
	diedItems,
	doneItems,
	hasDied,
	readCheck,
	readDone,
	type ResultsCheck,
} from './checkState';
import { MIN_CHECK_INTERVAL_MS, nextCheckAt } from './checkSchedule';
import { checkTasks, giveUp, isComplete } from './checkTasks';
import { REPORT, SUPERVISE } from './checkWorkflow';
import { finalResults, presentResults } from './suspendedResults';
import { storeInput } from './suspension';

/** For so long after its time was up a task is tried again that could not be read or delivered: that may pass. */
const LAST_CHECKS_MS = 10 * 60_000;

/**
 * One turn of the node in a sub-execution.
 *
 * @param now the time of day, milliseconds since 1970: other processes read what is stored
 * @returns the items that lead to the next turn; null where the branch ends, and the items before are the output
 * @see specification, sections 4.2 and 6: keep polling as a fallback
 */
export async function runCheckOperation(
	context: IExecuteFunctions,
	operation: unknown,
	clock: Clock = systemClock,
	now: () => number = Date.now,
): Promise<INodeExecutionData[][] | null> {
	if (operation === REPORT) return report(context);
	if (operation !== SUPERVISE) return await check({ context, clock, now });
	const supervised = await settled(supervise(context, now));
	if ('value' in supervised) return supervised.value;
	// An error of this node's own is an end: as an item it would lead straight back to this node, for ever.
	const { message, description } = ItemError.from(supervised.error);
	return [doneItems([], { message, ...(description !== undefined && { description }) })];
}

/** Has a sub-execution check the tasks, and another sub-execution where that one died. */
async function supervise(
	context: IExecuteFunctions,
	now: () => number,
): Promise<INodeExecutionData[][] | null> {
	const input = context.getInputData();
	const kept = keptState(context);
	// The turn before reported the results: this branch ends here, and they are what this execution came to.
	if (kept !== undefined && !hasDied(input)) return null;
	const state = kept ?? readCheck(input);
	if (state === undefined) return null;
	if (kept === undefined) keepState(context, state);
	else warn(context, state, 'the execution that checked its tasks has died; another goes on');
	const started = await settled(superviseCheck(context, state));
	if ('error' in started) {
		const why = messageOf(started.error);
		warn(context, state, `n8n did not start the check of its tasks; again in a minute. ${why}`);
		await context.putExecutionToWait(new Date(now() + MIN_CHECK_INTERVAL_MS));
	}
	// What n8n takes for the output where this execution dies: the results are not known, and the tasks are named.
	if (state.purpose === 'delivery') return [[{ json: {} }]];
	const present = await settled(presentResults(context, state));
	return ['value' in present ? present.value : [{ json: {} }]];
}

/**
 * Judges what the checker came to.
 *
 * @throws NodeOperationError where the node that waits is to fail
 */
function report(context: IExecuteFunctions): INodeExecutionData[][] {
	const done = readDone(context.getInputData());
	if (done === undefined) return [diedItems()];
	const { results, failure } = done;
	if (failure === undefined) return [results];
	const { message, description, itemIndex } = failure;
	throw new NodeOperationError(context.getNode(), message, { message, description, itemIndex });
}

/** One turn of the node that checks. */
interface Turn {
	context: IExecuteFunctions;
	clock: Clock;
	/** The time of day, milliseconds since 1970. */
	now: () => number;
}

/** Checks what is finished, and sleeps until the next check. */
async function check(turn: Turn): Promise<INodeExecutionData[][] | null> {
	const { context } = turn;
	const input = context.getInputData();
	// The turn before put out the results.
	if (readDone(input) !== undefined) return null;
	const state = readCheck(input);
	if (state === undefined) {
		throw new NodeOperationError(context.getNode(), "The operation 'check' cannot be chosen");
	}
	if (state.turn === undefined) {
		noteResumeUrl(context);
		// A callback discards the output of the turn that sleeps. If n8n dies then, and there is no other turn, the parent
		// waits for ever. So a turn of its own goes to sleep.
		return [[checkItem({ ...state, turn: 'rests' })]];
	}
	if (state.turn === 'rests') {
		return await sleepUntilNextCheck(turn, { ...state, turn: 'checks' });
	}
	return state.purpose === 'results'
		? await checkForResults(turn, state)
		: await checkForDeliveries(turn, state);
}

async function checkForResults(
	turn: Turn,
	state: ResultsCheck,
): Promise<INodeExecutionData[][] | null> {
	const { context, now } = turn;
	const parent = await parentState(context, state);
	if (parent !== 'waiting') return [doneItems([abandoned(state, parent)])];
	const checked = await withService(
		turn,
		state,
		async (_, read) => await checkTasks(state, read, now()),
	);
	// Whatever kept the node from checking, a time that is up is up.
	const after = giveUp(checked, now());
	if (!isComplete(after)) return await sleepUntilNextCheck(turn, after);
	const ended = await finalResults(context, after);
	// It took its time. n8n would hand the results to whatever node the execution waits at now.
	const isAwaited = (await parentState(context, state)) === 'waiting';
	return [isAwaited ? ended : doneItems([abandoned(after, 'ended')])];
}

async function checkForDeliveries(
	turn: Turn,
	state: DeliveryCheck,
): Promise<INodeExecutionData[][]> {
	const { context, now } = turn;
	const after = await withService(turn, state, async (connection, read) => {
		const attempt = async (delivery: AwaitedDelivery) =>
			await deliverTask(context, delivery, connection, read);
		return await checkDeliveries(state, attempt, now());
	});
	const { deliveries } = after;
	if (deliveries.length === 0) return [doneItems([{ json: { delivered: true } }])];
	const isLost = ({ until, last }: AwaitedDelivery) =>
		until + (last === NOT_FINISHED ? 0 : LAST_CHECKS_MS) <= now();
	// While one task is waited for, the others are tried as well, and none is forgotten before the message.
	if (!deliveries.every(isLost)) return await sleepUntilNextCheck(turn, after);
	const lists = deliveries.map(({ taskId, last }) => `${taskId}: ${last ?? 'not read'}`);
	return [
		doneItems([], {
			message: `${deliveries.length} of the tasks of '${state.nodeName}' did not reach their trigger in time`,
			description: `Deliver them with the operation Task → Send Result Again. ${lists.join('; ')}`,
		}),
	];
}

type Read = (taskId: string) => Promise<TaskRecord>;

/** @returns the state as it was where the service or the credential cannot be used at present, or the service asked to wait */
async function withService<T extends CheckState>(
	{ context, clock, now }: Turn,
	state: T,
	work: (connection: Connection, read: Read) => Promise<T>,
): Promise<T> {
	if (now() < (state.notBefore ?? 0)) return state;
	const done = await settled(async () => {
		const connection = await connect(context);
		const gap = new RequestGap(clock);
		return await work(connection, async (taskId) => {
			await sleepUntil(gap.take(), clock, context.getExecutionCancelSignal());
			return await connection.client.readTask(taskId);
		});
	});
	if ('value' in done) return done.value;
	context.logger.warn(
		`${context.getNode().name}: this check could not be made. ${messageOf(done.error)}`,
	);
	return state;
}

async function sleepUntilNextCheck(
	{ context, now }: Turn,
	state: CheckState,
): Promise<INodeExecutionData[][]> {
	const waiting = waitingTasks(state);
	const deadlines = waiting.map(({ until }) => until);
	const nextCheck = new Date(nextCheckAt(state, now(), deadlines));
	storeInput(context, [checkItem(without(state, 'woken'))]);
	await context.putExecutionToWait(nextCheck);
	const tasks = waiting.map(({ taskId }) => taskId);
	return [[{ json: { nextCheck: nextCheck.toISOString(), tasks } }]];
}

function waitingTasks(state: CheckState): Array<{ taskId: string; until: number }> {
	if (state.purpose === 'delivery') return state.deliveries;
	return state.items.flatMap(({ json, waits }) =>
		waits ? [{ taskId: String(json.taskId), until: waits.until }] : [],
	);
}

/** What is left to say where nobody waits for the results any more. */
function abandoned({ items, nodeName }: ResultsCheck, parent: string): INodeExecutionData {
	const taskIds = items.flatMap(({ json }) => json.taskId ?? []);
	return {
		json: {
			message: `The execution that waited for these tasks of '${nodeName}' ${parent === 'gone' ? 'was deleted' : 'has ended'}. Fetch them with the operation Task → Wait.`,
			taskIds,
		},
	};
}

function warn(context: IExecuteFunctions, { nodeName }: CheckState, text: string): void {
	context.logger.warn(`${nodeName}: ${text}`);
}
