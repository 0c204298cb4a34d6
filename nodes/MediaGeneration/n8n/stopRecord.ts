import type { IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

const START = 'Tasks of the stopped run';

/**
 * Leaves a short execution in the workflow's list of executions. n8n keeps nothing of a run that is stopped in its first
 * turn, and a node can still start an execution then (shown on n8n 2.41 by test/e2e/stopped.test.ts).
 *
 * @param items what the execution puts out
 */
export async function leaveRecord(
	context: IExecuteFunctions,
	items: INodeExecutionData[],
): Promise<void> {
	const { id: workflowId = '' } = context.getWorkflow();
	const now = new Date();
	const code = {
		// The id of the workflow itself, so that its list of executions shows this execution.
		id: workflowId,
		name: START,
		active: false,
		activeVersionId: null,
		isArchived: false,
		createdAt: now,
		updatedAt: now,
		nodes: [
			{
				id: 'tasks',
				name: START,
				type: 'n8n-nodes-base.executeWorkflowTrigger',
				typeVersion: 1.1,
				position: [0, 0] as [number, number],
				parameters: { inputSource: 'passthrough' },
			},
		],
		connections: {},
		settings: {
			executionOrder: 'v1' as const,
			callerPolicy: 'workflowsFromSameOwner' as const,
			saveDataSuccessExecution: 'all' as const,
			saveManualExecutions: true,
		},
	};
	await context.executeWorkflow({ code }, items, undefined, {
		doNotWaitToFinish: true,
		parentExecution: {
			...{ executionId: context.getExecutionId(), workflowId },
			shouldResume: false,
		},
	});
}
