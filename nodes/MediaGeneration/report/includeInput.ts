import type { IExecuteFunctions, INode, INodeExecutionData } from 'n8n-workflow';

import { without } from '../shared/json';
import { inTableOrder, ItemError } from '../shared/itemError';
import { isTool } from '../shared/n8nInternals';
import type { ItemResult } from './taskItems';

/** The fields and files of an input item that go on beside what the node puts out for it. */
export type InputPart = Pick<INodeExecutionData, 'json' | 'binary'>;

/** The output items of a run. @param origins the input item of each result, and what of it goes on */
export const outputItems = (
	node: INode,
	results: readonly ItemResult[],
	origins: ReadonlyArray<{ item: number; input?: InputPart | undefined }>,
): INodeExecutionData[] =>
	origins.flatMap(({ item, input }, index) => {
		const result = results[index] ?? [];
		// Copies: what became of the items is still to be told of without the fields of the input.
		const items =
			result instanceof ItemError
				? [result.toItem(node, { item })]
				: result.map((each) => ({ ...each }));
		return items.map((each) => withInput(each, input, node.onError));
	});

/**
 * @param itemIndex of the input item
 * @returns what of the item goes on; undefined where the option *Include Input* is off
 */
export function includedInput(
	context: IExecuteFunctions,
	itemIndex: number,
): InputPart | undefined {
	// An agent gets the few fields that it can use.
	if (isTool(context)) return undefined;
	if (context.getNodeParameter('options.includeInput', 0, false) !== true) return undefined;
	const input = context.getInputData()[itemIndex];
	const creates = ['generate', 'create'].includes(context.getNodeParameter('operation', 0));
	const others = creates ? [...OF_ANOTHER_RUN, ...OF_ANOTHER_TASK] : OF_ANOTHER_RUN;
	return input && partOf({ ...input, json: others.reduce(without, input.json) });
}

/** How the task of another run ended: an item whose own task was refused must not pass for a success. */
const OF_ANOTHER_RUN = ['timedOut', 'dryRun', 'state', 'resultUrls', 'creditsConsumed'];

/** Where this node creates a task: an item without one must not name another, nor have its price. */
const OF_ANOTHER_TASK = ['taskId', 'estimatedCostUsd', 'failedTaskIds'];

/** An `error` does not go on: n8n would take it for this node's own. */
export const partOf = ({ json, binary }: INodeExecutionData): InputPart => ({
	json: without(json, 'error'),
	...(binary && { binary }),
});

/**
 * The item with the fields and files of its input. The item's own win.
 *
 * @param onError what the node does where items fail: on its error output n8n adds the fields of the input by itself
 */
export function withInput(
	item: INodeExecutionData,
	input: InputPart | undefined,
	onError?: INode['onError'],
): INodeExecutionData {
	if (input === undefined) return item;
	const isOnErrorOutput = onError === 'continueErrorOutput' && item.json.error !== undefined;
	// In place: what n8n tells its error output by would not be in a copy.
	return Object.assign(item, {
		...(!isOnErrorOutput && { json: inTableOrder({ ...input.json, ...item.json }) }),
		...((input.binary ?? item.binary) && { binary: { ...input.binary, ...item.binary } }),
	});
}
