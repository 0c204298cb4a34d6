import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { connect } from '../service/connect';
import { RequestGap } from '../service/client';
import { sleepUntil } from '../shared/clock';
import { ItemError, messageOf } from '../shared/itemError';
import { digest, without } from '../shared/json';
import { settled } from '../shared/promises';
import { checkResults, finalResults, giveUp, isComplete } from './checkForResults';
import { nextCheckAt, noteOverdue, undelivered } from './checkSchedule';
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
import { type CheckTurn, type Kept, supervise } from './checkSupervisor';
import { REPORT, START, SUPERVISE } from './checkWorkflow';
import { checkDeliveries, deliverTask } from './missingCallbacks';
import { resumeUrl } from './resumeWebhook';

/**
 * One turn of the node in a sub-execution.
 *
 * @see specification, sections 4.2 and 6: keep polling as a fallback
 */
export async function runCheckExecution(
	context: IExecuteFunctions,
	operation: unknown,
): Promise<CheckTurn> {
	if (operation === REPORT) return report(context);
	if (operation !== SUPERVISE) return await check(context);
	const supervised = await settled(supervise(context));
	if ('value' in supervised) return supervised.value;
	// An error of this node ends the sub-execution: as an item it would lead back to this node, for ever.
	const { message, description } = ItemError.from(supervised.error);
	return [doneItems([], { message, description })];
}

/**
 * Judges how the checker ended. If the checker died, the item that the wait began with leads back to the supervisor.
 *
 * @throws NodeOperationError if the node that waits is to fail
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
	throw new ItemError(failure.message, failure).toNodeError(context.getNode(), failure.itemIndex);
}

async function check(context: IExecuteFunctions): Promise<CheckTurn> {
	const input = context.getInputData();
	// The turn before put out the results.
	if (readDone(input) !== undefined) return null;
	const kept: Kept = context.getContext('node');
	kept.state ??= readCheck(input);
	kept.resumeUrl ??= resumeUrl(context);
	kept.runs = (kept.runs ?? 0) + 1;
	// n8n tells the supervisor of a death only if there is an output. A callback makes n8n drop the output of the turn that
	// slept: the output of this turn is left.
	if (kept.runs === 1) return [input];
	const stored = parseCheck(kept.state);
	if (kept.runs === 2) return [await sleepUntilNextCheck(context, stored)];
	const state = { ...stored, woken: input[0]?.json.woken === true };
	return state.purpose === 'results'
		? [await checkForResults(context, state)]
		: [await checkForDeliveries(context, state)];
}

async function checkForResults(context: IExecuteFunctions, state: ResultsCheck) {
	const waits = await isAwaited(context, state);
	if (waits === false) return abandoned(state);
	if (waits === undefined) {
		return await sleepUntilNextCheck(context, { ...state, woken: true }, Date.now());
	}
	const service = reach(context, state);
	const read =
		service && (async (taskId: string) => await (await service()).client.readTask(taskId));
	const now = Date.now();
	// The timeout counts even if no task could be read. A task whose time comes during this check is read in the next one.
	const after = giveUp(read ? await checkResults(state, read, now) : state, now);
	if (!isComplete(after)) return await sleepUntilNextCheck(context, after, now);
	const ended = await finalResults(context, after);
	// The parent may have gone on during the downloads: n8n would hand the results to the node at which it waits now.
	return (await isAwaited(context, state)) ? ended : abandoned(after);
}

/** In so many runs of the checker nobody may seem to wait: n8n may take minutes to store an execution that it suspends. */
const RUNS_IN_DOUBT = 20;

/**
 * Whether the parent still waits for this supervisor: somebody may have stopped or deleted it, or it was killed.
 *
 * @returns undefined while n8n may not have stored yet that the parent waits
 */
async function isAwaited(
	context: IExecuteFunctions,
	{ parentExecutionId, supervisorId = '', earlierError }: ResultsCheck,
): Promise<boolean | undefined> {
	const data = await context.getExecutionDataById(parentExecutionId);
	const error = data?.resultData.error;
	if (error !== undefined && digest(error) !== earlierError) return false;
	const [waiting] = data?.executionData?.nodeExecutionStack ?? [];
	const children = waiting?.metadata?.waitingChildExecutionIds;
	// Older versions of n8n do not name the children.
	if (Array.isArray(children) ? children.includes(supervisorId) : data?.waitTill) return true;
	const { runs = 0 }: Kept = context.getContext('node');
	return runs <= RUNS_IN_DOUBT ? undefined : false;
}

async function checkForDeliveries(context: IExecuteFunctions, state: DeliveryCheck) {
	const service = reach(context, state);
	const deliver =
		service &&
		(async (delivery: AwaitedDelivery) => await deliverTask(context, delivery, await service()));
	const now = Date.now();
	const after = noteOverdue(deliver ? await checkDeliveries(state, deliver) : state, now);
	if (after.deliveries.length === 0) return doneItems([{ json: { delivered: true } }]);
	const failure = undelivered(after, now);
	if (failure === undefined) return await sleepUntilNextCheck(context, after, now);
	if (state.supervisorId !== undefined) return doneItems([], failure);
	throw new ItemError(failure.message, failure).toNodeError(context.getNode(), undefined);
}

/**
 * @returns a function that gives the connection to one request after the other, and rejects if the credential cannot be
 *   used; undefined if the service asked to wait
 */
function reach(context: IExecuteFunctions, { notBefore = 0 }: CheckState) {
	if (Date.now() < notBefore) return undefined;
	const connected = connect(context);
	connected.catch((error: unknown) => {
		const { name } = context.getNode();
		context.logger.warn(`${name}: this check could not be made. ${messageOf(error)}`);
	});
	const gap = new RequestGap();
	return async () => {
		const connection = await connected;
		await sleepUntil(gap.take(), context.getExecutionCancelSignal());
		return connection;
	};
}

/** A sleeping check shows this many tasks. */
const MOST_TOLD = 20;

/** @param checkedAt when this check began, milliseconds since 1970; left out before the first check */
async function sleepUntilNextCheck(
	context: IExecuteFunctions,
	state: CheckState,
	checkedAt = -Infinity,
) {
	const waiting =
		state.purpose === 'delivery'
			? state.deliveries
			: state.items.flatMap(({ json: { taskId }, waits }) => (waits ? { ...waits, taskId } : []));
	const deadlines = waiting.map(({ until }) => until).filter((until) => until > checkedAt);
	const nextCheck = new Date(nextCheckAt(state, Date.now(), deadlines));
	context.getContext('node').state = without(state, 'woken');
	await context.putExecutionToWait(nextCheck);
	// n8n stores this output again with each check.
	const tasks = waiting.slice(0, MOST_TOLD).map(({ taskId }) => String(taskId));
	return [{ json: { nextCheck: nextCheck.toISOString(), unfinished: waiting.length, tasks } }];
}

/** The output if nobody waits for the results any more. */
function abandoned({ items, nodeName }: ResultsCheck): INodeExecutionData[] {
	const taskIds = items.flatMap(({ json }) => json.taskId ?? []);
	const message = `The execution that waited for these tasks of '${nodeName}' has ended, or was deleted. Fetch them with the operation Task → Wait.`;
	return doneItems([{ json: { message, taskIds } }]);
}
