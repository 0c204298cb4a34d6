import { randomUUID } from 'node:crypto';

import {
	type IDataObject,
	type INodeExecutionData,
	type IWorkflowExecuteAdditionalData,
	createRunExecutionData,
	UnexpectedError,
	Workflow,
} from 'n8n-workflow';

import { MediaGeneration } from '../../nodes/MediaGeneration/MediaGeneration.node';
import {
	type CheckState,
	readCheck,
	readDone,
} from '../../nodes/MediaGeneration/suspend/checkState';
import {
	CHECK,
	checkWorkflow,
	nodeName,
	START,
	SUPERVISE,
} from '../../nodes/MediaGeneration/suspend/checkWorkflow';
import { handleResumeWebhook } from '../../nodes/MediaGeneration/suspend/resumeWebhook';
import { PARENT } from '../unit/suspend/checks';
import { contextOfWebhook } from './contexts';
import {
	additionalData,
	buildWorkflow,
	type Credential,
	CREDENTIAL,
	executeContext,
	launch,
} from './engine';
import { expressOf, FakeResponse } from './express';

/** More turns than a sub-execution takes between two pauses. */
const MOST_TURNS = 12;

/** One of the two sub-executions of a suspended run, as n8n has it. */
export interface SubExecution {
	/** What its node keeps in its context. */
	kept?: IDataObject;
	/** What it began with. */
	begin?: INodeExecutionData[];
	/** What n8n has stored of other executions. */
	stored?: Record<string, unknown>;
	credential?: Credential;
	/** What n8n does otherwise. */
	host?: Partial<IWorkflowExecuteAdditionalData>;
	/** Called just before it runs. */
	onStart?: () => void;
}

/**
 * Runs a sub-execution of a suspended run on n8n's own engine.
 *
 * @param operation of the node that runs next
 * @param items what this node gets
 * @param isLoop whether its nodes lead back to themselves, as they do; otherwise one node runs, and once
 */
export async function runSub(
	operation: string,
	items: INodeExecutionData[],
	{ kept = {}, begin = [], stored = {}, credential, host, onStart }: SubExecution = {},
	isLoop = true,
) {
	const role = operation === CHECK ? CHECK : SUPERVISE;
	const { connections, ...made } = checkWorkflow(executeContext(), role, undefined);
	// Its first node and its note never run here.
	const type = () => new MediaGeneration();
	const workflow = new Workflow({
		...made,
		connections: isLoop ? connections : {},
		nodeTypes: { getByName: type, getByNameAndVersion: type, getKnownTypes: () => ({}) },
		staticData: {},
	});
	const node = workflow.getNode(nodeName(operation));
	if (!node) throw new UnexpectedError(`No node ${operation}`);
	const contextName = `node:${node.name}`;
	const data = {
		...additionalData(credential, 'integrated'),
		getRunExecutionData: async (id: string) => await Promise.resolve(stored[id] as never),
		// Of a run that has the id 1, and a supervisor that has 2.
		executeWorkflow: async () => ({ executionId: '3', data: [null], waitTill: new Date() }),
		...host,
	};
	onStart?.();
	const { execution, finished, handed } = launch(
		workflow,
		'integrated',
		data,
		createRunExecutionData({
			resultData: { runData: { [START]: [{ data: { main: [begin] } } as never] } },
			executionData: {
				contextData: { [contextName]: kept },
				nodeExecutionStack: [{ node, data: { main: [items] }, source: null }],
			},
		}),
	);
	const turns: Array<string | undefined> = [];
	data.hooks?.addHandler('nodeExecuteBefore', (name) => {
		turns.push(made.nodes.find((each) => each.name === name)?.id);
		if (turns.length > MOST_TURNS) execution.cancel();
	});
	const run = await finished;
	if (turns.length > MOST_TURNS) throw new Error('The sub-execution goes round and round');
	const { error, runData } = run.data.resultData;
	const put = runData[node.name]?.at(-1)?.data?.main?.[0] ?? undefined;
	const { results, failure } = readDone(put ?? []) ?? {};
	return {
		turns,
		error,
		/** Until when it waits. */
		until: run.waitTill ?? undefined,
		/** What its node has put out, and of that the results. */
		put,
		output: results ?? put,
		failure,
		kept: run.data.executionData?.contextData?.[contextName] ?? {},
		handed,
		/** What the sub-executions that it has started begin with. */
		begun: handed.map((given) => readCheck(given) as CheckState),
	};
}

/**
 * One turn of the node in a sub-execution.
 *
 * @throws what the node throws
 */
export async function turnOf(...[operation, items, sub]: Parameters<typeof runSub>) {
	const ran = await runSub(operation, items, sub, false);
	if (ran.error) throw Object.assign(new Error(ran.error.message), ran.error);
	return ran;
}

/** The check of a suspended run that comes next, with what the run has handed to its sub-execution. */
export async function nextCheck(handed: INodeExecutionData[], credential: Credential) {
	const kept = { state: { ...readCheck(handed), supervisorId: '8' } as never, runs: 2 };
	return await turnOf('check', handed, { kept, stored: { 1: PARENT }, credential });
}

/** Delivers a callback to a suspended execution as n8n hands it on. */
export function callBack(
	path: string,
	query: Record<string, unknown>,
	taskId: string,
	{ operation = 'generate', kept = {} as IDataObject, executionId = '1' } = {},
) {
	const node = { parameters: { operation } };
	const { workflow, tested } = buildWorkflow({ node });
	// The process remembers the callbacks of a node.
	Object.assign(tested, { id: randomUUID(), parameters: { operation } });
	const response = new FakeResponse();
	const express = expressOf({ path, query, body: { taskId }, headers: {} }, response);
	Object.assign(express.httpRequest, {
		socket: { localAddress: '::ffff:127.0.0.1', localPort: 5678 },
	});
	const data = { ...additionalData(CREDENTIAL, 'webhook'), executionId, ...express };
	const run = createRunExecutionData({
		executionData: {
			contextData: { [`node:${tested.name}`]: kept },
			nodeExecutionStack: [{ node: tested, data: { main: [[{ json: {} }]] }, source: null }],
		},
	});
	const context = contextOfWebhook(workflow, tested.name, path, data, 'webhook', run);
	return { context, response, admit: async () => await handleResumeWebhook(context) };
}
