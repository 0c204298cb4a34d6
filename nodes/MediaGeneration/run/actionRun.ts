import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { CreateJournal } from '../create/createJournal';
import { storeInput } from '../suspend/suspendRun';
import { refuseKilledRetry } from '../create/refuseKilledRetry';
import { planRun, type RunPlan } from '../plan/planRun';
import { PaidTasks } from '../report/paidTasks';
import { describeStop } from '../report/ifSomeFail';
import { withInputs } from '../report/includeInput';
import { toolAnswer } from '../report/toolAnswer';
import { type Connection, connect } from '../service/connect';
import { type Clock, systemClock } from '../shared/clock';
import { settled } from '../shared/promises';
import { ItemError } from '../shared/itemError';
import { isTool } from '../shared/n8nInternals';
import { dryRun } from './dryRun';
import { withEarlierTask } from './retryOnFail';
import { endHints, showHints, showWarnings } from './runHints';
import { TaskRun } from './taskRun';

/**
 * One run of the action node: plan, create, wait, output.
 *
 * @returns the output items, in the order of the input items
 * @throws NodeApiError, NodeOperationError for the first item that failed, unless the option *If Some Items Fail* or
 *   the node's *On Error* setting lets failed items out
 */
export async function runTasks(
	context: IExecuteFunctions,
	clock: Clock = systemClock,
): Promise<INodeExecutionData[]> {
	let connection: Connection;
	let plan: RunPlan;
	let journal: CreateJournal | undefined;
	try {
		await refuseKilledRetry(context);
		journal = new CreateJournal(context);
		connection = await connect(context);
		plan = await planRun(context, connection, clock);
	} catch (error) {
		return withInputs(context, refuse(context, ItemError.from(error), journal));
	}
	if (plan.isDry) return asAnswer(context, withInputs(context, dryRun(context, plan)));
	showWarnings(context, plan.warnings);
	const run = new TaskRun(context, connection, plan, journal, clock);
	const ended = await settled(async () => {
		await run.bringItems();
		return await run.suspend();
	});
	if ('error' in ended) throw explainEnd(run, ended.error);
	const isSuspended = ended.value;
	const output = letOut(run, plan, isSuspended);
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
		const created = new PaidTasks(journal?.taskIds() ?? [], journal?.failedTaskIds());
		const paid = created.describe(journal?.unanswered());
		throw refused.toNodeError(node, undefined, describeStop(refused, paid));
	}
	return context
		.getInputData()
		.map((_, item) => withEarlierTask(refused, journal, item).toItem(node, { item }));
}

/**
 * The output items of a run that came to its end, or was suspended.
 *
 * @throws NodeApiError, NodeOperationError for the item that stops the node. Of a suspended run it is decided when all is
 *   known.
 */
function letOut(run: TaskRun, { inputOf }: RunPlan, isSuspended: boolean): INodeExecutionData[] {
	const { context, journal, results } = run;
	const node = context.getNode();
	const stopping = isSuspended ? undefined : run.stoppingItem();
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
function explainEnd({ context, paid }: TaskRun, reason: unknown): Error {
	const node = context.getNode();
	const error = ItemError.from(reason);
	// n8n does not keep the error of a node that was stopped, so its log is where the ids can be found.
	if (paid !== undefined) context.logger.warn(`${node.name}: ${error.message}. ${paid}`);
	return error.toNodeError(node, undefined, paid);
}
