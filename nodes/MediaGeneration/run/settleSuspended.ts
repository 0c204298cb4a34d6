import type { IExecuteFunctions } from 'n8n-workflow';

import type { IfSomeFail } from '../report/failures';
import type { ItemResult } from '../report/outcome';
import { attempt } from '../shared/attempt';
import { suspendWith } from '../wait/subExecution';
import type { SuspendedRun } from '../wait/suspendedRun';

/**
 * Decides what becomes of a run whose tasks this node does not poll: it is suspended where one is not finished. A node
 * that stops cannot be suspended, so then they are waited for.
 *
 * @param results takes the result of each item
 * @param run.isStopping whether the node stops with an error
 * @param run.watchIntervalMs milliseconds between two looks; 0 lets it grow with the time waited
 * @param run.ifSomeFail what becomes of the run where some of its items fail
 * @returns whether the execution is suspended
 * @throws Stopped where the execution was stopped
 */
export async function settleSuspended(
	context: IExecuteFunctions,
	suspended: SuspendedRun,
	results: Array<ItemResult | undefined>,
	run: { isStopping: boolean; watchIntervalMs: number; ifSomeFail: IfSomeFail },
): Promise<boolean> {
	if (suspended.isEmpty) return false;
	if (run.isStopping) {
		await suspended.waitHere(results);
		return false;
	}
	if (!(await suspended.isUnfinished())) {
		await suspended.finish(results);
		return false;
	}
	const state = suspended.state(context, results, run.watchIntervalMs, run.ifSomeFail);
	const begun = await attempt(async () => await suspendWith(context, state));
	if ('value' in begun && begun.value) {
		suspended.pendingResults(results);
		return true;
	}
	const why = 'error' in begun && begun.error instanceof Error ? begun.error.message : '';
	context.logger.warn(
		`${context.getNode().name}: n8n did not suspend this execution, so it waits by polling. ${why}`,
	);
	await suspended.waitHere(results);
	return false;
}
