import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { Journal } from '../create/journal';
import { notSent } from '../create/createTask';
import { errorOf, holdsPlace, isToCreate, storedError } from '../create/taskEntry';
import { refuseKilledRetry } from '../n8n/killedRetry';
import { isTool, modeOf } from '../n8n/internals';
import { takeInputBack } from '../n8n/runAgain';
import { TurnLease } from '../n8n/turnLease';
import { echo } from '../plan/inputFile';
import { planRun } from '../plan/planRun';
import { timeLimitOf } from '../plan/planWait';
import { createsIn, isAwaited, type ItemPlan, referenceOf } from '../plan/planTypes';
import { describeStop, stoppingItem } from '../report/ifSomeFail';
import { includedInputs, outputItems } from '../report/includeInput';
import { NOT_KNOWN } from '../report/taskErrors';
import { type ItemResult, pendingJson, taskItems, taskJson } from '../report/taskItems';
import { toolAnswer } from '../report/toolAnswer';
import type { Connection } from '../service/connect';
import { clock, Stopped } from '../shared/clock';
import { count } from '../shared/count';
import { inTableOrder, ItemError } from '../shared/itemError';
import { settled } from '../shared/promises';
import { beginTurn } from './beginTurn';
import { bringTask } from './bringTask';
import { connectAnyway } from './connectAnyway';
import { look } from './look';
import { describePaid, RunContext } from './runContext';
import { dryRunHint, endHints, hint, showHints, showWarnings } from './runHints';
import { goToSleep, nextToCreate } from './sleep';
import { explainStop } from './stopRun';

/**
 * One turn of a run of the action node: plan, create, wait, and put out, or sleep. A woken run is the same run: what it
 * did before is in the journal.
 *
 * @returns the output items, in the order of the input items; nothing if the run sleeps
 * @throws NodeApiError, NodeOperationError for the first item that failed, unless the option *If Some Items Fail* or
 *   the node's *On Error* setting lets failed items out
 */
export async function runTasks(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	const startedAt = clock.now();
	takeInputBack(context);
	let journal: Journal | undefined;
	let lease: TurnLease | undefined;
	try {
		let run: RunContext;
		try {
			journal = new Journal(context);
			const looked = journal.beginning === 'woken' ? await look(context, journal) : undefined;
			if (looked?.isNews === false) return await goToSleep(context, journal, []);
			lease = new TurnLease(context, journal.sleeps);
			const asleep = await beginTurn(context, journal, lease);
			if (asleep) return asleep;
			run = await openRun(context, journal, startedAt, looked?.connection);
		} catch (error) {
			return [refuse(context, ItemError.from(error), journal)];
		}
		return await goOn(run);
	} finally {
		lease?.end();
	}
}

/** The rest of a turn that has begun. */
async function goOn(run: RunContext): Promise<INodeExecutionData[][]> {
	const { context, journal } = run;
	showWarnings(context, run.plan.warnings);
	if (run.plan.isDry) return [dryRun(run)];
	const ended = await settled(bringTasks(run));
	if ('error' in ended) throw await explainStop(run, ended.error);
	endUnsent(run);
	const next = run.isStopping ? [] : toCreate(run);
	if (run.turn.maySleep && isUnfinished(run)) {
		const { limitAt } = run.plan;
		const announced = nextToCreate(next, journal.createdInTurn);
		journal.limits = run.limits.toStored();
		const isQuiet = run.canCreate && next.length > 0 && journal.createdInTurn === 0;
		journal.noteTurn(isQuiet && run.limits.unfinished === 0, run.begunAt);
		return await goToSleep(context, journal, announced, { intervalMs: 0, limitAt });
	}
	return [letOut(run)];
}

/** Plans a turn that has begun. @throws ItemError, UserError if the run is refused as a whole */
async function openRun(
	context: IExecuteFunctions,
	journal: Journal,
	startedAt: number,
	known?: Connection,
): Promise<RunContext> {
	const hasSlept = journal.isLater;
	const connection = await connectAnyway(context, hasSlept, known);
	const { limitAt } = journal.sleepRule;
	const plan = await planRun(context, connection, {
		limitAt: Math.min(limitAt, timeLimitOf(context, journal.startedAt)),
		partsOf: (itemIndex) => journal.partsOf(itemIndex),
		isBegun: journal.isBegun,
	});
	// A run that creates nothing cannot pay twice.
	if (!hasSlept && !plan.isDry && createsIn(plan.items).length > 0) {
		await refuseKilledRetry(context, journal.beginning !== 'again');
	}
	return new RunContext(context, connection, plan, journal, startedAt);
}

/** The output of a run that is refused as a whole. @throws NodeOperationError unless *On Error* lets the items out */
function refuse(
	context: IExecuteFunctions,
	refused: ItemError,
	journal: Journal | undefined,
): INodeExecutionData[] {
	if (!context.continueOnFail()) {
		const paid = journal && describePaid(journal);
		throw refused.toNodeError(context.getNode(), undefined, describeStop(refused, paid));
	}
	const inputs = [...context.getInputData().keys()];
	const { message, description = '' } = refused;
	const failed = count(inputs.length, 'item');
	showHints(context, hint(`${failed} failed: ${message}. ${description}`.trim(), 'warning'));
	const results = inputs.map((itemIndex) => withTask(refused, journal, itemIndex));
	return itemsOf(context, results, inputs);
}

/** An error with the task that the run has created for the item before. */
function withTask(error: ItemError, journal: Journal | undefined, itemIndex: number): ItemError {
	const entries = journal?.entriesOf(itemIndex) ?? [];
	if (entries.some(({ state }) => state === 'sent')) {
		return new ItemError(`${NOT_KNOWN}. ${error.message}`, error);
	}
	const entry = entries.find(({ sent, taskId }) => sent && taskId);
	return entry?.taskId ? ItemError.from(error, pendingJson(entry.taskId, entry.sent ?? {})) : error;
}

/** @param inputOf the index of the input item of each result */
function itemsOf(
	context: IExecuteFunctions,
	results: readonly ItemResult[],
	inputOf: readonly number[],
): INodeExecutionData[] {
	const included = includedInputs(context);
	const origins = inputOf.map((item) => ({ item, input: included(item) }));
	const output = outputItems(context.getNode(), results, origins);
	return isTool(context) ? output.map(toolAnswer) : output;
}

/** Makes items that show what would be sent. Nothing is sent, and no file is read. */
function dryRun({ context, plan, isStopping, rule }: RunContext): INodeExecutionData[] {
	const results = plan.items.map((item): ItemResult => {
		if (item.kind === 'refused') return item.error;
		if (item.kind !== 'create' || isStopping) return [];
		const { estimatedCostUsd, itemIndex } = item;
		const json = { ...echo(item), ...referenceOf(item), estimatedCostUsd, dryRun: true };
		return [{ json: inTableOrder(json), pairedItem: { item: itemIndex } }];
	});
	const stopping = stoppingItem(results, rule);
	const inputOf = plan.items.map(({ itemIndex }) => itemIndex);
	if (stopping !== undefined) {
		const error = ItemError.from(results[stopping]);
		throw stopOf(context, error, inputOf[stopping], undefined);
	}
	showHints(context, hint(dryRunHint(createsIn(plan.items))));
	return itemsOf(context, results, inputOf);
}

/** @throws Stopped where the execution was stopped */
async function bringTasks(run: RunContext): Promise<void> {
	const { plan, journal, expectedCallbacks, signal } = run;
	const tasks = plan.items.filter((item) => item.kind !== 'refused');
	// Tasks of earlier turns and tries may be unfinished. They are counted before another task is created.
	const creates = createsIn(plan.items).map((item) => journal.entryOf(item));
	run.limits.unfinished += creates.filter(holdsPlace).length;
	const ways = tasks.map(async (item) => await bringTask(run, item));
	const broken = (await Promise.allSettled(ways)).find((way) => way.status === 'rejected');
	await expectedCallbacks.leave();
	if (broken) throw broken.reason;
	if (signal?.aborted) throw new Stopped();
}

/** If the service takes no task for good, the items of later turns fail as those of this turn did. */
function endUnsent(run: RunContext): void {
	const { closedBy } = run.queue;
	if (closedBy === undefined) return;
	for (const item of toCreate(run)) {
		const entry = run.journal.entryOf(item);
		const error = ItemError.from(notSent(ItemError.from(closedBy)), run.ownFields(item, entry));
		Object.assign(entry, { error: storedError(error), end: 'error' });
	}
}

/** The tasks that are still to be created, in the order of the items. */
const toCreate = ({ plan, journal }: RunContext) =>
	createsIn(plan.items).filter((item) => isToCreate(journal.entryOf(item)));

/** Whether an item waits for a task, a file or a create. A run that stops waits for the tasks that it has created. */
const isUnfinished = ({ plan, journal, isStopping }: RunContext): boolean =>
	plan.items.some((item) => {
		if (item.kind === 'refused') return false;
		const entry = journal.entryOf(item);
		const isLeft = isStopping && (item.kind === 'read' || entry.taskId === undefined);
		return entry.end === undefined && !isLeft;
	});

/**
 * The output items of a run that has ended.
 *
 * @throws NodeApiError, NodeOperationError for the item that stops the node
 */
function letOut(run: RunContext): INodeExecutionData[] {
	const { context, rule, plan, connection } = run;
	const node = context.getNode();
	const results = plan.items.map((item) => resultOf(run, item));
	const inputOf = plan.items.map(({ itemIndex }) => itemIndex);
	const stopping = stoppingItem(results, rule);
	if (stopping !== undefined) {
		const error = ItemError.from(results[stopping]);
		throw stopOf(context, error, inputOf[stopping], describePaid(run.journal));
	}
	const output = itemsOf(context, results, inputOf);
	const hasErrorOutput = node.onError === 'continueErrorOutput';
	const isByHand = modeOf(context) === 'manual';
	showHints(context, ...endHints(plan, results, connection.baseUrl, { hasErrorOutput, isByHand }));
	return output;
}

/** The error that stops the node. It names the item if there are several. */
function stopOf(
	context: IExecuteFunctions,
	error: ItemError,
	itemIndex: number | undefined,
	paid: string | undefined,
): Error {
	const place = context.getInputData().length > 1 ? itemIndex : undefined;
	return error.toNodeError(context.getNode(), place, describeStop(error, paid));
}

/** The result of a plan, from what the journal knows. */
function resultOf(run: RunContext, item: ItemPlan): ItemResult {
	if (item.kind === 'refused') return withTask(item.error, run.journal, item.itemIndex);
	const entry = run.journal.entryOf(item);
	if (entry.end === undefined) return [];
	if (entry.end === 'error') return errorOf(entry);
	const known = run.ownFields(item, entry);
	if (entry.task && (item.kind === 'read' || isAwaited(item))) {
		return taskItems(entry.task, taskJson(entry.task, known), item, entry.files);
	}
	const json = inTableOrder(pendingJson(String(entry.taskId), { ...known, record: entry.record }));
	return [{ json, pairedItem: { item: item.itemIndex } }];
}
