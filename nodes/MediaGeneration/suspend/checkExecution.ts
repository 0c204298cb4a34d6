import { type IExecuteFunctions, type INodeExecutionData, NodeOperationError } from 'n8n-workflow';

import { connect } from '../service/connect';
import { RequestGap } from '../service/requestGap';
import { settled } from '../shared/promises';
import { type Clock, sleepUntil, systemClock } from '../shared/clock';
import { ItemError, messageOf } from '../shared/itemError';
import { digest, without } from '../shared/json';
import { checkDeliveries, deliverTask, NOT_FINISHED, type Reached } from './missingCallbacks';
import { type CheckTurn, type Kept, supervise } from './checkSupervisor';
import { nextCheckAt } from './checkSchedule';
import {
	type AwaitedDelivery,
	type CheckState,
	type DeliveryCheck,
	doneItems,
	parseCheck,
	readCheck,
	readDone,
	type ResultsCheck,
} from './checkState';
import { checkResults, giveUp, isComplete } from './checkForResults';
import { REPORT, START, SUPERVISE } from './checkWorkflow';
import { finalResults } from './resumedOutput';
import { resumeUrl } from './resumeUrl';

/** For so long after its time was up a task is tried again that could not be read or delivered: that may pass. */
const LAST_CHECKS_MS = 10 * 60_000;

/** One turn of the node in a sub-execution. */
interface Turn {
	context: IExecuteFunctions;
	clock: Clock;
	/** The time of day, milliseconds since 1970: other processes read what is stored. */
	now: () => number;
}

/**
 * One turn of the node in a sub-execution.
 *
 * @param now the time of day, milliseconds since 1970
 * @see specification, sections 4.2 and 6: keep polling as a fallback
 */
export async function runCheckExecution(
	context: IExecuteFunctions,
	operation: unknown,
	clock: Clock = systemClock,
	now: () => number = Date.now,
): Promise<CheckTurn> {
	if (operation === REPORT) return report(context);
	if (operation !== SUPERVISE) return await check({ context, clock, now });
	const supervised = await settled(supervise(context, now()));
	if ('value' in supervised) return supervised.value;
	// An error of this node's own is an end: as an item it would lead straight back to this node, for ever.
	const { message, description } = ItemError.from(supervised.error);
	return [doneItems([], { message, description })];
}

/**
 * Judges what the checker came to. Where it died, what the wait began with leads back to the supervisor.
 *
 * @throws NodeOperationError where the node that waits is to fail
 */
function report(context: IExecuteFunctions): INodeExecutionData[][] {
	const done = readDone(context.getInputData());
	if (done === undefined) {
		const nodes: { $: (name: string) => { all: () => INodeExecutionData[] } } =
			context.getWorkflowDataProxy(0);
		return [nodes.$(START).all()];
	}
	const { results, failure } = done;
	if (failure === undefined) return [results];
	throw new NodeOperationError(context.getNode(), failure.message, { ...failure });
}

/** Checks what is finished, and sleeps until the next check. */
async function check(turn: Turn): Promise<CheckTurn> {
	const { context } = turn;
	const input = context.getInputData();
	// The turn before put out the results.
	if (readDone(input) !== undefined) return null;
	const kept: Kept = context.getContext('node');
	kept.state ??= readCheck(input);
	kept.resumeUrl ??= resumeUrl(context);
	kept.turns = (kept.turns ?? 0) + 1;
	// A callback discards the output of the turn that sleeps. If n8n dies then, and there is no other turn, the parent
	// waits for ever. So a turn of its own goes to sleep.
	if (kept.turns === 1) return [input];
	const stored = parseCheck(kept.state);
	if (kept.turns === 2) return await sleepUntilNextCheck(turn, stored);
	const state = { ...stored, woken: input[0]?.json.woken === true };
	return state.purpose === 'results'
		? await checkForResults(turn, state)
		: await checkForDeliveries(turn, state);
}

async function checkForResults(turn: Turn, state: ResultsCheck): Promise<INodeExecutionData[][]> {
	const { context, now } = turn;
	if (!(await isAwaited(context, state))) return [abandoned(state)];
	const service = await reach(turn, state);
	const checked = service ? await checkResults(state, service.read, now()) : state;
	// Whatever kept the node from checking, a time that is up is up.
	const after = giveUp(checked, now());
	if (!isComplete(after)) return await sleepUntilNextCheck(turn, after);
	const ended = await finalResults(context, after);
	// Downloads take their time. n8n would hand the results to whatever node the execution waits at now.
	return [(await isAwaited(context, state)) ? ended : abandoned(after)];
}

/**
 * Whether an execution still waits for its supervisor. It may have been stopped, deleted, or killed before it was
 * suspended.
 *
 * @param check.earlierError of an error that it had before it was suspended
 */
async function isAwaited(
	context: IExecuteFunctions,
	{ parentExecutionId, supervisorId = '', earlierError }: ResultsCheck,
): Promise<boolean> {
	const data = await context.getExecutionDataById(parentExecutionId);
	const error = data?.resultData.error;
	if (error !== undefined && digest(error) !== earlierError) return false;
	const [waiting] = data?.executionData?.nodeExecutionStack ?? [];
	const children = waiting?.metadata?.waitingChildExecutionIds;
	// Older n8n does not name them.
	return Array.isArray(children) ? children.includes(supervisorId) : data?.waitTill !== undefined;
}

async function checkForDeliveries(
	turn: Turn,
	state: DeliveryCheck,
): Promise<INodeExecutionData[][]> {
	const { context, now } = turn;
	const service = await reach(turn, state);
	const attempt = async (delivery: AwaitedDelivery) =>
		service && (await deliverTask(context, delivery, service));
	const after = service ? await checkDeliveries(state, attempt, now()) : state;
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

/** @returns undefined where the service asked to wait, or the credential cannot be used at present */
async function reach(
	{ context, clock, now }: Turn,
	{ notBefore = 0 }: CheckState,
): Promise<Reached | undefined> {
	if (now() < notBefore) return undefined;
	const connected = await settled(connect(context));
	if ('error' in connected) {
		const why = messageOf(connected.error);
		context.logger.warn(`${context.getNode().name}: this check could not be made. ${why}`);
		return undefined;
	}
	const { client, ...account } = connected.value;
	const gap = new RequestGap(clock);
	const read = async (taskId: string) => {
		await sleepUntil(gap.take(), clock, context.getExecutionCancelSignal());
		return await client.readTask(taskId);
	};
	return { ...account, read };
}

async function sleepUntilNextCheck(
	{ context, now }: Turn,
	state: CheckState,
): Promise<INodeExecutionData[][]> {
	const waiting = waitingTasks(state);
	const deadlines = waiting.map(({ until }) => until);
	const nextCheck = new Date(nextCheckAt(state, now(), deadlines));
	const kept: Kept = context.getContext('node');
	kept.state = without(state, 'woken');
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
function abandoned({ items, nodeName }: ResultsCheck): INodeExecutionData[] {
	const taskIds = items.flatMap(({ json }) => json.taskId ?? []);
	const message = `The execution that waited for these tasks of '${nodeName}' has ended, or was deleted. Fetch them with the operation Task → Wait.`;
	return doneItems([{ json: { message, taskIds } }]);
}
