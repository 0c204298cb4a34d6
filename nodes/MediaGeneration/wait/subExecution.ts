import type { IDataObject, IExecuteFunctions, INode, IWorkflowBase } from 'n8n-workflow';

import { noteWatcher, resumeUrl } from '../callback/suspension';
import { attempt } from '../shared/attempt';
import { type Clock, systemClock } from '../shared/clock';
import { isRecord } from '../shared/json';
import { earlierError } from './parentState';
import {
	type DeliveryWatch,
	parseWatch,
	readWatch,
	type ResultsWatch,
	watchItem,
	type WatchState,
} from './watchState';

const START = 'Start';

/** The operations of the node in sub-executions, which no panel offers, and the names of their nodes there. */
export const WATCH = 'watch';
export const SUPERVISE = 'supervise';
export const REPORT = 'report';

export const WATCH_OPERATIONS = [WATCH, SUPERVISE, REPORT];

/** Where the node of a sub-execution leaves its resume URL, for the execution that started it. */
const RESUME_URL = 'resumeUrl';

const to = (node: string) => ({ main: [[{ node, type: 'main' as const, index: 0 }]] });

/**
 * Looks: connected with itself. When its time is up, n8n passes the stored item through the suspended node, and so runs
 * it again, as often as it takes.
 */
const WATCHER = { operations: [WATCH], connections: { [START]: to(WATCH), [WATCH]: to(WATCH) } };

/** Waits for the end of the one that looks, and judges it: its results are the end, and its death leads back. */
const SUPERVISOR = {
	operations: [SUPERVISE, REPORT],
	connections: { [START]: to(SUPERVISE), [SUPERVISE]: to(REPORT), [REPORT]: to(SUPERVISE) },
};

/** A workflow that is in no list, of this very node. */
function watchWorkflow(
	context: IExecuteFunctions,
	{ operations, connections }: typeof WATCHER | typeof SUPERVISOR,
): IWorkflowBase {
	const { name, type, typeVersion, credentials }: INode = context.getNode();
	const now = new Date();
	const position: [number, number] = [0, 0];
	const start: INode = {
		id: START,
		name: START,
		type: 'n8n-nodes-base.executeWorkflowTrigger',
		typeVersion: 1.1,
		position,
		parameters: { inputSource: 'passthrough' },
	};
	return {
		// That of the workflow itself, in whose list of executions this one stands.
		id: context.getWorkflow().id ?? '',
		name: `${name}: waiting for its tasks`,
		active: false,
		activeVersionId: null,
		isArchived: false,
		createdAt: now,
		updatedAt: now,
		nodes: [
			start,
			...operations.map((operation): INode => ({
				id: operation,
				name: operation,
				type,
				typeVersion,
				position,
				parameters: { resource: 'task', operation },
				...(credentials && { credentials }),
				// The death of the one that looks comes in as an item.
				...(operation === SUPERVISE && { onError: 'continueRegularOutput' }),
			})),
		],
		connections,
		settings: {
			executionOrder: 'v1',
			// The workflow's own policy may refuse all callers, and its time limit is not meant for this wait.
			callerPolicy: 'workflowsFromSameOwner',
			executionTimeout: -1,
			// n8n finds the execution that waits by the entry of the one that has ended.
			saveDataSuccessExecution: 'all',
			saveDataErrorExecution: 'all',
			saveManualExecutions: true,
		},
	};
}

/**
 * Suspends this execution until its tasks are finished. Two sub-executions see to it: one looks, and may die with its
 * process in the middle of a look; the other is told by n8n when that one ends, however it ends, and starts another
 * where it died. When the supervisor ends, n8n resumes this execution with its last output.
 *
 * @returns whether n8n suspended it
 * @throws whatever n8n throws where it cannot start a sub-execution
 */
export async function suspendWith(
	context: IExecuteFunctions,
	state: ResultsWatch,
): Promise<boolean> {
	const watch = { ...state, earlierError: await earlierError(context) };
	const supervisorId = await start(context, SUPERVISOR, watch, true);
	if (supervisorId === undefined) return false;
	const stored = await storedContext(context, supervisorId, SUPERVISE);
	noteWatcher(context, typeof stored?.resumeUrl === 'string' ? stored.resumeUrl : undefined);
	return true;
}

/** The sub-executions of a run sleep long before. */
const MOST_QUESTIONS = 100;
const QUESTION_GAP_MS = 50;

/**
 * Leaves sub-executions behind that nobody waits for. They sleep when this returns: one that died with its process
 * before that would never begin again, so this run is not to end before.
 *
 * @throws whatever n8n throws where it cannot start one
 */
export async function leaveBehind(
	context: IExecuteFunctions,
	state: DeliveryWatch,
	clock: Clock = systemClock,
): Promise<void> {
	const id = await start(context, SUPERVISOR, state, false);
	if (id === undefined) return;
	for (let questions = 0; questions < MOST_QUESTIONS; questions++) {
		const data = await context.getExecutionDataById(id);
		if (!data || data.waitTill !== undefined || data.resultData.error !== undefined) return;
		await clock.sleep(QUESTION_GAP_MS, undefined);
	}
}

/** What the supervisor keeps for the case that the one that looks dies. */
const STATE = 'state';
const WATCHER_ID = 'watcherId';

/**
 * Starts the sub-execution that looks, and suspends this one until it ends. Where there was one before, the new one goes
 * on with what that one knew.
 *
 * @param state what the watch began with
 * @throws whatever n8n throws where it cannot start one
 */
export async function supervise(context: IExecuteFunctions, state: WatchState): Promise<void> {
	const store = context.getContext('node');
	const earlier = store[WATCHER_ID];
	const hasDied = typeof earlier === 'string';
	const known = hasDied ? await lastState(context, earlier) : undefined;
	const supervisorId = context.getExecutionId();
	const watcherId = await start(
		context,
		WATCHER,
		// It died looking as a rule, so what it would have found is there already.
		{ ...(known ?? state), begun: false, woken: hasDied, supervisorId },
		true,
	);
	store[WATCHER_ID] = watcherId;
	const stored = watcherId && (await storedContext(context, watcherId, WATCH));
	store[RESUME_URL] = stored && stored[RESUME_URL];
}

/** Keeps what a watch begins with in the supervisor's execution. */
export function keepState(context: IExecuteFunctions, state: WatchState): void {
	context.getContext('node')[STATE] = state as unknown as IDataObject;
}

/** @returns what the watch of this supervisor began with; undefined at its first turn @throws as `readWatch` does */
export const keptState = (context: IExecuteFunctions): WatchState | undefined =>
	parseWatch(context.getContext('node')[STATE]);

/** @returns the id of the sub-execution; undefined where n8n did not suspend it */
async function start(
	context: IExecuteFunctions,
	role: typeof WATCHER | typeof SUPERVISOR,
	state: WatchState,
	isAwaited: boolean,
): Promise<string | undefined> {
	const { executionId, waitTill } = await context.executeWorkflow(
		{ code: watchWorkflow(context, role) },
		[watchItem(state)],
		undefined,
		{
			...(!isAwaited && { doNotWaitToFinish: true }),
			parentExecution: {
				executionId: context.getExecutionId(),
				workflowId: context.getWorkflow().id ?? '',
				shouldResume: isAwaited,
			},
		},
	);
	return isAwaited && !waitTill ? undefined : executionId;
}

/** Notes the address that has this sub-execution look at once. */
export function noteResumeUrl(context: IExecuteFunctions): void {
	context.getContext('node')[RESUME_URL] = resumeUrl(context);
}

/** What the node of a sub-execution has stored in its context. */
async function storedContext(
	context: IExecuteFunctions,
	executionId: string,
	node: string,
): Promise<IDataObject | undefined> {
	// What is not known here costs a look more; the sub-execution is there already.
	const found = await attempt(async () => await context.getExecutionDataById(executionId));
	const data = 'value' in found ? found.value : undefined;
	const stored: IDataObject | undefined = data?.executionData?.contextData?.[`node:${node}`];
	return isRecord(stored) ? stored : undefined;
}

/** What a sub-execution knew when it last went to sleep. */
async function lastState(
	context: IExecuteFunctions,
	executionId: string,
): Promise<WatchState | undefined> {
	const data = await context.getExecutionDataById(executionId);
	const [sleeping] = data?.executionData?.nodeExecutionStack ?? [];
	const read = await attempt(async () => readWatch(sleeping?.data.main?.[0] ?? []));
	// Of a newer version: what the watch began with can be read, and only costs more reads.
	return 'value' in read ? read.value : undefined;
}
