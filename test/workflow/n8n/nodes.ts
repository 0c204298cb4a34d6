import {
	type IConnections,
	type IExecuteFunctions,
	type INode,
	type INodeExecutionData,
	type INodeType,
	NodeConnectionTypes,
} from 'n8n-workflow';

const { Main } = NodeConnectionTypes;

/** A node type that is nothing but its `execute`. */
export const nodeType = (
	execute: (context: IExecuteFunctions) => Promise<INodeExecutionData[][]>,
	inputs = 1,
	outputs = 1,
): INodeType => ({
	description: {
		displayName: 'Trial',
		name: 'trial',
		group: ['transform'],
		version: 1,
		description: 'A node of the tests',
		defaults: { name: 'Trial' },
		inputs: Array.from({ length: inputs }, () => Main),
		outputs: Array.from({ length: outputs }, () => Main),
		properties: [],
	},
	async execute() {
		return await execute(this);
	},
});

/** A node whose type has the same name. */
export const nodeOf = (type: string, more: Partial<INode> = {}): INode => ({
	...{ id: type, name: type, type, typeVersion: 1, position: [0, 0], parameters: {} },
	...more,
});

/** Connects nodes: `A > B` from the first output to the first input, `A:1 > B:1` from the second to the second. */
export function connect(...links: string[]): IConnections {
	const connections: IConnections = {};
	for (const link of links) {
		const [from, to] = link.split(' > ').map((end) => end.split(':'));
		const [source = '', output = '0'] = from ?? [];
		const [node = '', input = '0'] = to ?? [];
		const main = ((connections[source] ??= { main: [] }).main ??= []);
		for (let index = 0; index <= Number(output); index++) main[index] ??= [];
		main[Number(output)]?.push({ node, type: Main, index: Number(input) });
	}
	return connections;
}

/**
 * A workflow that calls the user's workflow, and waits for its end.
 *
 * @param start the node that the user's workflow begins at
 * @param type of its node, by which n8n tells who waits
 */
export const callerOf = (start: string, type = 'calls') => ({
	nodes: [nodeOf(type, { name: 'Call', parameters: { start } })],
	connections: {},
});

/** The node type of `callerOf`, which does what *Execute Workflow* does. */
export const calls = nodeType(async (context) => {
	const parentExecution = {
		executionId: context.getExecutionId(),
		workflowId: 'caller',
		shouldResume: true,
	};
	const id = context.getNodeParameter('start', 0) as string;
	const items = context.getInputData();
	const { data } = await context.executeWorkflow({ id }, items, undefined, { parentExecution });
	return data.map((output) => output ?? []);
});
