import type { IExecuteFunctions, INode, INodeExecutionData } from 'n8n-workflow';

import { without } from '../shared/json';
import { inTableOrder, ItemError } from '../shared/itemError';
import { isTool } from '../n8n/internals';
import type { ItemResult } from './taskItems';

/** What of an input item goes on beside the node's output. */
type InputPart = Pick<INodeExecutionData, 'json' | 'binary'>;

/** The output items of a run. @param origins the input item of each result, and the part of it that goes on */
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
				? [asBilled(result).toItem(node, { item })]
				: result.map((each) => ({ ...each }));
		return items.map((each) => withInput(each, input, node.onError));
	});

/** A failed task has no price: the sum of the estimates is what the batch may cost. */
const asBilled = (error: ItemError): ItemError =>
	error.task.state === 'FAILURE'
		? new ItemError(error.message, { ...error, task: without(error.task, 'estimatedCostUsd') })
		: error;

/**
 * The option *Include Input*, which is read once for the run.
 *
 * @returns the part of an input item that goes on, by its index; nothing if the option is off
 */
export function includedInputs(
	context: IExecuteFunctions,
): (itemIndex: number) => InputPart | undefined {
	// An agent gets only the fields that it can use.
	const isIncluded =
		!isTool(context) && context.getNodeParameter('options.includeInput', 0, false) === true;
	if (!isIncluded) return () => undefined;
	const inputs = context.getInputData();
	const operation = String(context.getNodeParameter('operation', 0));
	const others = [...OF_ANOTHER_RUN, ...(OF_ANOTHER_TASK[operation] ?? [])];
	return (itemIndex) => {
		const input = inputs[itemIndex];
		return input && partOf(input, others);
	};
}

/** Fields that tell how the task of an earlier node ended: an item that was refused now must not look like a success. */
const OF_ANOTHER_RUN = [
	'timedOut',
	'dryRun',
	'state',
	'creditsConsumed',
	'resultUrls',
	'resultUrl',
	'resultIndex',
];

/** An item without a task must not name another task, nor its price. */
const CREATED = ['taskId', 'estimatedCostUsd', 'failedTaskIds', 'record'];

/** Left out besides, by the operation of this node. */
const OF_ANOTHER_TASK: Record<string, string[]> = {
	generate: CREATED,
	create: CREATED,
	redeliver: ['delivered', 'delivery'],
};

/**
 * An `error` does not go on, nor its advice: n8n would take it for an error of this node.
 *
 * @param others fields that do not go on either
 */
export const partOf = (
	{ json, binary }: INodeExecutionData,
	others: readonly string[] = [],
): InputPart => ({
	json: without(json, 'error', ...(json?.error === undefined ? [] : ['advice']), ...others),
	...(binary && { binary }),
});

/**
 * Adds the fields and files of the input to an item. The item's own fields win.
 *
 * @param onError the node's *On Error*: on the error output n8n itself adds the fields of the input
 */
export function withInput(
	item: INodeExecutionData,
	input: InputPart | undefined,
	onError?: INode['onError'],
): INodeExecutionData {
	if (input === undefined) return item;
	const isOnErrorOutput = onError === 'continueErrorOutput' && item.json.error !== undefined;
	return {
		...item,
		...(!isOnErrorOutput && { json: inTableOrder({ ...input.json, ...item.json }) }),
		...((input.binary ?? item.binary) && { binary: { ...input.binary, ...item.binary } }),
	};
}
