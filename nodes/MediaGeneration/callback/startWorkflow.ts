import type { IDataObject, IExecuteFunctions, INode, INodeExecutionData } from 'n8n-workflow';

import { endWithError, modeOf, nodeContext, runningNode } from '../n8n/internals';
import { sleepAndRunAgain, takeInputBack } from '../n8n/runAgain';
import { BEFORE_LIMIT_MS, nextWakeAt, timeLimitOf } from '../n8n/wakes';
import { Downloader, PassingTrouble } from '../report/download';
import { fileStem } from '../report/resultFile';
import { isWithoutResult, missingResults, withoutResult } from '../report/taskErrors';
import {
	type ItemResult,
	type OutputOptions,
	readOutputOptions,
	taskItems,
	taskJson,
} from '../report/taskItems';
import { connect } from '../service/connect';
import { hasEnded, parseTaskRecord, type TaskRecord } from '../service/taskRecord';
import { clock, Stopped } from '../shared/clock';
import { ItemError } from '../shared/itemError';
import { isRecord } from '../shared/json';
import { ItemParameters } from '../shared/parameters';
import { settled } from '../shared/promises';
import { DOWNLOAD_TRIES_MS } from './delivery';
import { recentStarts } from './gate';
import { keyInProcess, TaskStart } from './ledger';

/** How long the first run tries to download results while the media host is in trouble, milliseconds. */
const FIRST_TRY_MS = 20_000;

/** A task that the gate admitted. */
interface Admitted {
	task: TaskRecord;
	/** The fields of its items. */
	json: IDataObject;
	start: TaskStart;
	/** Names the start for `recentStarts`. */
	key: string;
}

/** The settings of each trigger whose last try failed, for its next try by *Retry On Fail*. */
const asChosen = new WeakMap<INode, INode>();

/**
 * Starts the workflow for the tasks that the gate admitted, once for each task. A task counts as started when its items
 * leave, after the downloads. While the media host is in trouble, the execution sleeps and tries again. A test run always
 * starts, and neither asks the ledger nor writes to it.
 *
 * @returns the items to go on with: none for a task that another execution starts
 * @throws NodeOperationError if a result cannot be downloaded, unless the node's *On Error* lets the error out; the
 *   database's error, whatever *On Error* says
 */
export async function startWorkflow(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	takeInputBack(context);
	const node = runningNode(context);
	// Otherwise n8n would start the workflow with an empty item for a task that has started it before.
	Object.assign(node, asChosen.get(node), { alwaysOutputData: false });
	const emitted = await settled(startAll(context));
	if ('value' in emitted) return emitted.value;
	// Otherwise *On Error: Continue* would start the workflow with the callback as it came, although the task may have
	// started the workflow before.
	asChosen.set(node, { ...node });
	endWithError(context);
	for (const { key } of admittedTasks(context)) recentStarts.forget(key);
	throw emitted.error;
}

async function startAll(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	const isTest = modeOf(context) === 'manual';
	const parameters = new ItemParameters(context, 0);
	// The options come first: an error in them must not leave a task marked as started.
	const options = readOutputOptions(parameters, parameters.option('downloadResults'));
	const admitted = admittedTasks(context);
	const trouble = knownTrouble(context) ?? newTrouble(context);
	const ended: Array<{ start: TaskStart; result: ItemResult }> = [];
	for (const each of admitted) {
		const { start, json } = each;
		if (!isTest && (await start.isTaken())) continue;
		const made = await settled(bring(context, each, options));
		if ('value' in made) ended.push({ start, result: made.value });
		else if (made.error instanceof PassingTrouble && Date.now() < trouble.until) {
			if (!isTest) for (const { key } of admitted) recentStarts.keep(key);
			return await sleep(context, admitted, trouble, made.error);
		} else if (made.error instanceof Stopped) throw made.error;
		else ended.push({ start, result: ItemError.from(made.error, json) });
	}
	const output: INodeExecutionData[] = [];
	for (const { start, result } of ended) {
		if (isTest || (await start.claim())) output.push(...outputOf(context, result));
	}
	const empty = withoutResult(output.map(({ json }) => json).filter(isWithoutResult));
	for (const message of [empty, missingResults(admitted.map(({ task }) => task))]) {
		if (message === undefined) continue;
		context.addExecutionHints({ message, type: 'warning', location: 'outputPane' });
	}
	return [output];
}

function admittedTasks(context: IExecuteFunctions): Admitted[] {
	return context.getInputData().flatMap(({ json: given }) => {
		const { taskId, record, reference, baseUrl } = given;
		if (typeof taskId !== 'string' || !isRecord(record)) return [];
		const start = { baseUrl: String(baseUrl), taskId };
		const task = parseTaskRecord(taskId, record, start.baseUrl);
		return {
			task,
			json: taskJson(task, { reference }),
			start: new TaskStart(context, start),
			key: keyInProcess(context, start),
		};
	});
}

/** @returns the task's items, with its results if the options ask for them. @throws as `Downloader.filesOf` */
async function bring(
	context: IExecuteFunctions,
	admitted: Admitted,
	output: OutputOptions,
): Promise<INodeExecutionData[]> {
	const destination = { output };
	const { task, json } = admitted;
	if (!output.download || task.state !== 'SUCCESS') return taskItems(task, json, destination);
	const { taskId, record } = task;
	// A later run tries once, and sleeps again.
	const isFirst = knownTrouble(context) === undefined;
	const giveUpAt = clock.now() + (isFirst ? FIRST_TRY_MS : 0);
	// Without a credential results on other hosts are fetched all the same.
	const connected = await settled(connect(context));
	const service = 'value' in connected ? connected.value : undefined;
	let latest: TaskRecord = task;
	const readAgain = async () => {
		const read = await service?.client.readTask(taskId);
		if (hasEnded(read)) {
			latest = read;
			admitted.json = taskJson(read, { reference: json.reference });
		}
		return read;
	};
	const wanted = { stem: fileStem(taskId, record), giveUpAt, isFresh: isFirst, readAgain };
	const files = await new Downloader(context, service?.openFile).filesOf(task, wanted);
	return taskItems(latest, admitted.json, destination, files);
}

function outputOf(context: IExecuteFunctions, result: ItemResult): INodeExecutionData[] {
	if (!(result instanceof ItemError)) return result;
	const node = context.getNode();
	if (!context.continueOnFail()) throw result.toNodeError(node, undefined);
	return [result.toItem(node)];
}

/** The key in the node's context of what this execution knows of the media host's trouble. */
const KEY = 'mediaHostTrouble';

/** Since when the media host is in trouble, and until when it is tried; milliseconds since 1970. */
interface Trouble extends IDataObject {
	since: number;
	until: number;
}

/** @returns undefined if this execution has not slept. A retry is another execution. */
function knownTrouble(context: IExecuteFunctions): Trouble | undefined {
	const kept = nodeContext(context)[KEY];
	const isOurs = isRecord(kept) && kept.of === context.getExecutionId();
	return isOurs ? (kept as Trouble) : undefined;
}

/** The tries end in good time before n8n's time limit: n8n would cancel the execution, and nobody would hear of the task. */
function newTrouble(context: IExecuteFunctions): Trouble {
	// The time of day: another process may go on.
	const since = Date.now();
	const limitMs = timeLimitOf(context, clock.now()) - clock.now() - BEFORE_LIMIT_MS;
	return { since, until: since + Math.min(DOWNLOAD_TRIES_MS, limitMs) };
}

/** Sleeps, which holds no place of n8n's concurrency limit. */
async function sleep(
	context: IExecuteFunctions,
	admitted: readonly Admitted[],
	{ since, until: giveUpAt }: Trouble,
	{ message, retryAfterMs }: PassingTrouble,
): Promise<INodeExecutionData[][]> {
	const now = Date.now();
	nodeContext(context)[KEY] = { of: context.getExecutionId(), since, until: giveUpAt };
	const sleeper = {
		startedAt: since,
		isOverdue: false,
		notBefore: now + retryAfterMs,
		dueAt: [giveUpAt],
	};
	const until = new Date(nextWakeAt(sleeper, now));
	const { name } = context.getNode();
	context.logger.info(`${name}: ${message}. Again at ${until.toISOString()}`);
	const ifPassedOver = admitted.map(({ json: { taskId, state, resultUrls } }) => {
		const error = `n8n passed over '${name}' before the results were downloaded. Fetch them with the operation Task → Get`;
		return { json: { taskId, state, error, resultUrls } };
	});
	return await sleepAndRunAgain(context, until, ifPassedOver);
}
