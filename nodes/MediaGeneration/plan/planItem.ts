import type { IExecuteFunctions } from 'n8n-workflow';

import {
	asRecipient,
	callbackAddress,
	recipientAt,
	refuseEngineV2,
} from '../callback/callbackAddress';
import { isTool } from '../n8n/internals';
import { executionIn, storedTasks } from '../n8n/storedExecution';
import { readOutputOptions } from '../report/taskItems';
import { asTaskId } from '../service/answerFields';
import type { Connection } from '../service/connect';
import { checkModel } from '../service/door';
import { estimateCostUsd, isPlaceholder, isPricedBySecond } from '../service/money';
import { ItemError, taskIdIn } from '../shared/itemError';
import { isRecord, parsedJson } from '../shared/json';
import { choice, ItemParameters, describe, refused, textsIn } from '../shared/parameters';
import { readCreateBodies } from './createBody';
import { readSendsLinks } from './inputFile';
import type { Completion, CreatePlan, ItemPlan, PlanBase, ReadPlan } from './planTypes';
import { DAY_SECONDS, heldSeconds } from './planWait';

/** The account, whose key signs the trigger's address, and its models. */
export interface TriggerAddresses extends Pick<
	Connection,
	'apiKey' | 'baseUrl' | 'models' | 'service'
> {
	/** @returns the URL of the only trigger of this workflow. @throws UserError if there is none */
	ownTrigger: () => string;
}

const RESOURCES = { image: 'Image', video: 'Video', task: 'Task' };

/** The operations on a task that exists already. */
const READS = { get: 'Get', wait: 'Wait for Task', redeliver: 'Repeat Callback' };

/** The operations of each resource, with their names in the panel. */
const operationsOf = (resource: keyof typeof RESOURCES): Record<string, string> =>
	resource === 'task' ? { create: 'Create', ...READS } : { generate: 'Generate' };

/**
 * Reads and checks all parameters of an input item.
 *
 * @returns one plan for each task that the item names
 */
export async function planItem(
	context: IExecuteFunctions,
	itemIndex: number,
	addresses: TriggerAddresses,
): Promise<ItemPlan[]> {
	let isDry = false;
	const refusal = (error: unknown, taskIndex = 0): ItemPlan => ({
		kind: 'refused',
		itemIndex,
		taskIndex,
		error: ItemError.from(error),
		isDry,
	});
	try {
		const parameters = new ItemParameters(context, itemIndex);
		const resource = choice('Resource', parameters.value('resource'), RESOURCES);
		const operation = choice('Operation', parameters.value('operation'), operationsOf(resource));
		const isRead = operation in READS;
		// This comes first: it holds for the whole run, even if the item is refused.
		isDry = parameters.flag('dryRun', 'Dry Run');
		const base: PlanBase = {
			itemIndex,
			taskIndex: 0,
			timeoutMs: 1000 * parameters.number('timeout'),
			output: readOutputOptions(parameters),
			reference: readReference(parameters),
		};
		if (!isRead) {
			const creates = planCreates(parameters, base, addresses);
			return creates.map((plan, taskIndex) => ({ ...plan, taskIndex, isDry }));
		}
		const entries = await givenIds(parameters);
		if (entries.length === 0) throw refused('Task ID', 'empty', WAY_OUT);
		const isRedelivery = operation === 'redeliver';
		const plan: Omit<ReadPlan, 'taskId'> = {
			...base,
			kind: 'read',
			wait: operation === 'wait',
			deliverTo: isRedelivery
				? recipientAt(context, readAddress(parameters, addresses, base))
				: asRecipient(parameters.value('deliverTo')),
		};
		return entries.map(({ entry, item }, taskIndex) => {
			const taskId = asTaskId(entry);
			if (taskId !== undefined) return { ...plan, taskIndex, taskId, item };
			const what = `The parameter 'Task ID' cannot be a task id: ${describe(entry)}`;
			return refusal(new ItemError(what, { description: WAY_OUT }), taskIndex);
		});
	} catch (error) {
		return [refusal(error)];
	}
}

function planCreates(
	parameters: ItemParameters,
	base: PlanBase,
	addresses: TriggerAddresses,
): Array<Omit<CreatePlan, 'isDry'>> {
	const completion = readCompletion(parameters);
	const bodies = readCreateBodies(parameters, addresses);
	const isNotified = completion === 'trigger';
	// With a trigger nobody waits, so the node may take long to create the tasks.
	const patience = isNotified ? DAY_SECONDS : heldSeconds(parameters.context);
	const plan = {
		...base,
		kind: 'create' as const,
		completion,
		patienceMs: base.timeoutMs || 1000 * patience,
		retryFailed: completion === 'wait' ? parameters.number('retryFailed') : 0,
		webhookUrl: isNotified ? readAddress(parameters, addresses, base) : undefined,
		maxCostUsd: parameters.number('maxCostUsd'),
	};
	const { baseUrl, models } = addresses;
	return bodies.map(({ model, input }) => {
		if (isPlaceholder(model, models)) throw placeholder(model);
		checkModel(addresses.service, model);
		const estimatedCostUsd = estimateCostUsd(model, input, models);
		const lacksDuration = estimatedCostUsd === undefined && isPricedBySecond(model, models);
		return {
			...plan,
			model,
			input,
			sendsLinks: readSendsLinks(parameters, input, baseUrl),
			estimatedCostUsd,
			...(lacksDuration && { lacksDuration }),
		};
	});
}

/** Examples have it, and the service would refuse it, or take it at a price that nobody knows. */
const placeholder = (model: string): ItemError =>
	new ItemError(`The model '${model}' is a placeholder, and your credential does not have it`, {
		description:
			"Choose a model of your account in 'Model'. The list has those of the credential, under 'Models'.",
	});

/** @throws ItemError if the value is not in the list, or not for a tool */
function readCompletion(parameters: ItemParameters): Completion {
	const completion = choice('When Do the Items Go On', parameters.value('completion'), {
		wait: 'Wait for Results',
		trigger: 'Notify a Trigger',
		return: 'Return Immediately',
	});
	if (completion !== 'trigger' || !isTool(parameters.context)) return completion;
	// An agent needs the result as the answer of the call: a later result would not reach the agent.
	throw new ItemError('A tool of an AI agent cannot notify a trigger', {
		description: "Choose 'Wait for Results' or 'Return Immediately' in 'When Do the Items Go On'.",
	});
}

/** The longest reference, in UTF-16 units: in an address a character takes up to nine. */
const MAX_REFERENCE = 500;

/** @throws ItemError if the reference is not a text, or too long for an address */
function readReference(parameters: ItemParameters): string | undefined {
	const value = parameters.option('reference') ?? '';
	if (typeof value === 'object' || Number.isNaN(value)) {
		const wayOut = 'Enter one value that tells the row or the order, e.g. {{ $json.id }}.';
		throw refused('Reference', 'not a text', wayOut);
	}
	const reference = String(value);
	if (reference.length > MAX_REFERENCE) {
		throw new ItemError(`The parameter 'Reference' has ${reference.length} characters`, {
			description: `Enter at most ${MAX_REFERENCE}, for example the id of a row and not the whole row.`,
		});
	}
	return reference === '' ? undefined : reference;
}

/**
 * The address of the trigger to notify: the entered one, or that of this workflow's trigger.
 *
 * @throws ItemError if the entered address is not a text
 * @throws UserError if there is no address, or if n8n's engine v2 runs the workflow, where its trigger does not work
 */
function readAddress(
	parameters: ItemParameters,
	{ apiKey, ownTrigger }: TriggerAddresses,
	{ reference }: PlanBase,
): string {
	const wayOut =
		'Enter the production URL of a Media Generation Trigger, or leave the field empty for the trigger of this workflow.';
	const value = parameters.value('callbackUrl');
	if (parameters.isLeftOut('callbackUrl', 'Callback URL', value, wayOut)) {
		refuseEngineV2(parameters.context);
		return callbackAddress(ownTrigger(), apiKey, reference);
	}
	const entered = parameters.requiredText('callbackUrl', 'Callback URL', wayOut);
	return callbackAddress(entered, apiKey, reference);
}

const WAY_OUT =
	"Enter the task id that the service returned when the task was created, e.g. {{ $json.taskId }}, or several: a list, a text with commas or line breaks between them, or the copied JSON of items. For all tasks of an execution of this workflow: 'execution' and its number, e.g. execution 123.";

/** What may be the id of a task, and the number of its item in the execution that was named. */
type GivenId = { entry: unknown } & Pick<ReadPlan, 'item'>;

/**
 * @returns the entries of *Task ID*, with the tasks of an execution in place of the execution
 * @throws ItemError if the value of an expression names an execution
 */
async function givenIds(parameters: ItemParameters): Promise<GivenId[]> {
	const { context } = parameters;
	const isFixed = !parameters.expression('taskId').includes('{{');
	const all = entriesGiven(parameters.value('taskId')).map(async (entry): Promise<GivenId[]> => {
		const execution = executionIn(entry);
		if (execution === undefined) return [{ entry }];
		if (!isFixed) throw notFixed(execution);
		const tasks = await storedTasks(context, execution);
		return tasks.map(({ taskId, item }) => ({ entry: taskId, item }));
	});
	return (await Promise.all(all)).flat();
}

/** What an expression gives may come from outside, and who counts executions would read the tasks of others. */
const notFixed = (execution: string): ItemError =>
	new ItemError(
		`An expression in 'Task ID' gives 'execution ${execution}', which must be fixed text`,
		{
			description: `Switch 'Task ID' to 'Fixed', and enter: execution ${execution}. Otherwise somebody outside could read other people's tasks by counting.`,
		},
	);

/**
 * The entries of a list, of a text, or of items: as n8n copies them, `[{ "taskId": … }]`, also those of the error output,
 * of a run that was passed over, and as `$input.all()` has them.
 */
function entriesGiven(value: unknown): unknown[] {
	if (Array.isArray(value)) return value.flatMap(entriesGiven);
	if (isRecord(value)) {
		const { json, taskIds } = value;
		const inside = isRecord(json) ? json : Array.isArray(taskIds) ? taskIds : undefined;
		const taskId = taskIdIn(value);
		return taskId === undefined && inside ? entriesGiven(inside) : [taskId ?? value];
	}
	if (typeof value === 'string') {
		const json = parsedJson(value);
		return typeof json === 'object' ? entriesGiven(json) : textsIn(value, /[,\r\n]/);
	}
	return value === undefined || value === null ? [] : [value];
}
