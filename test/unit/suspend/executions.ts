import { randomUUID } from 'node:crypto';

import {
	createRunExecutionData,
	type IDataObject,
	type IExecuteFunctions,
	type INodeExecutionData,
} from 'n8n-workflow';

import { systemClock } from '../../../nodes/MediaGeneration/shared/clock';
import { runCheckExecution } from '../../../nodes/MediaGeneration/suspend/checkExecution';
import {
	type CheckState,
	readCheck,
	readDone,
} from '../../../nodes/MediaGeneration/suspend/checkState';
import { nodeName } from '../../../nodes/MediaGeneration/suspend/checkWorkflow';
import { handleResumeWebhook } from '../../../nodes/MediaGeneration/suspend/resumeWebhook';
import { contextOfWebhook } from '../../workflow/contexts';
import { additionalData, buildWorkflow, type Credential, CREDENTIAL } from '../../workflow/engine';
import { expressOf, FakeResponse } from '../../workflow/express';
import { contextOf, PARENT } from './checks';

export interface Turn {
	/** What n8n has stored of other executions. */
	stored?: Record<string, unknown>;
	/** What the node has kept in its context. */
	kept?: IDataObject;
	start?: IExecuteFunctions['executeWorkflow'];
	/** What the first node of the sub-execution put out. */
	begin?: INodeExecutionData[];
	more?: Parameters<typeof contextOf>[0];
}

const started = async () =>
	await Promise.resolve({ executionId: '3', data: [null], waitTill: new Date() });

/** One turn of the node in a sub-execution. */
export async function turnOf(
	operation: string,
	items: INodeExecutionData[],
	{ stored = {}, kept = {}, start = started, begin = [], more = {} }: Turn = {},
	clock = systemClock,
	now = Date.now,
) {
	let until: Date | undefined;
	const begun: CheckState[] = [];
	const handed: INodeExecutionData[][] = [];
	const changed: Partial<IExecuteFunctions> = {
		getContext: () => kept,
		getExecutionDataById: async (id) => await Promise.resolve(stored[id] as never),
		getWorkflowDataProxy: () => ({ $: () => ({ all: () => begin }) }) as never,
		putExecutionToWait: async (date) => {
			until = date;
			await Promise.resolve();
		},
		executeWorkflow: async (...given) => {
			handed.push(given[1] ?? []);
			begun.push(readCheck(given[1] ?? []) as CheckState);
			return await start(...given);
		},
	};
	const node = { name: nodeName(operation), parameters: { resource: 'task', operation } };
	const context = contextOf({ node, items, ...more }, changed);
	const put = (await runCheckExecution(context, operation, clock, now))?.[0];
	const { results, failure } = readDone(put ?? []) ?? {};
	return { put, output: results ?? put, failure, until, kept, begun, handed };
}

/** The check of a suspended run that comes next, with what the run has handed to its sub-execution. */
export async function nextCheck(handed: INodeExecutionData[], credential: Credential) {
	const kept = { state: { ...readCheck(handed), supervisorId: '8' } as never, turns: 2 };
	return await turnOf('check', handed, { kept, stored: { 1: PARENT }, more: { credential } });
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
