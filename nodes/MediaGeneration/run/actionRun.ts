import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { CreateJournal } from '../create/createJournal';
import { storeInput, suspendRun } from '../suspend/suspendRun';
import { suspensionWarnings } from '../plan/canSuspend';
import { refuseKilledRetry } from '../create/refuseRetryOfKilled';
import { planRun, type RunPlan } from '../plan/planRun';
import { createsIn, type TaskPlan } from '../plan/planTypes';
import { PaidTaskList } from '../report/paidTaskList';
import { describeStop, stoppingItem } from '../report/ifSomeFail';
import { withInputs } from '../report/includeInput';
import { toolAnswer } from '../report/toolAnswer';
import { type Connection, connect } from '../service/connect';
import { systemClock, Stopped } from '../shared/clock';
import { settled, type Settled } from '../shared/promises';
import { ItemError } from '../shared/itemError';
import { isTool } from '../shared/n8nInternals';
import { dryRun } from './dryRun';
import { endHints, showHints, showWarnings } from './runHints';
import { RunContext, type Output } from './runContext';
import { CreateItem } from './createItem';
import { readItem } from './readItem';

/**
 * One run of the action node: plan, create, wait, output.
 *
 * @returns the output items, in the order of the input items
 * @throws NodeApiError, NodeOperationError for the first item that failed, unless the option *If Some Items Fail* or
 *   the node's *On Error* setting lets failed items out
 */
export async function runTasks(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	let connection: Connection;
	let plan: RunPlan;
	let journal: CreateJournal | undefined;
	try {
		journal = new CreateJournal(context);
		connection = await connect(context);
		plan = await planRun(context, connection, systemClock);
		// What creates nothing is not paid for twice.
		if (createsIn(plan.items).length > 0 && !plan.isDry) await refuseKilledRetry(context);
	} catch (error) {
		return withInputs(context, refuse(context, ItemError.from(error), journal));
	}
	if (plan.isDry) return asAnswer(context, withInputs(context, dryRun(context, plan)));
	showWarnings(context, plan.warnings);
	const run = new RunContext(context, connection, plan, journal, systemClock);
	const ended = await settled(async () => {
		await bringItems(run);
		return await suspend(run);
	});
	if ('error' in ended) throw explainEnd(run, ended.error);
	const isSuspended = ended.value;
	const output = letOut(run, isSuspended);
	const hasErrorOutput = context.getNode().onError === 'continueErrorOutput';
	const { baseUrl } = connection;
	showHints(context, ...endHints(plan.items, run.results, baseUrl, isSuspended, hasErrorOutput));
	if (!isSuspended) return asAnswer(context, output);
	storeInput(context, output);
	// What is stored leaves the node later. An `error` in what is returned now would have n8n's Retry On Fail run
	// the suspended node again.
	return output.map(({ json, ...item }) => ({ ...item, json: { ...json, error: undefined } }));
}

const asAnswer = (context: IExecuteFunctions, output: INodeExecutionData[]) =>
	isTool(context) ? output.map(toolAnswer) : output;

/**
 * The items of a run that is refused as a whole.
 *
 * @throws NodeOperationError unless the node's *On Error* lets them out
 */
function refuse(
	context: IExecuteFunctions,
	refused: ItemError,
	journal: CreateJournal | undefined,
): INodeExecutionData[] {
	const node = context.getNode();
	if (!context.continueOnFail()) {
		const created = new PaidTaskList(journal?.taskIds() ?? [], journal?.failedTaskIds());
		const paid = created.describe(journal?.unanswered());
		throw refused.toNodeError(node, undefined, describeStop(refused, paid));
	}
	return context
		.getInputData()
		.map((_, item) => (journal?.withTask(refused, item) ?? refused).toItem(node, { item }));
}

/** @returns the index of the item whose error stops the node; undefined where all items leave */
function stoppingItemOf(run: RunContext): number | undefined {
	const { plan, results, triesLeft, isTool, isStopping } = run;
	const continues = run.continues || (isTool && !isStopping);
	return stoppingItem(results, { ifSomeFail: plan.ifSomeFail, continues, triesLeft });
}

/**
 * Brings each item to its result, or hands its task over.
 *
 * @throws Stopped where the execution was stopped
 */
async function bringItems(run: RunContext): Promise<void> {
	const { plan, journal, queue, places, deliveries, signal } = run;
	const earlier = new Set(
		createsIn(plan.items).filter((item) => typeof journal.find(item) === 'object'),
	);
	// What earlier tries have created may be unfinished: it is counted before another task is created, and is read at once.
	earlier.forEach(() => queue.throttle.adopt());
	const ends = plan.items.map(async (item, index): Promise<Settled<void>> => {
		if (item instanceof ItemError) return { value: undefined };
		const work = async () => await begin(run, item);
		const isCreated = item.kind === 'create' && earlier.has(item);
		const inTurn = isCreated ? work : async () => await places.run(work);
		return await settled(putOut(run, item, index, inTurn));
	});
	const broken = (await Promise.all(ends)).find((end) => 'error' in end);
	await deliveries.leave();
	if (broken) throw broken.error;
	if (signal?.aborted) throw new Stopped();
}

async function begin(run: RunContext, item: TaskPlan): Promise<Output | undefined> {
	if (run.signal?.aborted) throw new Stopped();
	if (run.isStopping) return undefined;
	return item.kind === 'read'
		? await readItem(run, item)
		: await new CreateItem(run, item).output();
}

/**
 * Suspends the execution where tasks were handed over. A node that n8n tries again is not suspended: the next try takes
 * up its tasks. Where n8n does not suspend, the tasks are waited for to their end.
 *
 * @returns whether it is suspended
 * @throws Stopped where the execution was stopped
 */
async function suspend(run: RunContext): Promise<boolean> {
	const { plan, context, handedOver, results, clock } = run;
	const isTriedAgain = run.triesLeft && stoppingItemOf(run) !== undefined;
	if (handedOver.length === 0 || isTriedAgain) return false;
	for (const warning of suspensionWarnings(context)) {
		context.logger.info(`${context.getNode().name}: ${warning}`);
	}
	if (await suspendRun(context, handedOver, results, plan, clock.now())) return true;
	run.suspendAfter.switchOff();
	await Promise.all(
		handedOver.map(async ({ item, goOn }) => await putOut(run, item, item.itemIndex, goOn)),
	);
	return false;
}

/** @throws Stopped alone: any other trouble is the item's result */
async function putOut(
	run: RunContext,
	item: TaskPlan,
	index: number,
	work: () => Promise<Output | undefined>,
): Promise<void> {
	const ended = await settled(async () => {
		const output = await work();
		return output ? await run.downloads.run(output) : [];
	});
	if ('value' in ended) {
		run.results[index] = ended.value;
		return;
	}
	if (ended.error instanceof Stopped || run.signal?.aborted) throw new Stopped();
	run.stopCreating();
	const error = ItemError.from(ended.error);
	run.results[index] = ItemError.from(error, run.known(item, error.task.taskId));
}

/**
 * The output items of a run that came to its end, or was suspended.
 *
 * @throws NodeApiError, NodeOperationError for the item that stops the node. Of a suspended run it is decided when all is
 *   known.
 */
function letOut(run: RunContext, isSuspended: boolean): INodeExecutionData[] {
	const { context, journal, results } = run;
	const { inputOf } = run.plan;
	const node = context.getNode();
	const stopping = isSuspended ? undefined : stoppingItemOf(run);
	if (stopping !== undefined) {
		const error = ItemError.from(results[stopping]);
		throw error.toNodeError(node, inputOf[stopping], describeStop(error, run.paid));
	}
	// n8n's Retry On Fail may try on where an item went out with an error, and a suspended execution may be
	// cancelled and retried: then the journal is still needed.
	const hasFailed = results.some((result) => result instanceof ItemError);
	if (!isSuspended && !hasFailed) journal.close();
	const leaving = results.flatMap((result, index) =>
		result instanceof ItemError ? result.toItem(node, { item: inputOf[index] ?? 0 }) : result,
	);
	return withInputs(context, leaving);
}

/** Why the run ended before its items did: it was stopped, as a rule. */
function explainEnd({ context, paid }: RunContext, reason: unknown): Error {
	const node = context.getNode();
	const error = ItemError.from(reason);
	// n8n does not keep the error of a node that was stopped, so its log is where the ids can be found.
	if (paid !== undefined) context.logger.warn(`${node.name}: ${error.message}. ${paid}`);
	return error.toNodeError(node, undefined, paid);
}
