import type { IExecuteFunctions, INode, IWorkflowBase } from 'n8n-workflow';

/** The operations of the node in sub-executions, which no panel offers. */
export const CHECK = 'check';
export const SUPERVISE = 'supervise';
export const REPORT = 'report';

export const CHECK_OPERATIONS = [CHECK, SUPERVISE, REPORT];

/** The first node of a sub-execution: its output stays stored, and is what the wait began with. */
export const START = 'Starts by itself';

/** Tells whoever opens the sub-execution what it is. */
const NOTE =
	'## n8n made this execution by itself\nA Media Generation node has tasks that are not finished. This execution checks them, and ends by itself soon after the last one.\n\n**Do not stop or delete it:** the results may not arrive. Files of the results are stored with it.';

/** The names of the nodes of a sub-execution, as a person sees them who opens it. */
const NAMES: Record<string, string> = {
	[CHECK]: 'Checks the tasks',
	[SUPERVISE]: 'Starts the check again if n8n was killed',
	[REPORT]: 'Hands on the results',
};

export const nodeName = (operation: string): string => NAMES[operation] ?? operation;

/**
 * The operations of a sub-execution, each connected with the next one, and the last one with the first. When the time of
 * a suspended node is up, n8n passes the stored item through it, and so runs the next node, as often as it takes.
 */
export const CHECKER = [CHECK];

/** Waits for the end of the checker, and judges it: results are the end, and the checker's death leads back. */
export const SUPERVISOR = [SUPERVISE, REPORT];

/**
 * A workflow that is in no list, made of this very node.
 *
 * @param errorWorkflow the id of the workflow that n8n starts where this one fails
 */
export function checkWorkflow(
	context: IExecuteFunctions,
	operations: string[],
	errorWorkflow: unknown,
): IWorkflowBase {
	const { name, type, typeVersion, credentials }: INode = context.getNode();
	const now = new Date();
	const at = (column: number): [number, number] => [280 * column, 0];
	const names = [START, ...operations.map(nodeName)];
	const after = (index: number) => ({
		node: names[index + 1] ?? names[1] ?? '',
		type: 'main' as const,
		index: 0,
	});
	const start: INode = {
		id: START,
		name: START,
		type: 'n8n-nodes-base.executeWorkflowTrigger',
		typeVersion: 1.1,
		position: at(0),
		parameters: { inputSource: 'passthrough' },
	};
	const note: INode = {
		id: 'note',
		name: 'What this is',
		type: 'n8n-nodes-base.stickyNote',
		typeVersion: 1,
		position: [0, -280],
		parameters: { content: NOTE, width: 620, height: 200 },
	};
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
			start,
			note,
			...operations.map((operation, index): INode => ({
				id: operation,
				name: nodeName(operation),
				type,
				typeVersion,
				position: at(index + 1),
				parameters: { resource: 'task', operation },
				...(credentials && { credentials }),
				// The death of the checker comes in as an item.
				...(operation === SUPERVISE && { onError: 'continueRegularOutput' }),
			})),
		],
		connections: Object.fromEntries(names.map((each, index) => [each, { main: [[after(index)]] }])),
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
