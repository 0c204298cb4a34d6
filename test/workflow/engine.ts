import {
	ExecuteContext,
	HookContext,
	SupplyDataContext,
	WebhookContext,
	WorkflowExecute,
} from 'n8n-core';
import {
	type IDataObject,
	type IExecuteData,
	type IExecuteFunctions,
	type INode,
	type INodeExecutionData,
	type INodeType,
	type INodeTypes,
	type IWebhookData,
	type WorkflowActivateMode,
	type IRun,
	type IRunExecutionData,
	type ITaskData,
	type IWorkflowExecuteAdditionalData,
	type WorkflowExecuteMode,
	createRunExecutionData,
	NodeConnectionTypes,
	NodeHelpers,
	UnexpectedError,
	Workflow,
} from 'n8n-workflow';
import { MediaGenerationApi } from '../../credentials/MediaGenerationApi.credentials';
import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import { MediaGenerationCredits } from '../../nodes/MediaGeneration/MediaGenerationCredits.node';
import { MediaGenerationTrigger } from '../../nodes/MediaGeneration/MediaGenerationTrigger.node';
import { credentialsHelper } from './credentials';
import { hostData } from './host';

export const API_KEY = 'sk-live-key-of-these-tests';

export interface Credential {
	baseUrl: string;
	apiKey: string;
}

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
const testRounds = (rounds: INodeExecutionData[][]): INodeType => ({
	description: {
		...testItems([]).description,
		displayName: 'Test Rounds',
		name: 'testRounds',
		inputs: [NodeConnectionTypes.Main],
	},
	async execute() {
		const store = this.getContext('node');
		const round = Number(store.round ?? 0);
		store.round = round + 1;
		return [rounds[round] ?? []];
	},
});

function nodeTypes(items: INodeExecutionData[], rounds: INodeExecutionData[][]): INodeTypes {
	const types: Record<string, INodeType> = {
		mediaGeneration: new MediaGeneration(),
		mediaGenerationCredits: new MediaGenerationCredits(),
		mediaGenerationTrigger: new MediaGenerationTrigger(),
		testItems: testItems(items),
		testRounds: testRounds(rounds),
	};
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
	node: TestNode;
	/** What comes in: JSON, or whole items where binary data counts. One empty item where left out. */
	items?: INodeExecutionData[];
	/** Parameters of the node before. */
	source?: IDataObject;
	/** In place of `items`: what comes in each time round a loop, in which the node under test stands. */
	rounds?: INodeExecutionData[][];
	credential: Credential;
	staticData?: IDataObject;
	settings?: Workflow['settings'];
}

const SOURCE = 'Items';

/** The workflow `Items → node`, the node's second output going nowhere; in a loop `Items ⇄ node`. */
export function buildWorkflow({
	node,
	items = [{ json: {} }],
	rounds,
	source: parameters = {},
	staticData,
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
	const types = nodeTypes(items, rounds ?? []);
	const to = (node: string) => ({
		main: [[{ node, type: NodeConnectionTypes.Main, index: 0 }]],
	});
	const { properties, ...description } = types.getByNameAndVersion(tested.type).description;
	// n8n saves what differs from the defaults, and runs with the defaults filled in.
	tested.parameters =
		NodeHelpers.getNodeParameters(properties, tested.parameters, true, false, tested, {
			...description,
			properties,
		}) ?? {};
	const workflow = new Workflow({
		id: 'workflow',
		name: 'Test',
		nodes: [source, tested],
		connections: { [SOURCE]: to(tested.name), ...(rounds && { [tested.name]: to(SOURCE) }) },
		active: true,
		nodeTypes: types,
		staticData,
		settings: { executionOrder: 'v1', ...settings },
	});
	return { workflow, tested };
}

export function additionalData(
	credential: Credential,
	mode: WorkflowExecuteMode = 'trigger',
): IWorkflowExecuteAdditionalData {
	return {
		...hostData('1', mode),
		credentialsHelper: credentialsHelper(new MediaGenerationApi(), async () => ({ ...credential })),
		// Each sub-execution is suspended at once, and stays so.
		executeWorkflow: async () => ({ executionId: '2', data: [null], waitTill: new Date() }),
	};
}

/** What one run of the node under test came to. */
export interface Ran {
	run: IRun;
	/** Items of the first output. */
	output: INodeExecutionData[];
	/** Items of the error output. */
	errors: INodeExecutionData[];
	/** The error that stopped the node. */
	error: ITaskData['error'] | undefined;
}

/** What n8n hands to `workflowExecuteAfter` at the end of an execution, as the tests look at it. */
function ending(data: IWorkflowExecuteAdditionalData, tested: INode): Promise<Ran> {
	const finished = new Promise<IRun>((resolve) => {
		data.hooks?.addHandler('workflowExecuteAfter', (run) => resolve(run));
	});
	return finished.then((run) => {
		const [task] = run.data.resultData.runData[tested.name] ?? [];
		const [output, errors] = task?.data?.main ?? [];
		const error = task?.error ?? run.data.resultData.error;
		return { run, output: output ?? [], errors: errors ?? [], error };
	});
}

/**
 * Starts the workflow on n8n's own engine. `execution.cancel()` is the stop button.
 *
 * @param more what n8n does otherwise than the tests need as a rule
 */
export function startWorkflow(
	test: TestWorkflow,
	mode: WorkflowExecuteMode = 'trigger',
	more: Partial<IWorkflowExecuteAdditionalData> = {},
) {
	const { workflow, tested } = buildWorkflow(test);
	const data = { ...additionalData(test.credential, mode), ...more };
	const result = ending(data, tested);
	const startNode = workflow.getNode(SOURCE) ?? undefined;
	const execution = new WorkflowExecute(data, mode).run({ workflow, startNode });
	execution.catch(() => undefined);
	return { execution, result };
}

/**
 * *Retry execution* of n8n's list of executions: a new execution that begins at the node that failed, with all that
 * was stored of the first one.
 */
export async function retryExecution(test: TestWorkflow, { run }: Ran): Promise<Ran> {
	const { workflow, tested } = buildWorkflow(test);
	const data = { ...additionalData(test.credential, 'retry'), executionId: '2' };
	const result = ending(data, tested);
	const stored = JSON.parse(JSON.stringify(run.data)) as IRunExecutionData;
	delete stored.resultData.error;
	const runs = stored.resultData.runData[tested.name];
	if (runs?.at(-1)?.error !== undefined) runs.pop();
	for (const entry of stored.executionData?.nodeExecutionStack ?? []) {
		entry.node = workflow.getNode(entry.node.name) ?? entry.node;
	}
	const execution = new WorkflowExecute(data, 'retry', stored).processRunExecutionData(workflow);
	execution.catch(() => undefined);
	return await result;
}

/** Executions that a trigger has started. */
let triggered = 0;

/** Starts the workflow at its trigger with what `webhook()` returned, as n8n does after it has stored the execution. */
export async function startTrigger(
	test: TestWorkflow,
	items: INodeExecutionData[],
	mode: WorkflowExecuteMode = 'webhook',
): Promise<Ran> {
	const { workflow, tested } = buildWorkflow(test);
	const data = { ...additionalData(test.credential, mode), executionId: `t${++triggered}` };
	const result = ending(data, tested);
	const runExecutionData = createRunExecutionData({
		executionData: {
			nodeExecutionStack: [{ node: tested, data: { main: [items] }, source: null }],
		},
	});
	const execution = new WorkflowExecute(data, mode, runExecutionData);
	execution.processRunExecutionData(workflow).catch(() => undefined);
	return await result;
}

/** A context as n8n makes it for one run of the node under test, for tests of what works on a context. */
export function executeContext(test: TestWorkflow, abortSignal?: AbortSignal) {
	const { workflow, tested } = buildWorkflow(test);
	const items = test.items ?? [{ json: {} }];
	const input = { main: [items] };
	const executeData: IExecuteData = { data: input, node: tested, source: null };
	return new ExecuteContext(
		workflow,
		tested,
		additionalData(test.credential),
		'trigger',
		createRunExecutionData(),
		0,
		items,
		input,
		executeData,
		[],
		abortSignal,
	);
}

/** A context as n8n makes it for a tool that an agent (before version 3) or an MCP server calls. */
export function toolContext(test: TestWorkflow, callerType: string) {
	const { workflow, tested } = buildWorkflow(test);
	const executeData: IExecuteData = { data: {}, node: tested, source: null };
	const caller = { ...tested, name: 'Caller', type: callerType };
	const context = new SupplyDataContext(
		workflow,
		tested,
		additionalData(test.credential),
		'trigger',
		createRunExecutionData(),
		0,
		[{ json: {} }],
		{},
		NodeConnectionTypes.AiTool,
		executeData,
		[],
		undefined,
		caller,
	);
	context.addInputData(NodeConnectionTypes.AiTool, [test.items ?? [{ json: {} }]]);
	return context as unknown as IExecuteFunctions;
}

/** The trigger as it stands in the tests' workflow. */
export const TRIGGER: TestNode = {
	type: 'mediaGenerationTrigger',
	name: 'Trigger',
	webhookId: '3f1c2a',
};

/** The path of the trigger's production URL. */
export const TRIGGER_PATH = '/webhook/3f1c2a/callback';

function webhookData(tested: INode, data: IWorkflowExecuteAdditionalData): IWebhookData {
	const [webhookDescription] = new MediaGenerationTrigger().description.webhooks ?? [];
	if (!webhookDescription) throw new UnexpectedError('The trigger has no webhook');
	return {
		httpMethod: 'POST',
		node: tested.name,
		path: TRIGGER_PATH,
		webhookDescription,
		workflowId: 'workflow',
		workflowExecuteAdditionalData: data,
	};
}

/** Express's request and response, as n8n hands them to a webhook. */
export type Express = Required<
	Pick<IWorkflowExecuteAdditionalData, 'httpRequest' | 'httpResponse'>
>;

/** A context as n8n makes it for a call of the trigger's webhook. */
export function webhookContext(
	test: TestWorkflow,
	express: Express,
	mode: WorkflowExecuteMode = 'webhook',
) {
	const { workflow, tested } = buildWorkflow(test);
	const data = { ...additionalData(test.credential, mode), ...express };
	return new WebhookContext(workflow, tested, data, mode, webhookData(tested, data), [], null);
}

/** A context as n8n makes it to activate and deactivate the trigger. */
export function hookContext(test: TestWorkflow, activation: WorkflowActivateMode = 'activate') {
	const { workflow, tested } = buildWorkflow(test);
	const data = additionalData(test.credential);
	const hook = new HookContext(
		workflow,
		tested,
		data,
		'trigger',
		activation,
		webhookData(tested, data),
	);
	return { hook, workflow };
}
