import type {
	IConnections,
	INode,
	INodeExecutionData,
	IRun,
	IRunExecutionData,
} from 'n8n-workflow';

/** What a sub-execution starts at, in the list of executions. */
export const SUB = 'Sub';

/** A workflow that stands in a node and in no list. */
export interface Definition {
	nodes: INode[];
	connections: IConnections;
}

const lastTask = ({ resultData }: IRunExecutionData) =>
	resultData.lastNodeExecuted === undefined
		? undefined
		: resultData.runData[resultData.lastNodeExecuted]?.at(-1);

/** What a sub-execution hands to the node that started it. */
export const outputOfSub = ({ data }: IRun): Array<INodeExecutionData[] | null> =>
	lastTask(data)?.data?.main ?? [null];

/**
 * What n8n does where a sub-execution has ended: its last output becomes the input of the node that waits, or its error
 * the node's error (`updateParentExecutionWithChildResults` of n8n 2.41).
 *
 * @returns whether the parent may go on
 */
export function patchParent(
	parent: IRunExecutionData,
	child: IRunExecutionData,
	childId: string,
): boolean {
	const { error } = child.resultData;
	const last = lastTask(child);
	if (!error && !last?.data) return false;
	const [waiting] = parent.executionData?.nodeExecutionStack ?? [];
	if (!waiting) return false;
	const children = waiting.metadata?.waitingChildExecutionIds;
	if (Array.isArray(children) && children.length > 0 && !children.includes(childId)) return false;
	if (error) waiting.metadata = { ...waiting.metadata, resumeError: error } as never;
	else if (last?.data) waiting.data = last.data;
	return true;
}
