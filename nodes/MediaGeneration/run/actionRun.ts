import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { Journal } from '../create/journal';
import { echo } from '../plan/itemFile';
import { planRun, type RunPlan } from '../plan/planRun';
import { type CreatePlan, createsIn, referenceOf } from '../plan/taskPlan';
import { CreatedTaskList } from '../report/createdTaskList';
import { describeStop } from '../report/failures';
import { withInputs } from '../report/includedInput';
import { toolAnswer } from '../report/toolAnswer';
import { type Connection, connect } from '../service/connect';
import { type Clock, systemClock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { isTool } from '../shared/n8nInternals';
import { count, hint, priceOf, showHints, showWarnings } from './runHints';
import { TaskRun, withEarlierTask } from './taskRun';

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
	let journal: Journal | undefined;
	try {
		journal = new Journal(context);
		connection = await connect(context);
		plan = await planRun(context, connection, clock);
	} catch (error) {
		const refused = ItemError.from(error);
		if (!context.continueOnFail()) {
			const created = new CreatedTaskList(journal?.taskIds() ?? [], journal?.failedTaskIds());
			const paid = created.describe(journal?.unanswered());
			throw refused.toNodeError(context.getNode(), undefined, describeStop(refused, paid));
		}
		const items = context.getInputData().map((_, item) => {
			const error = withEarlierTask(refused, journal?.taskOf(item));
			return error.toItem(context.getNode(), { item });
		});
		return withInputs(context, items);
	}
	if (plan.isDry) return withInputs(context, dryRun(context, plan));
	const run = new TaskRun(context, connection, plan, journal, clock);
	return run.finish();
}

/**
 * What a run would send, after all the checks of a real one. Nothing is sent, and no file is read.
 *
 * @returns an item for each task that would be created
 * @throws NodeOperationError for the first item that would be refused, unless the node's *On Error* lets it out
 */
function dryRun(
	context: IExecuteFunctions,
	{ items, inputOf, warnings }: RunPlan,
): INodeExecutionData[] {
	const node = context.getNode();
	const refused = items.findIndex((item) => item instanceof ItemError);
	const error = items[refused];
	if (error instanceof ItemError && !context.continueOnFail()) {
		throw error.toNodeError(node, inputOf[refused]);
	}
	showWarnings(context, warnings);
	showHints(context, hint(costOf(createsIn(items))));
	const output = items.flatMap((item, slot): INodeExecutionData[] => {
		const pairedItem = { item: inputOf[slot] ?? 0 };
		if (item instanceof ItemError) return [item.toItem(node, pairedItem)];
		return item.kind === 'create' ? [{ json: wouldSend(item), pairedItem }] : [];
	});
	return isTool(context) ? output.map(toolAnswer) : output;
}

function wouldSend(item: CreatePlan): INodeExecutionData['json'] {
	const { estimatedCostUsd } = item;
	return {
		...echo(item),
		...referenceOf(item),
		...(estimatedCostUsd !== undefined && { estimatedCostUsd }),
		dryRun: true,
	};
}

function costOf(creates: readonly CreatePlan[]): string {
	const known = creates.filter(({ estimatedCostUsd }) => estimatedCostUsd !== undefined).length;
	const retries = creates.reduce((most, { retryFailed = 0 }) => Math.max(most, retryFailed), 0);
	return [
		'Nothing was sent.',
		...priceOf(creates, (usd) => `${count(known, 'task')} would cost ${usd} USD.`),
		...(retries > 0
			? [
					`A failed task would be created again up to ${count(retries, 'time')}. Failed tasks are usually free.`,
				]
			: []),
	].join(' ');
}
