import type { IConnections, IDataObject, INode, INodeParameters } from 'n8n-workflow';

import { Semaphore } from '../../nodes/MediaGeneration/shared/clock';

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

const set = (name: string, parameters: IDataObject) =>
	node('n8n-nodes-base.set', name, { options: {}, ...parameters }, 3.4);

export const manualTrigger = () => node('n8n-nodes-base.manualTrigger', 'Start', {});

/** Two nodes, of which the second puts out one item for each given object; a Code node would need a process of its own. */
export const itemNodes = (name: string, list: IDataObject[]) => [
	set(`List of ${name}`, { mode: 'raw', jsonOutput: JSON.stringify({ list }) }),
	node('n8n-nodes-base.splitOut', name, { fieldToSplitOut: 'list', options: {} }),
];

/**
 * Nodes that put out, as `Prompts`, an item for each task that a node behind them is to create.
 *
 * @param name begins the prompts, and so tells the tasks of one run from those of others
 * @param switches of the simulated service, for one task each
 * @param fields further fields of the items
 */
export const prompts = (name: string, switches: object[], fields: IDataObject[] = []) =>
	itemNodes(
		'Prompts',
		switches.map((simulate, index) => ({ prompt: `${name} ${index}`, simulate, ...fields[index] })),
	);

/** Adds to each item, as `linked`, the prompt of the item that it is linked to. */
export function linked(): INode {
	const value = "={{ $('Prompts').item.json.prompt }}";
	const assignments = [{ id: '1', name: 'linked', type: 'string', value }];
	return set('Linked', { assignments: { assignments }, includeOtherFields: true });
}

/** A webhook that starts a workflow, at `/webhook/<webhookId>`. */
export function webhook(name: string, parameters: IDataObject = {}): INode {
	const path = crypto.randomUUID();
	const all = { httpMethod: 'POST', path, options: {}, ...parameters };
	return { ...node('n8n-nodes-base.webhook', name, all, 2), webhookId: path };
}

export function call(workflowId: string, parameters: IDataObject = {}): INode {
	const value = { __rl: true, mode: 'id', value: workflowId };
	const all = { workflowId: value, options: {}, ...parameters };
	return node('n8n-nodes-base.executeWorkflow', 'Call', all, 1.2);
}

/** Where a sub-workflow begins. */
export const called = () =>
	node('n8n-nodes-base.executeWorkflowTrigger', 'Called', { inputSource: 'passthrough' }, 1.1);

/** Nodes in a row, of which some are given together. */
export type Steps = Array<INode | INode[]>;

export interface Wired {
	nodes: INode[];
	connections: IConnections;
}

/** The first output of a node leads to each of these. */
export const to = (...names: string[]) => [
	names.map((name) => ({ node: name, type: 'main' as const, index: 0 })),
];

/** Connects nodes in a row: the first output of each to the one after it. */
export function inARow(...row: Steps): Wired {
	const nodes = row.flat();
	const connections: IConnections = {};
	for (const [index, { name }] of nodes.slice(1).entries()) {
		connections[nodes[index]?.name ?? ''] = { main: to(name) };
	}
	return { nodes, connections };
}

/** Several rows in one workflow, of which each starts by itself. */
export function lanes(...rows: Steps[]): Wired {
	const wired = rows.map((row) => inARow(...row));
	return {
		nodes: wired.flatMap(({ nodes }) => nodes),
		connections: Object.assign({}, ...wired.map(({ connections }) => connections)) as IConnections,
	};
}

/** A loop that hands the items to a node one after the other. */
export function inALoop(items: INode[], body: INode, start = manualTrigger()): Wired {
	const loop = node('n8n-nodes-base.splitInBatches', 'Loop', { options: {} }, 3);
	const { nodes, connections } = inARow(start, items, loop);
	connections.Loop = { main: [[], ...to(body.name)] };
	connections[body.name] = { main: to('Loop') };
	return { nodes: [...nodes, body], connections };
}

/** Of a callback that is sent on a connection of its own: n8n may be closing an idle one just when the next goes out on it. */
export const ONE_REQUEST = { headers: { 'content-type': 'application/json', connection: 'close' } };

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

/**
 * How many tasks a sender delivers at once. A process of n8n has two connections to PostgreSQL: on a busy machine 40
 * callbacks at once wait for them for so long that the sender gives up each attempt.
 */
const SENDERS = 8;

/** Has the senders deliver tasks in order. */
export async function bySenders(
	taskIds: readonly string[],
	deliver: (taskId: string) => Promise<unknown>,
): Promise<void> {
	const senders = new Semaphore(SENDERS);
	await Promise.all(taskIds.map((taskId) => senders.run(async () => await deliver(taskId))));
}
