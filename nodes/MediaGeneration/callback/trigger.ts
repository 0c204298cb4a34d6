import { randomUUID } from 'crypto';
import {
	type IDataObject,
	type IExecuteFunctions,
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
import { ExpiringCache, systemClock, withTimeLimit } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { isEngineV2 } from '../shared/n8nInternals';
import { ItemParameters } from '../shared/parameters';
import { settled } from '../shared/promises';
import { accountOf, credentialIdOf, mayStart } from './startOnce';
import {
	ANSWER_LIMIT_MS,
	deciding,
	tryAgain,
	verifyCallback,
	type WebhookAnswer,
} from './verifyCallback';

/**
 * Senders repeat themselves within minutes. Not longer, because n8n may lose an execution that it has stored: then
 * another callback must be able to start the workflow, and whether it has run is the ledger's to say.
 */
const MAX_AGE_MS = 10 * 60_000;

const MAX_REMEMBERED = 10_000;

/** What became of a callback: its answer, as far as it goes for others of the same task; or n8n did not store it. */
type Outcome = WebhookAnswer | 'notStored';

/**
 * What this process knows of the tasks whose callbacks have just come. Of callbacks that come together the first reads
 * the task, and the others wait for what becomes of it. This spares work only: the ledger decides.
 */
const recent = new ExpiringCache<Promise<Outcome>>(systemClock, MAX_AGE_MS, MAX_REMEMBERED);

const EVENTS = ['SUCCESS', 'FAILURE'];

const notAccepted = (reason: string): WebhookAnswer => ({
	status: 200,
	body: { accepted: false, reason },
});
const DUPLICATE = notAccepted('duplicate');
const NOT_SELECTED = notAccepted('event not selected');

/**
 * Admits a callback, or answers it. Cheap checks come first, and nothing is asked of the service for a callback
 * without a valid token. The body is a hint: only the task id is read from it, the record is read from the service.
 *
 * @returns an item with the task's record for n8n to start the workflow with; nothing where the callback was answered
 * @see specification, section 6 and its handler rules
 */
export const handleTriggerWebhook = deciding(decide);

async function decide(context: IWebhookFunctions): Promise<WebhookAnswer | IWebhookResponseData> {
	const requireToken = context.getNodeParameter('options.requireToken', true) !== false;
	const checked = await verifyCallback(context, requireToken, () =>
		context.getNodeWebhookUrl('default'),
	);
	if ('status' in checked) return checked;
	// It would start the workflow without asking the ledger.
	if (isEngineV2(context)) return tryAgain("The trigger does not work with n8n's engine v2");
	const events: unknown[] = [context.getNodeParameter('events', EVENTS)].flat();
	if (events.length === 0 || !events.every((event) => EVENTS.includes(String(event)))) {
		throw new UserError("The parameter 'Events' is not a list of events");
	}
	const { connection, taskId, reference, startAgain } = checked;
	const node = context.getNode();
	const account = accountOf(connection.baseUrl, credentialIdOf(node));
	const giveUpAt = systemClock.now() + ANSWER_LIMIT_MS;
	// A test run shows every event, also one that was seen before. Who asks to start again is held back by himself alone.
	const isTest = context.getMode() === 'manual';
	const key = JSON.stringify([context.getWorkflow().id, node.id, account, taskId, startAgain]);
	for (let earlier = recent.get(key); earlier && !isTest; earlier = recent.get(key)) {
		const outcome = await withTimeLimit(earlier, giveUpAt - systemClock.now(), systemClock);
		const answer = outcome ?? tryAgain('A callback of this task is being worked on');
		if (answer !== 'notStored') return answer;
	}
	const reading = readFinished(connection, taskId, events, giveUpAt);
	if (!isTest) recent.set(key, outcomeOf(key, reading, context.getResponseObject()));
	const task = await reading;
	if ('status' in task) return task;
	// n8n stores an execution now, answers, and begins the execution. Where it is killed in between, nothing else names
	// the task, and the sender that was answered does not come again.
	if (!isTest) context.logger.info(`${node.name}: task ${taskId} is to start the workflow`);
	const json = {
		...taskJson(task, reference === undefined ? {} : { reference }),
		// As it was read: the execution reads it anew, and results that are data URIs are whole only here.
		record: task.record,
		// n8n stores both with the execution, so that the ledger knows it again however often it is tried.
		callbackId: randomUUID(),
		account,
		...(startAgain !== undefined && { startAgain }),
	};
	return { workflowData: [[{ json }]], webhookResponse: { accepted: true, taskId } };
}

/** Throws nothing: whoever comes with the same task waits for it. */
async function readFinished(
	{ client }: Connection,
	taskId: string,
	events: unknown[],
	giveUpAt: number,
): Promise<FinishedTask | WebhookAnswer> {
	// What is left of the time where it was spent on waiting for another callback.
	const limitMs = Math.max(1, giveUpAt - systemClock.now());
	const read = await settled(withTimeLimit(client.readTask(taskId, limitMs), limitMs, systemClock));
	if ('error' in read) {
		const { error } = read;
		return error instanceof ServiceError && error.kind === 'notFound' && !error.isForeign
			? { status: 404, body: { message: 'The service knows no such task for this account' } }
			: tryAgain('The task could not be read from the service');
	}
	const task = read.value;
	if (task === undefined) return tryAgain('The service did not answer in time');
	if (task.state === 'PENDING') return tryAgain('The task is not finished yet');
	return events.includes(task.state) ? task : NOT_SELECTED;
}

/**
 * What becomes of a callback. n8n answers an admitted callback once the execution is stored: from then on another
 * callback of the task is a duplicate.
 */
async function outcomeOf(
	key: string,
	reading: Promise<FinishedTask | WebhookAnswer>,
	response: ReturnType<IWebhookFunctions['getResponseObject']>,
): Promise<Outcome> {
	const task = await reading;
	if (!('status' in task)) {
		// The sender may have given up meanwhile: then nothing more is heard of this answer.
		if (!response.destroyed) await new Promise((resolve) => response.once('close', resolve));
		if (response.writableFinished && response.statusCode < 300) return DUPLICATE;
	}
	recent.delete(key);
	return 'status' in task ? task : 'notStored';
}

/**
 * Starts the workflow for the tasks that the gate admitted, each once.
 *
 * A test run is meant by whoever starts it, so it neither asks the ledger nor leaves anything there.
 *
 * @returns the items to go on with: none for a task that another execution has started with
 * @throws NodeOperationError where a result cannot be downloaded, unless the node's *On Error* lets it out; the database's
 *   error, whatever *On Error* says
 */
export async function emitTasks(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	const { node } = context.getExecuteData();
	// n8n would start the workflow with an empty item for a task that has started it before.
	node.alwaysOutputData = false;
	const emitted = await settled(itemsToStart(context));
	if ('value' in emitted) return emitted.value;
	// n8n would start the workflow with the callback as it came, though nobody knows whether the task has started it.
	Object.assign(node, { onError: 'stopWorkflow', continueOnFail: false });
	throw emitted.error;
}

async function itemsToStart(context: IExecuteFunctions): Promise<INodeExecutionData[]> {
	const isTest = context.getMode() === 'manual';
	const parameters = new ItemParameters(context, 0);
	// Read before the ledger is asked: from then on the task counts as started.
	const options = readOutputOptions(parameters);
	const output: INodeExecutionData[] = [];
	for (const { json } of context.getInputData()) {
		if (typeof json.taskId !== 'string' || !isRecord(json.record)) continue;
		const task = parseTaskRecord(json.taskId, json.record);
		if (!isTest && !(await isToStart(context, task.taskId, json))) continue;
		output.push(...(await itemsOf(context, task, json.reference, options)));
	}
	return output;
}

/** @param json as the gate admitted it */
async function isToStart(
	context: IExecuteFunctions,
	taskId: string,
	{ account, startAgain, callbackId }: IDataObject,
): Promise<boolean> {
	const start = { account: String(account), taskId };
	const isFirst = await mayStart(context, start, String(callbackId));
	// By now there is a row either way, so that the task's callback, should it come at last, starts nothing.
	if (typeof startAgain !== 'string') return isFirst;
	return await mayStart(context, { ...start, startAgain }, String(callbackId));
}

async function itemsOf(
	context: IExecuteFunctions,
	task: TaskRecord,
	reference: unknown,
	options: OutputOptions,
): Promise<INodeExecutionData[]> {
	const json = taskJson(task, typeof reference === 'string' ? { reference } : {});
	const downloader = new Downloader(context, systemClock, TRIGGER_TRY_MS);
	try {
		return await downloader.itemsOf(task, json, { output: options });
	} catch (error) {
		const failed = ItemError.from(error);
		const node = context.getNode();
		if (!context.continueOnFail()) throw failed.toNodeError(node, 0);
		return [failed.toItem(node)];
	}
}
