import type { IExecuteFunctions, INode, INodeConnections, IWorkflowBase } from 'n8n-workflow';

/** The operations of the node in sub-executions, which no panel offers. */
export const CHECK = 'check';
export const SUPERVISE = 'supervise';
export const REPORT = 'report';

/** The names of their nodes, as a person sees them who opens the sub-execution. */
const NAMES: Record<string, string> = {
	[CHECK]: 'Checks the tasks',
	[SUPERVISE]: 'Starts the check again if n8n was killed',
	[REPORT]: 'Hands on the results',
};

export const CHECK_OPERATIONS = Object.keys(NAMES);

export const nodeName = (operation: string): string => NAMES[operation] ?? operation;

/** The first node of a sub-execution: its output stays stored, and is what the wait began with. */
export const START = 'Starts by itself';

/** Tells whoever opens the sub-execution what it is. */
const NOTE =
	'## n8n made this execution by itself\nA Media Generation node has tasks that are not finished. This execution checks them, and ends by itself soon after the last one.\n\n**Do not stop or delete it:** the results may not arrive. Files of the results are stored with it.';

/**
 * A workflow that is in no list, made of this very node. Its nodes are in a circle: when the time of a suspended node is
 * up, n8n passes the stored item through it, and so runs the next node, as often as it takes.
 *
 * @param first the checker's operation, or the supervisor's, whose end is judged: results are the end, and the checker's
 *   death leads back
 * @param errorWorkflow the id of the workflow that n8n starts where this one fails
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
		// The workflow itself: this execution stands in its list of executions.
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
				// The death of the checker comes in as an item.
				...(operation === SUPERVISE && { onError: 'continueRegularOutput' }),
			})),
		],
		connections: Object.fromEntries(connections),
		settings: {
			executionOrder: 'v1',
			// The workflow's own policy may refuse all callers, and its time limit is not meant for this wait.
			callerPolicy: 'workflowsFromSameOwner',
			executionTimeout: -1,
			// n8n finds the execution that waits by the entry of the sub-execution that has ended.
			saveDataSuccessExecution: 'all',
			saveDataErrorExecution: 'all',
			saveManualExecutions: true,
			...(typeof errorWorkflow === 'string' && { errorWorkflow }),
		},
	};
}
