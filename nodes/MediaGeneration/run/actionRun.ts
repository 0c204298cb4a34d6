import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { CreateJournal, refuseKilledRetry } from '../create/createJournal';
import { storeInput, suspendRun } from '../suspend/suspendRun';
import { suspensionWarnings } from '../plan/canSuspend';
import { echo } from '../plan/inputFile';
import { planRun } from '../plan/planRun';
import { createsIn, referenceOf, type TaskPlan } from '../plan/planTypes';
import type { ItemResult } from '../report/taskItems';
import { PaidTaskList } from '../report/paidTaskList';
import { describeStop, hasTriesLeft, stoppingItem } from '../report/ifSomeFail';
import { includedInput, outputItems } from '../report/includeInput';
import { toolAnswer } from '../report/toolAnswer';
import { connect } from '../service/connect';
import { clock, Stopped } from '../shared/clock';
import { settled } from '../shared/promises';
import { inTableOrder, ItemError } from '../shared/itemError';
import { isTool } from '../n8n/internals';
import { dryRunHint, endHints, hint, showHints, showWarnings } from './runHints';
import { openRun, type Output, type RunContext } from './runContext';
import { createItem } from './createItem';
import { readItem } from './readTask';

/**
 * One run of the action node: plan, create, wait, output.
 *
 * @returns the output items, in the order of the input items
 * @throws NodeApiError, NodeOperationError for the first item that failed, unless the option *If Some Items Fail* or
 *   the node's *On Error* setting lets failed items out
 */
export async function runTasks(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	const startedAt = clock.now();
	let run: RunContext;
	let journal: CreateJournal | undefined;
	// A refused try counts, too.
	const triesLeft = hasTriesLeft(context);
	try {
		journal = new CreateJournal(context);
		const connection = await connect(context);
		const plan = await planRun(context, connection);
		// A run that creates nothing cannot pay twice.
		if (createsIn(plan.items).length > 0 && !plan.isDry) await refuseKilledRetry(context);
		run = openRun(context, connection, plan, journal, triesLeft, startedAt);
	} catch (error) {
		return refuse(context, ItemError.from(error), journal);
	}
	const { items, isDry, warnings } = run.plan;
	showWarnings(context, warnings);
	const ended = await settled(async () => {
		if (isDry) dryRun(run);
		else await bringItems(run);
		return await suspend(run);
	});
	if ('error' in ended) throw explainEnd(run, ended.error);
	const isSuspended = ended.value;
	const output = letOut(run, isSuspended);
	const hasErrorOutput = context.getNode().onError === 'continueErrorOutput';
	const hints = isDry
		? [hint(dryRunHint(createsIn(items)))]
		: endHints(run.plan, run.results, run.baseUrl, isSuspended, hasErrorOutput);
	showHints(context, ...hints);
	if (!isSuspended) return output;
	storeInput(context, output);
	// The stored items leave the node later. An `error` in the returned items would make n8n's Retry On Fail run the
	// suspended node again.
	return output.map(({ json, ...item }) => ({ ...item, json: { ...json, error: undefined } }));
}

/** The output of a run that is refused as a whole. @throws NodeOperationError unless *On Error* lets the items out */
function refuse(
	context: IExecuteFunctions,
	refused: ItemError,
	journal: CreateJournal | undefined,
): INodeExecutionData[] {
	if (!context.continueOnFail()) {
		const created = new PaidTaskList(journal?.taskIds() ?? [], journal?.failedTaskIds());
		const paid = created.describe(journal?.unanswered());
		throw refused.toNodeError(context.getNode(), undefined, describeStop(refused, paid));
	}
	const inputs = [...context.getInputData().keys()];
	const results = inputs.map((itemIndex) => journal?.withTask(refused, itemIndex) ?? refused);
	return itemsOf(context, results, inputs);
}

/** @param inputOf the index of the input item of each result */
function itemsOf(
	context: IExecuteFunctions,
	results: readonly ItemResult[],
	inputOf: readonly number[],
): INodeExecutionData[] {
	const origins = inputOf.map((item) => ({ item, input: includedInput(context, item) }));
	const output = outputItems(context.getNode(), results, origins);
	return isTool(context) ? output.map(toolAnswer) : output;
}

/** Makes items that show what would be sent. Nothing is sent, and no file is read. */
function dryRun({ plan, results, isStopping }: RunContext): void {
	if (isStopping) return;
	for (const [index, item] of plan.items.entries()) {
		if (item.kind !== 'create') continue;
		const { estimatedCostUsd, itemIndex } = item;
		const json = { ...echo(item), ...referenceOf(item), estimatedCostUsd, dryRun: true };
		results[index] = [{ json: inTableOrder(json), pairedItem: { item: itemIndex } }];
	}
}

/** @throws Stopped where the execution was stopped */
async function bringItems(run: RunContext): Promise<void> {
	const { plan, journal, queue, places, deliveries, signal } = run;
	const earlier = new Set<TaskPlan>(
		createsIn(plan.items).filter((item) => typeof journal.find(item) === 'object'),
	);
	// Tasks of earlier tries may be unfinished. They are counted before another task is created, and are read at once.
	queue.throttle.unfinished += earlier.size;
	const ways = plan.items.map(async (item, index) => {
		if (item.kind === 'refused') return;
		const work = async () => {
			if (signal?.aborted) throw new Stopped();
			if (run.isStopping) return undefined;
			return item.kind === 'read' ? await readItem(run, item) : await createItem(run, item);
		};
		const inTurn = earlier.has(item) ? work : async () => await places.run(work);
		await putOut(run, item, index, inTurn);
	});
	const broken = (await Promise.allSettled(ways)).find((way) => way.status === 'rejected');
	await deliveries.leave();
	if (broken) throw broken.reason;
	if (signal?.aborted) throw new Stopped();
}

/**
 * Suspends the execution if tasks were handed over. A node that n8n tries again is not suspended: the next try takes up
 * its tasks. If n8n does not suspend the execution, the node waits for the tasks to their end.
 *
 * @returns whether the execution is suspended
 */
async function suspend(run: RunContext): Promise<boolean> {
	const { plan, rule, context, handedOver, results } = run;
	const isTriedAgain = rule.triesLeft && stoppingItem(results, rule) !== undefined;
	if (handedOver.length === 0 || isTriedAgain) return false;
	for (const warning of suspensionWarnings(context)) {
		context.logger.info(`${context.getNode().name}: ${warning}`);
	}
	if (await suspendRun(context, handedOver, results, plan, clock.now())) return true;
	run.suspendAfter.switchOff();
	await Promise.all(
		handedOver.map(async ({ item, goOn }) => {
			await putOut(run, item, item.itemIndex, async () => await run.places.run(goOn));
		}),
	);
	return false;
}

/** @throws Stopped only: any other error becomes the item's result */
async function putOut(
	run: RunContext,
	item: TaskPlan,
	index: number,
	work: () => Promise<Output | undefined>,
): Promise<void> {
	const ended = await settled(async () => {
		const output = await work();
		return output ? await output() : [];
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
 * The output items of a run that has ended, or was suspended.
 *
 * @throws NodeApiError, NodeOperationError for the item that stops the node; a suspended run has no results yet
 */
function letOut(run: RunContext, isSuspended: boolean): INodeExecutionData[] {
	const { context, results, rule, plan } = run;
	const inputOf = plan.items.map(({ itemIndex }) => itemIndex);
	const stopping = isSuspended ? undefined : stoppingItem(results, rule);
	if (stopping !== undefined) {
		const error = ItemError.from(results[stopping]);
		throw error.toNodeError(context.getNode(), inputOf[stopping], describeStop(error, run.paid()));
	}
	return itemsOf(context, results, inputOf);
}

/** Explains why the run ended before its items: somebody stopped it, as a rule. */
function explainEnd({ context, paid }: RunContext, reason: unknown): Error {
	const node = context.getNode();
	const error = ItemError.from(reason);
	const list = paid();
	// n8n does not keep the error of a stopped node, so the ids are written to the log.
	if (list !== undefined) context.logger.warn(`${node.name}: ${error.message}. ${list}`);
	return error.toNodeError(node, undefined, list);
}
