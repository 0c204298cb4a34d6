import type { IExecuteFunctions, INode, INodeExecutionData, INodeParameters } from 'n8n-workflow';

import { clock } from '../shared/clock';
import { settled } from '../shared/promises';
import { startCode } from './codeWorkflow';
import { settingsOf } from './internals';

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
	const { errorWorkflow } = settingsOf(context);
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
			// The workflow's own time limit is not meant for this execution.
			executionTimeout: -1,
			saveDataErrorExecution: 'all',
			// A sub-execution that is defined in code hears of no error workflow unless its own settings name one.
			...(typeof errorWorkflow === 'string' && { errorWorkflow }),
		},
	};
}
