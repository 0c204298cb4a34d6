import { type IExecuteFunctions, type INodeExecutionData, NodeOperationError } from 'n8n-workflow';

import { callbackAddress } from '../callback/address';
import { redeliver } from '../callback/redeliver';
import { storeInput } from '../callback/suspension';
import { type Connection, connect } from '../service/connect';
import type { TaskRecord } from '../service/taskRecord';
import { attempt } from '../shared/attempt';
import { type Clock, sleepUntil, systemClock } from '../shared/clock';
import { guard } from '../wait/guard';
import { isComplete, lookForDeliveries, lookForResults } from '../wait/look';
import { ReadPace } from '../wait/readPace';
import { noteResumeUrl, parentState, watcherState } from '../wait/subExecution';
import { nextLookAt } from '../wait/watchSchedule';
import {
	type DeliveryWatch,
	type GuardWatch,
	readWatch,
	type ResultsWatch,
	watchItem,
	type WatchState,
} from '../wait/watchState';
import { watchedResults } from './watchedResults';

/**
 * One turn of the node in a sub-execution, which waits for tasks: it looks for what is finished, and suspends itself
 * until the next look. Its items lead to the node itself again.
 *
 * @param now the time of day, milliseconds since 1970: what is stored is read by other processes
 * @returns the results, with which the sub-execution ends; nothing where they are already out
 * @see specification, sections 4.2 and 6: keep polling as a fallback
 */
export async function watchTasks(
	context: IExecuteFunctions,
	clock: Clock = systemClock,
	now: () => number = Date.now,
): Promise<INodeExecutionData[][] | null> {
	const input = context.getInputData();
	const state = readWatch(input);
	// The turn before put out the results: this branch ends here, and they are what the sub-execution came to.
	if (state === undefined) return null;
	if (!state.begun) {
		noteResumeUrl(context);
		return await suspendUntilNextLook(context, { ...state, begun: true }, now());
	}
	if (state.purpose === 'results') return await watchResults(context, state, clock, now);
	if (state.purpose === 'delivery') return await watchDeliveries(context, state, clock, now);
	return await keepGuard(context, state, clock, now);
}

async function keepGuard(
	context: IExecuteFunctions,
	state: GuardWatch,
	clock: Clock,
	now: () => number,
): Promise<INodeExecutionData[][] | null> {
	const { watched, watcherId, suspect } = state;
	const isAwaited = watched.purpose === 'results';
	if (isAwaited && (await parentState(context, watched.parentExecutionId)) !== 'waiting') {
		return [[{ json: {} }]];
	}
	const { watcher, last } = await watcherState(context, watcherId);
	const found = JSON.stringify(watcher);
	const decision = guard(watcher, isAwaited, suspect === found, now());
	if (decision === 'end') return [[{ json: {} }]];
	if (decision === 'takeOver') {
		context.logger.warn(
			`${watched.nodeName}: the sub-execution ${watcherId} that waited for its tasks has died; this one goes on`,
		);
		const begun = { ...(last?.purpose === watched.purpose ? last : watched), begun: true };
		return begun.purpose === 'results'
			? await watchResults(context, begun, clock, now)
			: await watchDeliveries(context, begun as DeliveryWatch, clock, now);
	}
	// Soon again: whether it is dead shows by what it does next.
	const next = decision === 'suspect' ? { ...state, suspect: found, woken: true } : state;
	return await suspendUntilNextLook(context, next, now());
}

async function watchResults(
	context: IExecuteFunctions,
	state: ResultsWatch,
	clock: Clock,
	now: () => number,
): Promise<INodeExecutionData[][] | null> {
	const parent = await parentState(context, state.parentExecutionId);
	if (parent !== 'waiting') return [[abandoned(state, parent)]];
	const looked = await look(context, clock, async (_, read) => {
		return await lookForResults(state, read, now());
	});
	// Whatever kept it from looking, a time that is up is up.
	const after = looked ?? (await lookForResults(state, unreadable, now()));
	if (!isComplete(after)) return await suspendUntilNextLook(context, after, now());
	const results = await watchedResults(context, after);
	// It took its time. n8n would hand the results to whatever node the execution waits at now.
	const isAwaited = (await parentState(context, state.parentExecutionId)) === 'waiting';
	return isAwaited ? [results] : [[abandoned(after, 'ended')]];
}

async function watchDeliveries(
	context: IExecuteFunctions,
	state: DeliveryWatch,
	clock: Clock,
	now: () => number,
): Promise<INodeExecutionData[][]> {
	const looked = await look(context, clock, async ({ apiKey }, read) => {
		return await lookForDeliveries(state.deliveries, read, async (delivery, task) => {
			const answer = await redeliver(context, task, callbackAddress(delivery.address, apiKey));
			return 'delivery' in answer ? undefined : answer.refusal.message;
		});
	});
	const left = looked ?? state.deliveries;
	const lost = left.filter(({ until }) => until <= now());
	if (left.length === 0) return [[{ json: { delivered: true } }]];
	if (lost.length < left.length) {
		const waiting = left.filter(({ until }) => until > now());
		for (const { taskId, last } of lost) {
			context.logger.warn(`${state.nodeName}: task ${taskId} did not reach its trigger: ${last}`);
		}
		return await suspendUntilNextLook(context, { ...state, deliveries: waiting }, now());
	}
	const lists = lost.map(({ taskId, last }) => `${taskId}: ${last ?? 'not read'}`);
	throw new NodeOperationError(
		context.getNode(),
		`${lost.length} of the tasks of '${state.nodeName}' did not reach their trigger in time`,
		{
			description: `Deliver them with the operation Task → Redeliver. ${lists.join('; ')}`,
		},
	);
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
		const pace = new ReadPace(clock, 0, 1);
		return await work(connection, async (taskId) => {
			await sleepUntil(pace.requestSlot(), clock, context.getExecutionCancelSignal());
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
	const { woken: _, ...next } = state;
	storeInput(context, [watchItem(next as WatchState)]);
	await context.putExecutionToWait(nextLook);
	return [
		[{ json: { nextLook: nextLook.toISOString(), tasks: waiting.map(({ taskId }) => taskId) } }],
	];
}

function waitingTasks(state: WatchState): Array<{ taskId: string; until: number }> {
	if (state.purpose === 'guard') return [];
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
