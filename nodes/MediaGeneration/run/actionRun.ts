import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import { Journal } from '../create/journal';
import { planRun, type RunPlan } from '../plan/planRun';
import { CreatedTaskList } from '../report/createdTaskList';
import { describeStop } from '../report/failures';
import { withInputs } from '../report/includedInput';
import { type Connection, connect } from '../service/connect';
import { type Clock, systemClock } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { dryRun } from './dryRun';
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
