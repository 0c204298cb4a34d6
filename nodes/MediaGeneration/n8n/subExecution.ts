import type {
	ExecuteWorkflowData,
	IConnections,
	IExecuteFunctions,
	INode,
	INodeExecutionData,
	INodeParameters,
	IWorkflowSettings,
} from 'n8n-workflow';

import { clock } from '../shared/clock';
import { settled } from '../shared/promises';
import { settingsOf } from './internals';

/** A workflow that is in no list of workflows. */
interface CodeWorkflow {
	name: string;
	/** Its first node, where the items come in. */
	start: string;
	/** A note in Markdown, for a person who opens the execution. */
	note: string;
	/** The nodes behind the first one. */
	nodes?: INode[];
	connections?: IConnections;
	/** Where they differ from the settings of this workflow. */
	settings: IWorkflowSettings;
}

/**
 * Starts an execution of a workflow that is made here, with the settings of this workflow, and waits for nothing. The list
 * of executions of this workflow shows that execution. It relies on `executeWorkflow({ code })` (n8n 2.41), shown by
 * test/e2e/callbacks.test.ts.
 *
 * @param items what its first node puts out
 * @throws n8n's error if n8n starts no execution
 */
async function startCode(
	context: IExecuteFunctions,
	{ name, start, note, nodes = [], connections = {}, settings }: CodeWorkflow,
	items: INodeExecutionData[],
): Promise<ExecuteWorkflowData> {
	// The id of the workflow itself, so that its list of executions shows this execution.
	const { id: workflowId = '' } = context.getWorkflow();
	const now = new Date();
	const trigger: INode = {
		id: start,
		name: start,
		type: 'n8n-nodes-base.executeWorkflowTrigger',
		typeVersion: 1.1,
		position: [0, 0],
		parameters: { inputSource: 'passthrough' },
	};
	const sticky: INode = {
		id: 'note',
		name: 'What this is',
		type: 'n8n-nodes-base.stickyNote',
		typeVersion: 1,
		position: [0, -280],
		parameters: { content: note, width: 620, height: 220 },
	};
	const code = {
		id: workflowId,
		name,
		active: false,
		activeVersionId: null,
		isArchived: false,
		createdAt: now,
		updatedAt: now,
		nodes: [trigger, sticky, ...nodes],
		connections,
		settings: {
			...settingsOf(context),
			// The engine v2 wakes no execution.
			engineType: 'v1' as const,
			executionOrder: 'v1' as const,
			// The workflow calls itself, which its own policy may refuse to all callers. Nobody else can call what is made here.
			callerPolicy: 'workflowsFromSameOwner' as const,
			...settings,
		},
	};
	return await context.executeWorkflow({ code }, items, undefined, {
		doNotWaitToFinish: true,
		parentExecution: {
			executionId: context.getExecutionId(),
			workflowId,
			shouldResume: false,
		},
	});
}

/** An execution that this node starts, and in which it runs once more with other parameters. */
interface SubExecution {
	parameters: INodeParameters;
	/** The names of the workflow and of its node, and a note in Markdown, for a person who opens the execution. */
	title: string;
	nodeName: string;
	note: string;
}

/** The limit for an n8n that never answers: the sub-execution sleeps long before. */
const MOST_QUESTIONS = 100;
const QUESTION_GAP_MS = 50;

/**
 * Starts a sub-execution that nobody waits for, with this very node under other parameters. The list of executions of
 * this workflow shows the sub-execution. Its node is to sleep at once (`sleepAndRunAgain`): this call returns when n8n
 * has stored it asleep, because an execution that dies before it sleeps never begins again.
 *
 * @param items what the sub-execution begins with
 * @returns the id of the sub-execution
 * @throws n8n's error if n8n starts no sub-execution
 */
export async function startSubExecution(
	context: IExecuteFunctions,
	how: SubExecution,
	items: INodeExecutionData[],
): Promise<string> {
	const { executionId } = await startCode(context, workflowOf(context, how), items);
	for (let questions = 1; questions <= MOST_QUESTIONS; questions++) {
		const found = await settled(async () => await context.getExecutionDataById(executionId));
		const data = 'value' in found ? found.value : undefined;
		const isGone = 'value' in found && data === undefined;
		if (isGone || data?.waitTill || data?.resultData.error) break;
		await clock.sleep(questions * QUESTION_GAP_MS, undefined);
	}
	return executionId;
}

const START = 'Starts by itself';

function workflowOf(
	context: IExecuteFunctions,
	{ parameters, title, nodeName, note }: SubExecution,
): Parameters<typeof startCode>[1] {
	const { type, typeVersion, credentials }: INode = context.getNode();
	return {
		name: title,
		start: START,
		note,
		nodes: [
			{
				id: 'again',
				name: nodeName,
				type,
				typeVersion,
				position: [280, 0],
				parameters,
				...(credentials && { credentials }),
			},
		],
		connections: { [START]: { main: [[{ node: nodeName, type: 'main', index: 0 }]] } },
		settings: {
			// The execution sleeps as long as its tasks may take. A limit counts from its start, and would end it before.
			executionTimeout: -1,
			// A success needs nobody. While the execution waits, n8n keeps it all the same.
			saveDataSuccessExecution: 'none',
		},
	};
}
