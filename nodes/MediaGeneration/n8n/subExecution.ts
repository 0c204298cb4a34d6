import type { IExecuteFunctions, INode, INodeExecutionData, INodeParameters } from 'n8n-workflow';

import { clock, settled } from '../shared/clock';
import { settingsOf } from './internals';

/** What a person sees who opens an execution that this node starts: the name of the workflow, and a note in Markdown. */
interface Shown {
	title: string;
	note: string;
}

/** An execution in which this node runs once more, with other parameters and another name. */
interface SubExecution extends Shown {
	parameters: INodeParameters;
	nodeName: string;
}

/** The limit for an n8n that never answers: the sub-execution sleeps long before. */
const MOST_QUESTIONS = 100;
const QUESTION_GAP_MS = 50;

/**
 * Starts a sub-execution that nobody waits for, with this very node under other parameters, and with the settings of this
 * workflow. The list of executions of this workflow shows the sub-execution. Its node is to sleep at once
 * (`sleepAndRunAgain`): this call returns when n8n has stored it asleep, because an execution that dies before it sleeps
 * never begins again. It relies on `executeWorkflow({ code })` (n8n 2.41), shown by test/e2e/process/checks.ts.
 *
 * @param items what the sub-execution begins with
 * @throws n8n's error if n8n starts no sub-execution
 */
export async function startSubExecution(
	context: IExecuteFunctions,
	{ parameters, nodeName, ...shown }: SubExecution,
	items: INodeExecutionData[],
): Promise<void> {
	const { type, typeVersion, credentials }: INode = context.getNode();
	const again: INode = {
		id: 'again',
		name: nodeName,
		type,
		typeVersion,
		position: [280, 0],
		parameters,
		...(credentials && { credentials }),
	};
	const executionId = await leaveItems(context, shown, items, again);
	for (let questions = 1; questions <= MOST_QUESTIONS; questions++) {
		const found = await settled(async () => await context.getExecutionDataById(executionId));
		const data = 'value' in found ? found.value : undefined;
		const isGone = 'value' in found && data === undefined;
		if (isGone || data?.waitTill || data?.resultData.error) break;
		await clock.sleep(questions * QUESTION_GAP_MS, undefined);
	}
}

/**
 * Leaves items in a short execution of their own, which stands in the list of executions of this workflow as a success. It can
 * be started after a stop of this execution, too (n8n 2.41), shown by test/e2e/process/callers.ts.
 *
 * @param again the node that runs in the execution, if there is one
 * @returns the id of the short execution
 * @throws n8n's error if n8n starts no sub-execution
 */
export async function leaveItems(
	context: IExecuteFunctions,
	shown: Shown,
	items: INodeExecutionData[],
	again?: INode,
): Promise<string> {
	const code = codeOf(context, shown, again);
	const { executionId } = await context.executeWorkflow({ code }, items, undefined, {
		doNotWaitToFinish: true,
		parentExecution: {
			executionId: context.getExecutionId(),
			workflowId: code.id,
			shouldResume: false,
		},
	});
	return executionId;
}

/** The name of the node that starts a sub-execution. */
export const START = 'Starts by itself';

/** The workflow of a sub-execution, which is in no list of workflows. */
function codeOf(context: IExecuteFunctions, { title, note }: Shown, again: INode | undefined) {
	const now = new Date();
	const trigger: INode = {
		id: START,
		name: START,
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
	return {
		// The id of the workflow itself, so that its list of executions shows this execution.
		id: context.getWorkflow().id ?? '',
		name: title,
		active: false,
		activeVersionId: null,
		isArchived: false,
		createdAt: now,
		updatedAt: now,
		nodes: [trigger, sticky, ...(again ? [again] : [])],
		connections: {
			[START]: { main: again ? [[{ node: again.name, type: 'main' as const, index: 0 }]] : [] },
		},
		settings: {
			...settingsOf(context),
			// The engine v2 wakes no execution.
			engineType: 'v1' as const,
			executionOrder: 'v1' as const,
			// The workflow calls itself, which its own policy may refuse to all callers. Nobody else can call what is made here.
			callerPolicy: 'workflowsFromSameOwner' as const,
			// The execution sleeps as long as its tasks may take. A limit counts from its start, and would end it before.
			executionTimeout: -1,
			// A success of a node needs nobody: while its execution waits, n8n keeps it all the same.
			saveDataSuccessExecution: again ? ('none' as const) : ('all' as const),
		},
	};
}
