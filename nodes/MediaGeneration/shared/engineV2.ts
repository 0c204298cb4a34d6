import type { IExecuteFunctions, IHookFunctions, IWebhookFunctions } from 'n8n-workflow';

/**
 * Whether n8n runs this workflow with its engine v2, which keeps nothing of a node from one run to the next, resumes
 * no execution, and runs a trigger's `webhook` without its `execute`.
 *
 * A running node is not told the settings of its workflow there, so there the id of the execution tells.
 */
export function isEngineV2(
	context: IExecuteFunctions | IHookFunctions | IWebhookFunctions,
): boolean {
	// Some versions of n8n do not tell.
	const settings: { engineType?: unknown } =
		typeof context.getWorkflowSettings === 'function' ? context.getWorkflowSettings() : {};
	if (settings.engineType === 'v2') return true;
	// A UUID; the engine of today counts its executions.
	return 'getExecutionId' in context && String(context.getExecutionId()).includes('-');
}
