import type {
	ExecuteWorkflowData,
	IConnections,
	IExecuteFunctions,
	INode,
	INodeExecutionData,
	IWorkflowSettings,
} from 'n8n-workflow';

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
	settings: IWorkflowSettings;
}

/**
 * Starts an execution of a workflow that is made here, and waits for nothing. The list of executions of this workflow shows
 * that execution. It relies on `executeWorkflow({ code })` (n8n 2.41), shown by test/e2e/callbacks.test.ts and
 * test/e2e/action.test.ts.
 *
 * @param items what its first node puts out
 * @throws n8n's error if n8n starts no execution
 */
export async function startCode(
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
			executionOrder: 'v1' as const,
			// The workflow's own policy may refuse all callers.
			callerPolicy: 'workflowsFromSameOwner' as const,
			saveManualExecutions: true,
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
