import type { IDataObject, IExecuteFunctions, INode, INodeExecutionData } from 'n8n-workflow';

import { isTool } from '../n8n/internals';
import { inTableOrder, ItemError } from '../shared/itemError';
import { isName, isRecord, keep, without } from '../shared/json';
import { NOT_KNOWN } from './taskErrors';
import { FIRST_FILE, type ItemResult } from './taskItems';

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
		const items = result instanceof ItemError ? [asBilled(result).toItem(node, { item })] : result;
		return items.map((each) => withInput(each, input, node.onError));
	});

/** A failed task has no price: the sum of the estimates is what the batch may cost. */
const asBilled = (error: ItemError): ItemError =>
	error.task.state === 'FAILURE'
		? new ItemError(error.message, { ...error, task: without(error.task, 'estimatedCostUsd') })
		: error;

/**
 * The switch *Include Input Fields*, which is read once for the run.
 *
 * @returns the part of an input item that goes on, by its index; nothing if the switch is off
 */
export function includedInputs(
	context: IExecuteFunctions,
): (itemIndex: number) => InputPart | undefined {
	const operation = String(context.getNodeParameter('operation', 0));
	// An agent gets only the fields that it can use, and a result that is sent again goes on at the trigger.
	const isOffered = !isTool(context) && operation !== 'redeliver';
	if (!isOffered || context.getNodeParameter('includeInput', 0, true) !== true)
		return () => undefined;
	const inputs = context.getInputData();
	const isOrder = operation === 'generate' || operation === 'create';
	const names = [...OWN_NAMES.ofAll, ...(isOrder ? OWN_NAMES.ofOrders : [])];
	return (itemIndex) => {
		const input = inputs[itemIndex];
		return input && partOf(input, names, fileFieldOf(context, itemIndex));
	};
}

/**
 * The names of the fields that the node may write. An item never has the input's value in such a field: an item that was
 * refused must not look like the success of an earlier node. A page lists the names (docs/reference.md).
 */
export const OWN_NAMES = {
	ofAll: [
		...['state', 'resultUrls', 'creditsConsumed', 'record', 'error', 'advice'],
		...['timedOut', 'dryRun', 'resultUrl', 'resultIndex'],
	],
	/** Of a task that exists already these are the input's. */
	ofOrders: ['taskId', 'model', 'input', 'estimatedCostUsd', 'failedTaskIds'],
} as const;

/** The binary field of the item's first result; undefined if the node downloads nothing. Parameters may be refused. */
function fileFieldOf(context: IExecuteFunctions, itemIndex: number): string | undefined {
	try {
		const downloads: unknown = context.getNodeParameter('downloadResults', itemIndex, true);
		if (String(downloads) === 'false') return undefined;
		const field: unknown = context.getNodeParameter('options.outputBinaryField', itemIndex, '');
		return isName(field) ? field.trim() : FIRST_FILE;
	} catch {
		return FIRST_FILE;
	}
}

/**
 * The part of an input item that goes on.
 *
 * @param names the node's own fields
 * @param fileField the node's first file field; those that are numbered after it are the node's own, too
 */
export function partOf(
	{ json, binary = {} }: INodeExecutionData,
	names: readonly string[] = ['error'],
	fileField?: string,
): InputPart {
	const isOwn = (name: string) =>
		fileField !== undefined && name.replace(/_[1-9]\d*$/, '') === fileField;
	const files = keep(binary, (name) => !isOwn(name));
	// What leaves by the error output of an earlier node has an `error` and `details` of the task there.
	const others = json?.error === undefined ? [] : ['advice', 'details'];
	return {
		json: without(json, ...names, ...others),
		...(Object.keys(files).length > 0 && { binary: files }),
	};
}

/**
 * Adds the fields and files of the input to a copy of an item. The item's own fields win. What became of the item is still
 * to be told of without the fields of the input.
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

const NOT_FINISHED =
	'The task goes on at the service and is paid for once if it succeeds. Do not order it again. Give the user the taskId, with which the results can be read later.';

const FAILED = 'A failed task is usually free. Change the prompt before you try again.';

const CHARGED =
	'The service says that it charged for it. Tell the user, and do not try again by yourself.';

const MAY_EXIST =
	'The task may exist and may be paid for once. Do not order it again: tell the user to look at the tasks or the credits of the account first.';

const DRY_RUN =
	'Nothing was ordered and nothing is paid for: this tool only says what a task would cost.';

/** An agent does not need these fields, which would fill its memory. */
const NOT_FOR_AGENTS = ['record', 'model', 'input'];

/** The item for an agent: the fields that it can use, and what to do next. */
export function toolAnswer({ json, ...item }: INodeExecutionData): INodeExecutionData {
	// On the error output `details` holds what is known of the task.
	const { details, ...left } = json;
	const answer = without({ ...(isRecord(details) && details), ...left }, ...NOT_FOR_AGENTS);
	const next = nextForAgent(answer);
	// The advice for people is not repeated to an agent that is told what to do next.
	return { ...item, json: next === undefined ? answer : { ...without(answer, 'advice'), next } };
}

function nextForAgent({ taskId, state, error, creditsConsumed, dryRun }: IDataObject) {
	if (dryRun === true) return DRY_RUN;
	if (taskId === undefined) return String(error).startsWith(NOT_KNOWN) ? MAY_EXIST : undefined;
	if (state === 'PENDING') return NOT_FINISHED;
	if (state !== 'FAILURE') return undefined;
	return Number(creditsConsumed) > 0 ? CHARGED : FAILED;
}
