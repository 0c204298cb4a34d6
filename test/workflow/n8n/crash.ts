import type { INode, IRunExecutionData } from 'n8n-workflow';

/** The only field of the item that n8n puts in the place of an output that was not stored. */
const ARTIFICIAL_ITEM = 'isArtificialRecoveredEventItem';

const ARTIFICIAL = { main: [[{ json: { [ARTIFICIAL_ITEM]: true } }]] };

/**
 * What n8n makes of the stored data of an execution whose process died: of a node that its log of events names and the
 * data does not, it writes down that it has ended, or that it crashed, and only then the execution has an error
 * (`ExecutionRecoveryService.amend` of n8n 2.41).
 *
 * @param events the nodes that have begun, and whether they have ended
 */
export function amendCrashed(
	data: IRunExecutionData,
	nodes: readonly INode[],
	events: ReadonlyMap<string, 'started' | 'finished'>,
): IRunExecutionData {
	const { resultData } = data;
	for (const { name } of nodes) {
		const event = events.get(name);
		if (event === undefined || resultData.runData[name] !== undefined) continue;
		const error = { message: 'Node crashed, possible out-of-memory issue' };
		const task = {
			startTime: 0,
			executionIndex: 0,
			source: [null],
			...(event === 'finished'
				? { executionStatus: 'success', executionTime: 1, data: ARTIFICIAL }
				: { executionStatus: 'crashed', executionTime: 0, error }),
		};
		if (event === 'started') {
			const message = 'Workflow did not finish, possible out-of-memory issue';
			resultData.error = { message } as never;
		}
		resultData.lastNodeExecuted = name;
		resultData.runData[name] = [task as never];
	}
	return data;
}
