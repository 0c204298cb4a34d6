import type { IExecuteFunctions, INode } from 'n8n-workflow';

/** As long as n8n's and most other MCP clients wait for the answer of a tool, less some seconds to answer in. */
const MCP_PATIENCE_SECONDS = 50;

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

/**
 * How long whoever called the node waits for its answer.
 *
 * @param fallback where that is not known, seconds
 * @returns seconds
 */
export function patienceSeconds(context: IExecuteFunctions, fallback: number): number {
	return hangsUp(context) ? MCP_PATIENCE_SECONDS : fallback;
}
