import { randomUUID } from 'crypto';
import {
	type IDataObject,
	type IExecuteFunctions,
	type INode,
	type INodeExecutionData,
	type IWebhookFunctions,
	type IWebhookResponseData,
	UserError,
} from 'n8n-workflow';

import { Downloader, TRIGGER_TRY_MS } from '../report/download';
import { type OutputOptions, readOutputOptions, taskJson } from '../report/taskItems';
import type { Connection } from '../service/connect';
import { ServiceError } from '../service/serviceError';
import { type FinishedTask, parseTaskRecord, type TaskRecord } from '../service/taskRecord';
import { clock, ExpiringCache, withTimeLimit } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { isEngineV2 } from '../n8n/internals';
import { ItemParameters } from '../shared/parameters';
import { settled } from '../shared/promises';
import { accountOf, credentialIdOf, mayStart } from './startOnce';
import {
	answer,
	ANSWER_LIMIT_MS,
	deciding,
	tryAgain,
	verifyCallback,
	type WebhookAnswer,
} from './verifyCallback';

/**
 * Senders repeat a callback within minutes. A longer time would do harm: n8n may lose an execution that it has
 * stored, and then another callback must be able to start the workflow.
 */
const MAX_AGE_MS = 5 * 60_000;

/** The answer to other callbacks of the same task; or n8n did not store the execution. */
type Outcome = WebhookAnswer | 'notStored';

/**
 * What became of the latest callbacks of this process. If several callbacks of a task come together, the first one
 * reads the task, and the others wait for its outcome. This only saves work: the ledger decides.
 */
const recent = new ExpiringCache<Promise<Outcome>>(MAX_AGE_MS);

const EVENTS = ['SUCCESS', 'FAILURE'];

const notAccepted = (reason: string): WebhookAnswer => ({
	status: 200,
	body: { accepted: false, reason },
});
const DUPLICATE = notAccepted('duplicate');
const NOT_SELECTED = notAccepted('event not selected');

/**
 * Admits a callback, or answers it. The cheap checks come first, and a callback without a valid token causes no
 * request to the service. Only the task id is taken from the body: the record is read from the service.
 *
 * @returns an item with the task's record, with which n8n starts the workflow; nothing if the callback was answered
 * @see specification, section 6 and its handler rules
 */
export const handleTriggerWebhook = deciding(decide);

async function decide(context: IWebhookFunctions): Promise<WebhookAnswer | IWebhookResponseData> {
	const giveUpAt = clock.now() + ANSWER_LIMIT_MS;
	const requireToken = context.getNodeParameter('options.requireToken', true) !== false;
	const checked = await verifyCallback(context, requireToken, () =>
		context.getNodeWebhookUrl('default'),
	);
	if ('status' in checked) return checked;
	// Engine v2 would start the workflow without asking the ledger.
	if (isEngineV2(context)) return tryAgain("The trigger does not work with n8n's engine v2");
	const events: unknown[] = [context.getNodeParameter('events', EVENTS)].flat();
	if (events.length === 0 || !events.every((event) => EVENTS.includes(String(event)))) {
		throw new UserError("The parameter 'Events' is not a list of events");
	}
	const { connection, taskId, reference } = checked;
	const node = context.getNode();
	const account = accountOf(connection.baseUrl, credentialIdOf(node));
	// A test run shows every event, also an event that was seen before.
	const isTest = context.getMode() === 'manual';
	const key = JSON.stringify([context.getWorkflow().id, node.id, account, taskId]);
	for (let earlier = recent.get(key); earlier && !isTest; earlier = recent.get(key)) {
		const outcome = await earlier;
		if (outcome !== 'notStored') return outcome;
	}
	const reading = readFinished(connection, taskId, events, giveUpAt);
	if (!isTest) recent.set(key, outcomeOf(key, reading, context.getResponseObject()));
	const task = await reading;
	if ('status' in task) return task;
	// n8n now stores an execution, answers, and begins the execution. If n8n is killed in between, nothing else names
	// the task, and the sender does not come again.
	if (!isTest) context.logger.info(`${node.name}: task ${taskId} is to start the workflow`);
	const json = {
		...taskJson(task, { reference }),
		// The whole record: the execution parses it again, and only here are results that are data URIs complete.
		record: task.record,
		// n8n stores both fields with the execution, so the ledger recognises the execution in each of its tries.
		callbackId: randomUUID(),
		account,
	};
	return { workflowData: [[{ json }]], webhookResponse: { accepted: true, taskId } };
}

/** Never rejects: other callbacks of the task wait for it. */
async function readFinished(
	{ client }: Connection,
	taskId: string,
	events: unknown[],
	giveUpAt: number,
): Promise<FinishedTask | WebhookAnswer> {
	// The look-up of the credential, or the wait for another callback, may have used a part of the time.
	const limitMs = Math.max(1, giveUpAt - clock.now());
	const read = await settled(withTimeLimit(client.readTask(taskId, limitMs), limitMs));
	if ('error' in read) {
		const { error } = read;
		return error instanceof ServiceError && error.kind === 'notFound' && !error.isForeign
			? answer(404, 'The service knows no such task for this account')
			: tryAgain('The task could not be read from the service');
	}
	const task = read.value;
	if (task === undefined) return tryAgain('The service did not answer in time');
	if (task.state === 'PENDING') return tryAgain('The task is not finished yet');
	return events.includes(task.state) ? task : NOT_SELECTED;
}

/** n8n answers an admitted callback when the execution is stored. From then on other callbacks are duplicates. */
async function outcomeOf(
	key: string,
	reading: Promise<FinishedTask | WebhookAnswer>,
	response: ReturnType<IWebhookFunctions['getResponseObject']>,
): Promise<Outcome> {
	const task = await reading;
	if (!('status' in task)) {
		// If the sender has hung up, the response never closes again.
		if (!response.destroyed) await new Promise((resolve) => response.once('close', resolve));
		if (response.writableFinished && response.statusCode < 300) return DUPLICATE;
	}
	recent.delete(key);
	return 'status' in task ? task : 'notStored';
}

/** The settings of each trigger whose last try failed, for its next try by *Retry On Fail*. */
const asChosen = new WeakMap<INode, INode>();

/**
 * Starts the workflow for the tasks that the gate admitted, once for each task. A test run always starts, and neither
 * asks the ledger nor writes to it.
 *
 * @returns the items to go on with: none for a task that another execution has started with
 * @throws NodeOperationError if a result cannot be downloaded, unless the node's *On Error* lets the error out; the
 *   database's error, whatever *On Error* says
 */
export async function emitTasks(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	const { node } = context.getExecuteData();
	// Otherwise n8n would start the workflow with an empty item for a task that has started it before.
	Object.assign(node, asChosen.get(node), { alwaysOutputData: false });
	const emitted = await settled(itemsToStart(context));
	if ('value' in emitted) return emitted.value;
	// Otherwise *On Error: Continue* would start the workflow with the callback as it came, although the task may have
	// started the workflow before.
	asChosen.set(node, { ...node });
	Object.assign(node, { onError: 'stopWorkflow', continueOnFail: false });
	throw emitted.error;
}

async function itemsToStart(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	const isTest = context.getMode() === 'manual';
	const parameters = new ItemParameters(context, 0);
	// The options come first: an error in them must not leave the task marked as started.
	const options = readOutputOptions(parameters, parameters.option('downloadResults'));
	const output: INodeExecutionData[] = [];
	for (const { json } of context.getInputData()) {
		if (typeof json.taskId !== 'string' || !isRecord(json.record)) continue;
		const task = parseTaskRecord(json.taskId, json.record);
		if (!isTest && !(await isToStart(context, task.taskId, json))) continue;
		output.push(...(await itemsOf(context, task, json, options)));
	}
	return output;
}

/** @param json the item that the gate admitted */
async function isToStart(
	context: IExecuteFunctions,
	taskId: string,
	{ account, callbackId }: IDataObject,
): Promise<boolean> {
	return await mayStart(context, { account: String(account), taskId }, String(callbackId));
}

async function itemsOf(
	context: IExecuteFunctions,
	task: TaskRecord,
	{ reference }: IDataObject,
	options: OutputOptions,
): Promise<INodeExecutionData[]> {
	const json = taskJson(task, { reference });
	const downloader = new Downloader(context, TRIGGER_TRY_MS);
	try {
		return await downloader.itemsOf(task, json, { output: options });
	} catch (error) {
		const failed = ItemError.from(error);
		const node = context.getNode();
		if (!context.continueOnFail()) throw failed.toNodeError(node, 0);
		return [failed.toItem(node)];
	}
}
