import type { IExecuteFunctions, INode, INodeConnections, IWorkflowBase } from 'n8n-workflow';

/** The operations of the node in sub-executions, which no panel offers. */
export const CHECK = 'check';
export const SUPERVISE = 'supervise';
export const REPORT = 'report';

/** The names of their nodes, for a person who opens the sub-execution. */
const NAMES: Record<string, string> = {
	[CHECK]: 'Checks the tasks',
	[SUPERVISE]: 'Starts the check again if n8n was killed',
	[REPORT]: 'Hands on the results',
};

export const CHECK_OPERATIONS = Object.keys(NAMES);

export const nodeName = (operation: string): string => NAMES[operation] ?? operation;

/** The first node of a sub-execution. Its stored output is the state that the wait began with. */
export const START = 'Starts by itself';

/** Tells whoever opens the sub-execution what it is. */
const NOTE =
	'## n8n made this execution by itself\nA Media Generation node has tasks that are not finished. This execution checks them, and ends by itself soon after the last one.\n\n**Do not stop or delete it:** the results may not arrive. Files of the results are stored with it.';

/**
 * The workflow of a sub-execution, which is in no list. Its node is this very node. The nodes form a circle: when the
 * time of a suspended node is up, n8n passes the stored item through the node, and so runs the next node.
 *
 * @param first the checker's operation; or the supervisor's, which another node follows: that node puts out the results,
 *   or leads back to the supervisor if the checker died
 * @param errorWorkflow the id of the workflow that n8n starts if this workflow fails
 */
export function checkWorkflow(
	context: IExecuteFunctions,
	first: typeof CHECK | typeof SUPERVISE,
	errorWorkflow: unknown,
): IWorkflowBase {
	const { name, type, typeVersion, credentials }: INode = context.getNode();
	const now = new Date();
	const operations = first === CHECK ? [CHECK] : [SUPERVISE, REPORT];
	const names = [START, ...operations.map(nodeName)];
	const connections = names.map((each, index): [string, INodeConnections] => {
		const node = names[index + 1] ?? names[1] ?? '';
		return [each, { main: [[{ node, type: 'main', index: 0 }]] }];
	});
	return {
		// The id of the workflow itself, so that its list of executions shows this execution.
		id: context.getWorkflow().id ?? '',
		name: `${name}: waiting for its tasks`,
		active: false,
		activeVersionId: null,
		isArchived: false,
		createdAt: now,
		updatedAt: now,
		nodes: [
			{
				id: START,
				name: START,
				type: 'n8n-nodes-base.executeWorkflowTrigger',
				typeVersion: 1.1,
				position: [0, 0],
				parameters: { inputSource: 'passthrough' },
			},
			{
				id: 'note',
				name: 'What this is',
				type: 'n8n-nodes-base.stickyNote',
				typeVersion: 1,
				position: [0, -280],
				parameters: { content: NOTE, width: 620, height: 200 },
			},
			...operations.map((operation, index): INode => ({
				id: operation,
				name: nodeName(operation),
				type,
				typeVersion,
				position: [280 * (index + 1), 0],
				parameters: { resource: 'task', operation },
				...(credentials && { credentials }),
				// n8n reports the death of the checker as an error, which is to come in as an item.
				...(operation === SUPERVISE && { onError: 'continueRegularOutput' }),
			})),
		],
		connections: Object.fromEntries(connections),
		settings: {
			executionOrder: 'v1',
			// The workflow's own policy may refuse all callers, and its own time limit is not meant for this wait.
			callerPolicy: 'workflowsFromSameOwner',
			executionTimeout: -1,
			// n8n finds the waiting execution by the stored entry of the sub-execution.
			saveDataSuccessExecution: 'all',
			saveDataErrorExecution: 'all',
			saveManualExecutions: true,
			...(typeof errorWorkflow === 'string' && { errorWorkflow }),
		},
	};
}
