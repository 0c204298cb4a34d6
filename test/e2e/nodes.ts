import type { IConnections, IDataObject, INode, INodeParameters } from 'n8n-workflow';

/** What the workflows of the tests are made of, beside the nodes of this package. */

export function node(type: string, name: string, parameters: IDataObject, typeVersion = 1): INode {
	return {
		id: crypto.randomUUID(),
		name,
		type,
		typeVersion,
		position: [0, 0],
		parameters: parameters as INodeParameters,
	};
}

export const manualTrigger = () => node('n8n-nodes-base.manualTrigger', 'Start', {});

/** A node that runs code, once for all items unless `more` says otherwise. */
export const codeNode = (name: string, jsCode: string, more: IDataObject = {}) =>
	node('n8n-nodes-base.code', name, { jsCode, ...more }, 2);

/** A node that puts out one item for each given object. */
export const itemsNode = (name: string, items: IDataObject[]) =>
	codeNode(name, `return ${JSON.stringify(items.map((json) => ({ json })))};`);

/**
 * A node that puts out an item for each task that a node behind it is to create.
 *
 * @param name begins the prompts, and so tells the tasks of one run from those of others
 * @param switches of the simulated service, for one task each
 * @param fields further fields of the items
 */
export const prompts = (name: string, switches: object[], fields: IDataObject[] = []) =>
	itemsNode(
		'Prompts',
		switches.map((simulate, index) => ({ prompt: `${name} ${index}`, simulate, ...fields[index] })),
	);

/** Adds to each item, as `linked`, the prompt of the item that it is linked to. */
export function linked(): INode {
	const value = "={{ $('Prompts').item.json.prompt }}";
	const assignments = [{ id: '1', name: 'linked', type: 'string', value }];
	const parameters = { assignments: { assignments }, includeOtherFields: true, options: {} };
	return node('n8n-nodes-base.set', 'Linked', parameters, 3.4);
}

/** A webhook that starts a workflow, at `/webhook/<webhookId>`. */
export function webhook(name: string, parameters: IDataObject = {}): INode {
	const path = crypto.randomUUID();
	const all = { httpMethod: 'POST', path, options: {}, ...parameters };
	return { ...node('n8n-nodes-base.webhook', name, all, 2), webhookId: path };
}

/** Calls a sub-workflow. */
export function call(workflowId: string, parameters: IDataObject = {}): INode {
	const value = { __rl: true, mode: 'id', value: workflowId };
	const all = { workflowId: value, options: {}, ...parameters };
	return node('n8n-nodes-base.executeWorkflow', 'Call', all, 1.2);
}

/** Where a sub-workflow begins. */
export const called = () =>
	node('n8n-nodes-base.executeWorkflowTrigger', 'Called', { inputSource: 'passthrough' }, 1.1);

/** Nodes with their connections. */
export interface Wired {
	nodes: INode[];
	connections: IConnections;
}

/** The first output of a node leads to each of these. */
export const to = (...names: string[]) => [
	names.map((name) => ({ node: name, type: 'main' as const, index: 0 })),
];

/** Connects nodes in a row: the first output of each to the one after it. */
export function inARow(...nodes: INode[]): Wired {
	const connections: IConnections = {};
	for (const [index, { name }] of nodes.slice(1).entries()) {
		connections[nodes[index]?.name ?? ''] = { main: to(name) };
	}
	return { nodes, connections };
}

/** Several rows in one workflow, of which each starts by itself. */
export function lanes(...rows: INode[][]): Wired {
	const wired = rows.map((row) => inARow(...row));
	return {
		nodes: rows.flat(),
		connections: Object.assign({}, ...wired.map(({ connections }) => connections)) as IConnections,
	};
}

/** A loop, started by hand, that hands the items to a node one after the other. */
export function inALoop(items: INode, body: INode): Wired {
	const loop = node('n8n-nodes-base.splitInBatches', 'Loop', { options: {} }, 3);
	const { nodes, connections } = inARow(manualTrigger(), items, loop);
	connections.Loop = { main: [[], ...to(body.name)] };
	connections[body.name] = { main: to('Loop') };
	return { nodes: [...nodes, body], connections };
}

/** Delivers a callback: the body as JSON, or a text as it is. */
export async function deliver(
	address: string,
	body: unknown,
	init: RequestInit = {},
): Promise<Response> {
	return await fetch(address, {
		method: 'POST',
		headers: { 'content-type': 'application/json' },
		body: typeof body === 'string' ? body : JSON.stringify(body),
		...init,
	});
}
