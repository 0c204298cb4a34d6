import type { IExecuteFunctions, INode, INodeExecutionData } from 'n8n-workflow';

import { without } from '../shared/json';
import { inTableOrder } from '../shared/itemError';
import { isTool } from '../shared/n8nInternals';

/** The fields and files of an input item that go on beside what the node puts out for it. */
export type InputPart = Pick<INodeExecutionData, 'json' | 'binary'>;

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
	return input && partOf({ ...input, json: OF_ANOTHER_RUN.reduce(without, input.json) });
}

/** How the task of another run ended: an item whose own task was refused must not pass for a success. */
const OF_ANOTHER_RUN = ['timedOut', 'dryRun', 'state', 'resultUrls', 'creditsConsumed'];

/** An `error` does not go on: n8n would take it for this node's own. */
export const partOf = ({ json, binary }: INodeExecutionData): InputPart => ({
	json: without(json, 'error'),
	...(binary && { binary }),
});

/** Puts the fields and files of its input under each item, where the user wants that. */
export function withInputs(
	context: IExecuteFunctions,
	items: INodeExecutionData[],
): INodeExecutionData[] {
	const { onError } = context.getNode();
	return items.map((item) => {
		const { pairedItem } = item;
		const index = typeof pairedItem === 'object' && 'item' in pairedItem ? pairedItem.item : 0;
		return withInput(item, includedInput(context, index), onError);
	});
}

/**
 * The item with the fields and files of its input. The item's own win.
 *
 * @param onError what the node does where items fail: on its error output n8n adds the fields of the input by itself
 */
export function withInput(
	item: INodeExecutionData,
	input: InputPart | undefined,
	onError: INode['onError'],
): INodeExecutionData {
	const isOnErrorOutput = onError === 'continueErrorOutput' && item.json.error !== undefined;
	if (input === undefined || isOnErrorOutput) return item;
	return {
		...item,
		json: inTableOrder({ ...input.json, ...item.json }),
		...((input.binary ?? item.binary) && { binary: { ...input.binary, ...item.binary } }),
	};
}
