import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { Journal } from '../create/journal';
import { isOrdered, ownFields, positionOf, type TaskEntry } from '../create/taskEntry';
import { isTool, modeOf } from '../n8n/internals';
import { takeInputBack } from '../n8n/runAgain';
import { costOf } from '../n8n/storedExecution';
import { stretchOf, timeLimitOf } from '../n8n/stretch';
import { echo } from '../plan/inputFile';
import { planRun, type RunPlan } from '../plan/planRun';
import { createsIn, isAwaited, type ItemPlan, referenceOf, type TaskPlan } from '../plan/planTypes';
import {
	describePaidTasks,
	describeStop,
	type FailureRule,
	type Ordered,
	stoppingItem,
} from '../report/ifSomeFail';
import { includedInputs, outputItems, toolAnswer } from '../report/outputItems';
import { missingResults, NOT_KNOWN } from '../report/taskErrors';
import { dryJson, type ItemResult, pendingJson, taskItems, taskJson } from '../report/taskItems';
import type { Connection } from '../service/connect';
import { roundUsd } from '../service/money';
import { clock, settled } from '../shared/clock';
import { count, errorOf, inTableOrder, ItemError } from '../shared/itemError';
import { beginOrders, clearAtEnd, wakeUp } from './beginTurn';
import { untilTurnEnds } from './bringTask';
import { lostResults } from './deliver';
import {
	endUnsent,
	explainStop,
	goToSleep,
	isUnfinished,
	nextOrderAt,
	orderedBy,
	tellEnd,
} from './endTurn';
import { connectRun, RunContext } from './runContext';
import { dryRunHint, endHints, hint, showWarnings } from './runHints';

/**
 * One turn of a run of the action node: plan, order, wait, and put out, or sleep. A woken run is the same run: its plan, and
 * what it did before, are in the journal.
 *
 * @returns the output items, in the order of the input items; nothing if the run sleeps
 * @throws NodeApiError, NodeOperationError for the first item that failed, unless the option *If Some Items Fail* or
 *   the node's *On Error* setting lets failed items out
 */
export async function runTasks(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	const startedAt = clock.now();
	// The stretch begins with the first run, whatever that run does.
	stretchOf(context);
	takeInputBack(context);
	let journal: Journal | undefined;
	let begun: RunContext | INodeExecutionData[][];
	try {
		journal = new Journal(context);
		begun = await beginRun(context, journal, startedAt);
	} catch (error) {
		return [refuse(context, ItemError.from(error), journal)];
	}
	if (!(begun instanceof RunContext)) return begun;
	const { turn } = begun;
	return await goOn(begun).finally(() => turn.close());
}

/**
 * Begins a turn.
 *
 * @returns what the items share; or what `execute` returns, if nothing is to be done
 * @throws ItemError, UserError if the run is refused as a whole
 */
async function beginRun(
	context: IExecuteFunctions,
	journal: Journal,
	startedAt: number,
): Promise<RunContext | INodeExecutionData[][]> {
	const isWoken = journal.beginning === 'woken';
	const asleep = isWoken ? await wakeUp(context, journal) : undefined;
	if (asleep) return asleep;
	const connection = await connectRun(context, journal.isLater);
	if (!isWoken) {
		const dry = await planAnew(context, journal, connection);
		if (dry) return [dry];
		const stored = await beginOrders(context, journal);
		if (stored) return stored;
	}
	journal.takeUp();
	clearAtEnd(context, journal);
	return new RunContext(context, connection, journal, startedAt);
}

/**
 * Plans what is left to do.
 *
 * @returns the output of a dry run
 * @throws ItemError, UserError if the run is refused as a whole
 */
async function planAnew(
	context: IExecuteFunctions,
	journal: Journal,
	connection: Connection,
): Promise<INodeExecutionData[] | undefined> {
	const ordered = journal.entries.filter(isOrdered);
	const positions = new Set(ordered.map(positionOf));
	const { isDry, ...plan } = await planRun(context, connection, {
		limitAt: timeLimitOf(context),
		isOrdered: (item) => positions.has(positionOf(item)),
		paidUsd: roundUsd(costOf(ordered)),
	});
	showWarnings(context, plan.warnings);
	if (isDry) return dryRun(context, plan, journal);
	journal.plan(plan);
	return undefined;
}

async function goOn(run: RunContext): Promise<INodeExecutionData[][]> {
	const { context, journal, queue, window, turn } = run;
	const ended = await settled(untilTurnEnds(run));
	if ('error' in ended) throw await explainStop(run, ended.error);
	// A further try of n8n's keeps to the pauses, however this one ends.
	journal.queue = { ...queue.state, limits: run.limits.toStored() };
	endUnsent(run);
	const lost = await lostResults(run);
	if (lost === undefined && turn.maySleep && isUnfinished(run)) {
		// A run that waits for its own tasks is not stuck: their ends let orders in.
		const isStuck = turn.isStuck && run.limits.unfinished === 0;
		const isOrdering = !run.isStopping && !isStuck && !run.connection.isBroken;
		return await goToSleep(context, journal, {
			turnStartedAt: turn.startedAt,
			orderAt: isOrdering ? nextOrderAt(journal, queue.state.pausedUntil) : Infinity,
			notBefore: window.pausedUntil,
		});
	}
	journal.rememberEnd();
	if (lost) throw lost.toNodeError(context.getNode(), undefined);
	return [await letOut(run)];
}

const NOTHING: Ordered = { tasks: [] };

/** The output of a run that is refused as a whole. @throws NodeOperationError unless *On Error* lets the items out */
function refuse(
	context: IExecuteFunctions,
	refused: ItemError,
	journal: Journal | undefined,
): INodeExecutionData[] {
	if (!context.continueOnFail()) {
		const ordered = journal ? orderedBy(journal) : NOTHING;
		throw refused.toNodeError(context.getNode(), undefined, describeStop(refused, ordered));
	}
	const inputs = [...context.getInputData().keys()];
	const { message, description = '' } = refused;
	const failed = count(inputs.length, 'item');
	context.addExecutionHints(hint(`${failed} failed: ${message}. ${description}`.trim(), 'warning'));
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

/**
 * Makes items that show what would be sent. Nothing is sent, and no file is read. A task that is ordered is shown as it is
 * known.
 */
function dryRun(
	context: IExecuteFunctions,
	{ items }: Pick<RunPlan, 'items'>,
	journal: Journal,
): INodeExecutionData[] {
	const continues = context.continueOnFail() && !isTool(context);
	const isStopping = !continues && items.some(({ kind }) => kind === 'refused');
	const before = new Map(journal.entries.map((entry) => [positionOf(entry), entry]));
	const results = items.map((item): ItemResult => {
		if (item.kind === 'refused') return item.error;
		if (item.kind !== 'create' || isStopping) return [];
		const known = before.get(positionOf(item));
		const pairedItem = { item: item.itemIndex };
		if (known?.taskId !== undefined && isOrdered(known)) {
			return [
				{ json: { ...pendingJson(known.taskId, ownFields(known)), dryRun: true }, pairedItem },
			];
		}
		const { estimatedCostUsd } = item;
		const sent = { ...echo(item), ...referenceOf(item), estimatedCostUsd };
		return [{ json: dryJson(context, sent), pairedItem }];
	});
	const rule = { ifSomeFail: 'stop' as const, continues, triesLeft: false };
	const inputOf = items.map(({ itemIndex }) => itemIndex);
	throwStopping(context, results, rule, inputOf, NOTHING);
	context.addExecutionHints(hint(dryRunHint(createsIn(items))));
	return itemsOf(context, results, inputOf);
}

/**
 * The output items of a run that has ended.
 *
 * @throws NodeApiError, NodeOperationError for the item that stops the node
 */
async function letOut(run: RunContext): Promise<INodeExecutionData[]> {
	const { context, rule, journal, connection } = run;
	const { entries } = journal;
	const results = entries.map((entry) => resultOf(journal, entry));
	const inputOf = entries.map(({ itemIndex }) => itemIndex);
	throwStopping(context, results, rule, inputOf, orderedBy(journal), run.calledAt < Infinity);
	const output = itemsOf(context, results, inputOf);
	const hasErrorOutput = context.getNode().onError === 'continueErrorOutput';
	const isByHand = modeOf(context) === 'manual';
	const items = entries.map(
		({ plan, itemIndex, taskIndex, error }): ItemPlan =>
			plan ?? { kind: 'refused', itemIndex, taskIndex, error: errorOf(error), isDry: false },
	);
	const how = { hasErrorOutput, isByHand, isTool: isTool(context) };
	context.addExecutionHints(...endHints({ items }, results, connection.baseUrl, how));
	const missing = missingResults(entries.map(({ task }) => task));
	if (missing !== undefined) showWarnings(context, [missing]);
	journal.isEnded = true;
	await tellEnd(run);
	return output;
}

/**
 * @param isToCaller whether a caller hears the message alone, and would order again what it does not name
 * @throws the error that stops the node, if one of the results does; it names the item if there are several */
function throwStopping(
	context: IExecuteFunctions,
	results: readonly ItemResult[],
	rule: FailureRule,
	inputOf: readonly number[],
	ordered: Ordered,
	isToCaller = false,
): void {
	const stopping = stoppingItem(results, rule);
	if (stopping === undefined) return;
	const first = ItemError.from(results[stopping]);
	const all = isToCaller && ordered.tasks.length > 1 ? describePaidTasks(ordered) : undefined;
	// The list names the task already.
	const error =
		all === undefined ? first : new ItemError(`${first.told}. ${all}`, { ...first, task: {} });
	const named = context.getInputData().length > 1 ? inputOf[stopping] : undefined;
	throw error.toNodeError(context.getNode(), named, describeStop(first, ordered));
}

function resultOf(journal: Journal, entry: TaskEntry): ItemResult {
	const { plan, end, task, files, taskId, record, itemIndex } = entry;
	if (plan === undefined) return withTask(errorOf(entry.error), journal, itemIndex);
	if (end === undefined) return [];
	if (end === 'error') return errorOf(entry.error);
	const known = ownFields(entry);
	if (task && isAnswer(plan)) return taskItems(task, taskJson(task, known), plan, files);
	// Of a task that was not read nothing else is known.
	const isUnread = plan.kind === 'read';
	const json = isUnread
		? { taskId, ...known }
		: inTableOrder(pendingJson(String(taskId), { ...known, record }));
	return [{ json, pairedItem: { item: itemIndex } }];
}

/** Whether what was read of the task is the answer, and not only that the task exists. */
const isAnswer = (plan: TaskPlan) => plan.kind === 'read' || isAwaited(plan);
