import {
	type IDataObject,
	type INode,
	type INodeExecutionData,
	type INodeType,
	type INodeTypes,
	type IWorkflowExecuteAdditionalData,
	NodeConnectionTypes,
	UnexpectedError,
	Workflow,
	type WorkflowExecuteMode,
} from 'n8n-workflow';

import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { MediaGenerationCredits } from '../../nodes/MediaGeneration/MediaGenerationCredits.node';
import { MediaGenerationTrigger } from '../../nodes/MediaGeneration/MediaGenerationTrigger.node';
import { nodeType } from './n8n/nodes';

export interface Credential {
	baseUrl: string;
	apiKey: string;
	service?: string;
	interface?: string;
	models?: IDataObject;
}

/** The service of tests that need no simulated one. */
export const SERVICE = 'https://api.example.com';
export const API_KEY = 'sk-live-key-of-these-tests';
export const CREDENTIAL: Credential = { baseUrl: SERVICE, apiKey: API_KEY };

/** Puts out the items of a test, as any node before ours would. */
const testItems = (items: INodeExecutionData[]): INodeType => ({
	description: {
		displayName: 'Test Items',
		name: 'testItems',
		group: ['trigger'],
		version: 1,
		description: 'The items of a test',
		defaults: { name: 'Items' },
		inputs: [],
		outputs: [NodeConnectionTypes.Main],
		properties: [{ displayName: 'Respond', name: 'responseMode', type: 'string', default: '' }],
	},
	execute: async () => [items],
});

/** Hands out the rounds of a loop, one each time that it is reached, as Loop Over Items does. */
const testRounds = (rounds: INodeExecutionData[][]): INodeType =>
	nodeType(async (context) => {
		const store = context.getContext('node');
		const round = Number(store.round ?? 0);
		store.round = round + 1;
		return [rounds[round] ?? []];
	});

/** The types of the nodes of `buildWorkflow`, by their names. */
export const typesOf = ({
	items = EMPTY,
	rounds = [],
}: TestWorkflow): Record<string, INodeType> => ({
	mediaGeneration: new MediaGeneration(),
	mediaGenerationCredits: new MediaGenerationCredits(),
	mediaGenerationTrigger: new MediaGenerationTrigger(),
	testItems: testItems(items),
	testRounds: testRounds(rounds),
});

function nodeTypes(types: Record<string, INodeType>): INodeTypes {
	const byName = (name: string): INodeType => {
		const type = types[name.replace(/Tool$/, '')];
		if (!type) throw new UnexpectedError(`No node type ${name}`);
		// As n8n makes a tool of a node.
		if (name.endsWith('Tool')) Object.assign(type.description, { name });
		return type;
	};
	return { getByName: byName, getByNameAndVersion: byName, getKnownTypes: () => ({}) };
}

export type TestNode = Partial<Omit<INode, 'parameters'>> & { parameters?: IDataObject };

export interface TestWorkflow {
	/** The node under test; `mediaGeneration` unless it says another type. */
	node?: TestNode;
	/** What comes in: JSON, or whole items where binary data counts. One empty item where left out. */
	items?: INodeExecutionData[];
	/** Parameters of the node before. */
	source?: IDataObject;
	/** In place of `items`: what comes in each time round a loop, in which the node under test stands. */
	rounds?: INodeExecutionData[][];
	/** `CREDENTIAL` where left out. */
	credential?: Credential;
	staticData?: IDataObject;
	/** A trigger that leads into the node under test, beside `Items`. */
	starter?: TestNode & { name: string };
	/** Triggers that stand in the workflow beside the node under test. */
	triggers?: TestNode[];
	settings?: Workflow['settings'];
	/** How the workflow is started; by a trigger where left out. */
	mode?: WorkflowExecuteMode;
	/** What n8n does otherwise than the tests need as a rule. */
	host?: Partial<IWorkflowExecuteAdditionalData>;
}

const EMPTY: INodeExecutionData[] = [{ json: {} }];

/** The node before the tested one. */
export const SOURCE = 'Items';

/** The workflow `Items → node`, the node's second output going nowhere; in a loop `Items ⇄ node`. */
export function buildWorkflow({
	node = {},
	items = EMPTY,
	rounds,
	source: parameters = {},
	staticData,
	starter,
	triggers = [],
	settings,
}: TestWorkflow) {
	const tested: INode = {
		id: 'node-under-test',
		name: 'Media',
		type: 'mediaGeneration',
		typeVersion: 1,
		position: [200, 0],
		credentials: { mediaGenerationApi: { id: 'credential', name: 'Media Generation' } },
		...node,
		parameters: (node.parameters ?? {}) as INode['parameters'],
	};
	const source: INode = {
		id: 'source',
		name: SOURCE,
		type: rounds ? 'testRounds' : 'testItems',
		typeVersion: 1,
		position: [0, 0],
		parameters: parameters as INode['parameters'],
	};
	const beside = triggers.map((trigger, index) => ({ ...trigger, name: `Trigger ${index}` }));
	const others = [...beside, ...(starter ? [starter] : [])].map((trigger, index) => ({
		...tested,
		id: `trigger-${index}`,
		...trigger,
		parameters: {},
	}));
	const to = (node: string) => ({
		main: [[{ node, type: NodeConnectionTypes.Main, index: 0 }]],
	});
	const workflow = new Workflow({
		id: 'workflow',
		name: 'Test',
		nodes: [source, tested, ...others],
		connections: {
			[SOURCE]: to(tested.name),
			...(starter && { [starter.name]: to(tested.name) }),
			...(rounds && { [tested.name]: to(SOURCE) }),
		},
		active: true,
		nodeTypes: nodeTypes(typesOf({ items, rounds })),
		staticData,
		settings: { executionOrder: 'v1', ...settings },
	});
	return { workflow, tested };
}
