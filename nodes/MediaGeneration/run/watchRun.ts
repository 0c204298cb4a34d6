import { type IExecuteFunctions, type INodeExecutionData, NodeOperationError } from 'n8n-workflow';

import { storeInput } from '../callback/suspension';
import { type Connection, connect } from '../service/connect';
import type { TaskRecord } from '../service/taskRecord';
import { RequestGap } from '../service/requestGap';
import { attempt } from '../shared/attempt';
import { type Clock, sleepUntil, systemClock } from '../shared/clock';
import { isComplete, isUnfinished, lookForDeliveries, lookForResults } from '../wait/look';
import { RequestSlots } from '../wait/requestSlots';
import { parentState } from '../wait/parentState';
import {
	keepState,
	keptState,
	noteResumeUrl,
	REPORT,
	supervise,
	SUPERVISE,
} from '../wait/subExecution';
import { MIN_WATCH_INTERVAL_MS, nextLookAt } from '../wait/watchSchedule';
import {
	deadItems,
	type DeliveryWatch,
	doneItems,
	isDead,
	readDone,
	readWatch,
	type ResultsWatch,
	watchItem,
	type WatchedDelivery,
	type WatchState,
} from '../wait/watchState';
import { without } from '../shared/json';
import { deliverTask, hasArrived } from './deliverTask';
import { pendingResults, watchedResults } from './watchedResults';

/** For so long after its time was up a task is looked for that could not be read or delivered: that may pass. */
const LAST_LOOKS_MS = 10 * 60_000;

/**
 * One turn of the node in a sub-execution.
 *
 * @param now the time of day, milliseconds since 1970: what is stored is read by other processes
 * @returns the items that lead to the next turn; null where the branch ends, and the items before are the output
 * @see specification, sections 4.2 and 6: keep polling as a fallback
 */
export async function runWatchOperation(
	context: IExecuteFunctions,
	operation: unknown,
	clock: Clock = systemClock,
	now: () => number = Date.now,
): Promise<INodeExecutionData[][] | null> {
	switch (operation) {
		case SUPERVISE:
			return await superviseWatch(context, now);
		case REPORT:
			return reportWatch(context);
		default:
			return await watchTasks(context, clock, now);
	}
}

/** Has a sub-execution look for the tasks, and another one where that died. */
async function superviseWatch(
	context: IExecuteFunctions,
	now: () => number,
): Promise<INodeExecutionData[][] | null> {
	const input = context.getInputData();
	const kept = keptState(context);
	// The turn before reported the results: this branch ends here, and they are what this execution came to.
	if (kept !== undefined && !isDead(input)) return null;
	const state = kept ?? readWatch(input);
	if (state === undefined) return null;
	if (kept === undefined) keepState(context, state);
	else {
		context.logger.warn(
			`${state.nodeName}: the sub-execution that waited for its tasks has died; another goes on`,
		);
	}
	const started = await attempt(async () => await supervise(context, state));
	if ('error' in started) {
		context.logger.warn(
			`${state.nodeName}: n8n did not start the sub-execution that waits for its tasks; it is tried again in a minute. ${started.error instanceof Error ? started.error.message : ''}`,
		);
		await context.putExecutionToWait(new Date(now() + MIN_WATCH_INTERVAL_MS));
	}
	// What n8n takes for the output where this execution dies: the results are not known, and the tasks are named.
	return [state.purpose === 'results' ? await pendingResults(context, state) : [{ json: {} }]];
}

/**
 * Judges what the sub-execution that looks came to.
 *
 * @throws NodeOperationError where the node that waits is to fail
 */
function reportWatch(context: IExecuteFunctions): INodeExecutionData[][] {
	const done = readDone(context.getInputData());
	if (done === undefined) return [deadItems()];
	const { results, failure } = done;
	if (failure === undefined) return [results];
	const { message, description, itemIndex } = failure;
	throw new NodeOperationError(context.getNode(), message, { message, description, itemIndex });
}

/** Looks for what is finished, and sleeps until the next look. */
async function watchTasks(
	context: IExecuteFunctions,
	clock: Clock,
	now: () => number,
): Promise<INodeExecutionData[][] | null> {
	const input = context.getInputData();
	// The turn before put out the results.
	if (readDone(input) !== undefined) return null;
	const state = readWatch(input);
	if (state === undefined) {
		throw new NodeOperationError(
			context.getNode(),
			"The operation 'watch' is not meant to be chosen",
		);
	}
	if (!state.begun) {
		noteResumeUrl(context);
		// A callback takes the output of the turn that sleeps away. Where this one died then and had no other, n8n would
		// have nothing to tell the one that waits for it, and never tell it.
		return [[watchItem({ ...state, begun: true, rests: true })]];
	}
	if (state.rests) return await suspendUntilNextLook(context, without(state, 'rests'), now());
	return state.purpose === 'results'
		? await watchResults(context, state, clock, now)
		: await watchDeliveries(context, state, clock, now);
}

async function watchResults(
	context: IExecuteFunctions,
	state: ResultsWatch,
	clock: Clock,
	now: () => number,
): Promise<INodeExecutionData[][] | null> {
	const parent = await parentState(context, state);
	if (parent !== 'waiting') return [doneItems([abandoned(state, parent)])];
	const looked = await look(context, clock, async (_, read) => {
		return await lookForResults(state, read, now());
	});
	// Whatever kept it from looking, a time that is up is up.
	const after = looked ?? (await lookForResults(state, unreadable, now()));
	if (!isComplete(after)) return await suspendUntilNextLook(context, after, now());
	const ended = await watchedResults(context, after);
	// It took its time. n8n would hand the results to whatever node the execution waits at now.
	const isAwaited = (await parentState(context, state)) === 'waiting';
	return [isAwaited ? ended : doneItems([abandoned(after, 'ended')])];
}

async function watchDeliveries(
	context: IExecuteFunctions,
	state: DeliveryWatch,
	clock: Clock,
	now: () => number,
): Promise<INodeExecutionData[][]> {
	const looked = await look(context, clock, async ({ apiKey }, read) => {
		return await lookForDeliveries(
			state.deliveries,
			read,
			async (delivery, task) => await deliverTask(context, delivery, task, apiKey),
			async (delivery) => await hasArrived(context, delivery),
		);
	});
	const left = looked ?? state.deliveries;
	const isLost = (delivery: WatchedDelivery) =>
		delivery.until + (isUnfinished(delivery) ? 0 : LAST_LOOKS_MS) <= now();
	if (left.length === 0) return [doneItems([{ json: { delivered: true } }])];
	// While one is waited for, those whose time is up are looked for as well, and none is forgotten before the message.
	if (!left.every(isLost)) {
		return await suspendUntilNextLook(context, { ...state, deliveries: left }, now());
	}
	const lists = left.map(({ taskId, last }) => `${taskId}: ${last ?? 'not read'}`);
	return [
		doneItems([], {
			message: `${left.length} of the tasks of '${state.nodeName}' did not reach their trigger in time`,
			description: `Deliver them with the operation Task → Redeliver. ${lists.join('; ')}`,
		}),
	];
}

type Read = (taskId: string) => Promise<TaskRecord>;

/** Connects and looks. @returns undefined where the service or the credential cannot be used at present */
async function look<T>(
	context: IExecuteFunctions,
	clock: Clock,
	work: (connection: Connection, read: Read) => Promise<T>,
): Promise<T | undefined> {
	const looked = await attempt(async () => {
		const connection = await connect(context);
		const slots = new RequestSlots(new RequestGap(clock), 0, 1);
		return await work(connection, async (taskId) => {
			await sleepUntil(slots.requestSlot(), clock, context.getExecutionCancelSignal());
			return await connection.client.readTask(taskId);
		});
	});
	if ('value' in looked) return looked.value;
	const { error } = looked;
	context.logger.warn(
		`${context.getNode().name}: this look found nothing. ${error instanceof Error ? error.message : ''}`,
	);
	return undefined;
}

const unreadable: Read = async () => await Promise.reject(new Error('Not read'));

async function suspendUntilNextLook(
	context: IExecuteFunctions,
	state: WatchState,
	now: number,
): Promise<INodeExecutionData[][]> {
	const waiting = waitingTasks(state);
	const deadlines = waiting.map(({ until }) => until);
	const nextLook = new Date(nextLookAt(state, now, deadlines));
	storeInput(context, [watchItem(without(state, 'woken'))]);
	await context.putExecutionToWait(nextLook);
	return [
		[{ json: { nextLook: nextLook.toISOString(), tasks: waiting.map(({ taskId }) => taskId) } }],
	];
}

function waitingTasks(state: WatchState): Array<{ taskId: string; until: number }> {
	if (state.purpose === 'delivery') return state.deliveries;
	return state.items.flatMap(({ waitsFor }) => waitsFor ?? []);
}

/** What is left to say where nobody waits for the results any more. */
function abandoned({ items, nodeName }: ResultsWatch, parent: string): INodeExecutionData {
	const taskIds = items.flatMap(({ taskId }) => taskId ?? []);
	return {
		json: {
			message: `The execution that waited for these tasks of '${nodeName}' ${parent === 'gone' ? 'was deleted' : 'has ended'}. Fetch them with the operation Task → Wait.`,
			taskIds,
		},
	};
}
