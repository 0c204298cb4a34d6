import { ExecuteContext, SupplyDataContext, WorkflowExecute } from 'n8n-core';
import {
	type IExecuteData,
	type IExecuteFunctions,
	type INode,
	type INodeExecutionData,
	type IRun,
	type IRunExecutionData,
	type IWorkflowExecuteAdditionalData,
	type Workflow,
	type WorkflowActivateMode,
	type WorkflowExecuteMode,
	createEmptyRunExecutionData,
	createRunExecutionData,
	NodeConnectionTypes,
} from 'n8n-workflow';

import { MediaGenerationApi } from '../../credentials/MediaGenerationApi.credentials';
import { forgetStates } from '../../nodes/MediaGeneration/n8n/newestState';
import { contextOfHook, contextOfWebhook } from './contexts';
import { credentialsHelper } from './credentials';
import type { Express } from './express';
import { hostData } from './host';
import { beginning } from './stored';
import {
	buildWorkflow,
	type Credential,
	CREDENTIAL,
	SOURCE,
	type TestNode,
	type TestWorkflow,
} from './testWorkflow';

export { TRIGGER_PATH } from './contexts';
export * from './testWorkflow';

/** What n8n tells its engine of an execution of the tests' workflow. */
export function additionalData(
	credential: Credential = CREDENTIAL,
	mode: WorkflowExecuteMode = 'trigger',
): IWorkflowExecuteAdditionalData {
	return {
		...hostData('1', mode),
		credentialsHelper: credentialsHelper(new MediaGenerationApi(), async () => ({ ...credential })),
		// Each sub-execution is suspended at once, and stays so.
		executeWorkflow: async () => ({ executionId: '2', data: [null], waitTill: new Date() }),
	};
}

/**
 * Runs a workflow on n8n's own engine.
 *
 * @param stored what is stored of the execution; it begins at the node before the tested one where left out
 * @returns `execution.cancel()` is the stop button; `handed` is what each sub-execution was given, as n8n stores it
 */
function launch(
	workflow: Workflow,
	mode: WorkflowExecuteMode,
	data: IWorkflowExecuteAdditionalData,
	stored?: IRunExecutionData,
) {
	const { executeWorkflow } = data;
	const handed: INodeExecutionData[][] = [];
	data.executeWorkflow = async (...given) => {
		handed.push(JSON.parse(JSON.stringify(given[2].inputData ?? [])) as INodeExecutionData[]);
		return await executeWorkflow(...given);
	};
	const finished = new Promise<IRun>((resolve) => {
		data.hooks?.addHandler('workflowExecuteAfter', (run) => resolve(run));
	});
	const startNode = workflow.getNode(SOURCE) ?? undefined;
	const execution = stored
		? new WorkflowExecute(data, mode, stored).processRunExecutionData(workflow)
		: new WorkflowExecute(data, mode).run({ workflow, startNode });
	execution.catch(() => undefined);
	return { execution, finished, handed };
}

/**
 * Starts an execution of the tests' workflow. `execution.cancel()` is the stop button.
 *
 * @param stored what is stored of the execution; it begins at the node before the tested one where left out
 */
export function startWorkflow(
	test: TestWorkflow,
	stored?: (tested: INode, workflow: Workflow) => IRunExecutionData,
) {
	const { mode = 'trigger', host, credential } = test;
	// The ids of executions are the same in all tests.
	forgetStates();
	const { workflow, tested } = buildWorkflow(test);
	const data = { ...additionalData(credential, mode), ...host };
	const { execution, finished, handed } = launch(workflow, mode, data, stored?.(tested, workflow));
	const result = finished.then((run) => ranOf(run, tested.name, handed));
	return { execution, result };
}

/** @param name the node under test @param handed what each sub-execution was given, as n8n stores it */
export function ranOf(run: IRun, name: string, handed: INodeExecutionData[][] = []) {
	const runs = run.data.resultData.runData[name] ?? [];
	const [task] = runs;
	const [output = [], errors = []] = task?.data?.main ?? [];
	const error = task?.error ?? run.data.resultData.error;
	return {
		run,
		/** Items of the first output. */
		output: output ?? [],
		/** Items of the error output. */
		errors: errors ?? [],
		/** The error that stopped the node. */
		error,
		/** The description of that error, where n8n shows what to do next. */
		description: String((error && 'description' in error && error.description) ?? ''),
		/** What n8n shows above the output of the node. */
		hints: runs.flatMap(({ hints = [] }) => hints.map(({ message }) => message)),
		/** What each sub-execution was given, as n8n stores it. */
		handed,
	};
}

/** What one run of the node under test came to. */
export type Ran = ReturnType<typeof ranOf>;

/** Executions that a trigger has started. */
let triggered = 0;

/** Starts the workflow at its trigger with what `webhook()` returned, as n8n does after it has stored the execution. */
export async function startTrigger(test: TestWorkflow, items: INodeExecutionData[]): Promise<Ran> {
	const host = { executionId: `t${++triggered}`, ...test.host };
	return await startWorkflow({ mode: 'webhook', ...test, host }, (node) =>
		beginning({ node, data: { main: [items] }, source: null }),
	).result;
}

/**
 * A context as n8n makes it for one run of the node under test, for tests of what works on a context.
 *
 * @param run what n8n has of the execution
 */
export function executeContext(
	test: TestWorkflow = {},
	abortSignal?: AbortSignal,
	data = additionalData(test.credential),
	run = createRunExecutionData(),
): ExecuteContext {
	const { items = [{ json: {} }], mode = 'trigger' } = test;
	const { workflow, tested } = buildWorkflow(test);
	const input = { main: [items] };
	const executeData: IExecuteData = { data: input, node: tested, source: null };
	const given = [workflow, tested, data, mode, run, 0, items, input, executeData] as const;
	return new ExecuteContext(...given, [], abortSignal);
}

/** A context as n8n's Agents make it for a node that is their tool: there is no execution, and no saved workflow. */
export function agentsContext(test: TestWorkflow): IExecuteFunctions {
	const { executionId: _, ...data } = additionalData(test.credential);
	const inAgents = { ...test, mode: 'internal' } as const;
	const context = executeContext(inAgents, undefined, data, createEmptyRunExecutionData());
	Object.assign(context.workflow, { id: undefined });
	return context;
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

/** A context as n8n makes it for a call of the trigger's webhook. */
export function webhookContext(
	test: TestWorkflow,
	express: Express,
	mode: WorkflowExecuteMode = 'webhook',
) {
	const { workflow, tested } = buildWorkflow(test);
	const data = { ...additionalData(test.credential, mode), ...express };
	return contextOfWebhook(workflow, tested.name, data, mode);
}

/** A context as n8n makes it to activate and deactivate the trigger. */
export function hookContext(test: TestWorkflow, activation: WorkflowActivateMode = 'activate') {
	const { workflow, tested } = buildWorkflow(test);
	const data = additionalData(test.credential);
	const hook = contextOfHook(workflow, tested.name, data, activation);
	return { hook, workflow };
}
