import * as n8nWorkflow from 'n8n-workflow';
import type { FunctionsBase, IDataObject, IExecuteFunctions, INode } from 'n8n-workflow';

/** What every context of n8n holds, although no interface of n8n says so. */
interface N8nInternals {
	workflow?: { nodes?: Record<string, INode> };
	additionalData?: {
		/** n8n's public address with the path of production webhooks. */
		webhookBaseUrl?: unknown;
		/** The mode of the execution that a sub-execution was begun by, at first. */
		rootExecutionMode?: unknown;
		/** When n8n's time limit ends the execution, milliseconds since 1970. */
		executionTimeoutTimestamp?: unknown;
		/** The execution that *Retry execution* repeats here. */
		hooks?: { retryOf?: unknown };
	};
}

/**
 * Whether n8n resumes an execution when its sub-execution has ended, and with the results. n8n 1 resumes it each time that
 * the sub-execution sleeps, and with nothing. The name is part of n8n 2, and not of n8n 1.
 */
export const handsOnResults = 'validateWorkflowHasTriggerLikeNode' in n8nWorkflow;

export const internalsOf = (context: object): N8nInternals => context;

/**
 * What n8n keeps of the node with the execution. n8n's Agents run a tool without an execution: nothing outlives that call.
 */
export const nodeContext = (context: IExecuteFunctions): IDataObject =>
	context.getExecutionId() === undefined ? {} : context.getContext('node');

/** A text as it stands in an expression, which for n8n ends at the first pair of braces. */
export const inExpression = (text: string): string =>
	JSON.stringify(text).replace(/[{}\u2028\u2029]/g, (sign) => {
		return `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;
	});

/** Where n8n serves production webhooks, as its settings say now; undefined where n8n does not tell. */
export function webhookBase(context: object): string | undefined {
	const base = internalsOf(context).additionalData?.webhookBaseUrl;
	return typeof base === 'string' && URL.canParse(base) ? new URL(base).href : undefined;
}

/** The settings of the workflow, as far as n8n tells: some versions do not. */
export const settingsOf = (context: FunctionsBase): Record<string, unknown> =>
	typeof context.getWorkflowSettings === 'function' ? { ...context.getWorkflowSettings() } : {};

/**
 * Whether n8n runs this workflow with its engine v2, which keeps nothing of a node from one run to the next, resumes
 * no execution, and runs a trigger's `webhook` without its `execute`. A running node is not told the settings of its
 * workflow there, so there the id of the execution tells.
 */
export function isEngineV2(context: FunctionsBase): boolean {
	if (settingsOf(context).engineType === 'v2') return true;
	// A UUID; the engine of today counts its executions.
	return 'getExecutionId' in context && String(context.getExecutionId()).includes('-');
}

/** Whether the node runs as a tool of an AI agent or of an MCP server. */
export function isTool(context: IExecuteFunctions): boolean {
	// Some versions of n8n lack it. Agents from version 3 on run the tool as a node, which only its type tells.
	const isSupplied = typeof context.isToolExecution === 'function' && context.isToolExecution();
	return isSupplied || context.getNode().type.endsWith('Tool');
}

/** Whether whoever called the node hangs up after a while: who orders again then pays twice. */
export function hangsUp(context: IExecuteFunctions): boolean {
	// Who called a tool is not among what n8n documents; where it cannot be told, nobody hangs up.
	const { parentNode } = context as { parentNode?: INode };
	return /\.mcpTrigger$/.test(parentNode?.type ?? '');
}
