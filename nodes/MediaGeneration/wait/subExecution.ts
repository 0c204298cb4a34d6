import type { IDataObject, IExecuteFunctions, INode, IWorkflowBase } from 'n8n-workflow';

import { noteWatcher, resumeUrl } from '../callback/suspension';
import { attempt } from '../shared/attempt';
import { isRecord } from '../shared/json';
import type { WatcherState } from './guard';
import {
	type DeliveryWatch,
	type GuardWatch,
	readWatch,
	type ResultsWatch,
	watchItem,
	type WatchState,
} from './watchState';

const START = 'Start';
const WATCH = 'Watch';

/** The operation of the node in a sub-execution, which no panel offers. */
export const WATCH_OPERATION = 'watch';

/** What a sub-execution is there for, as n8n's logs call it. */
const TITLES: Record<WatchState['purpose'], string> = {
	results: 'waiting for its tasks',
	delivery: 'looking for callbacks that were lost',
	guard: 'in case the wait is interrupted',
};

/** Where the node of a sub-execution leaves its resume URL, for the execution that started it. */
const RESUME_URL = 'resumeUrl';

/**
 * A workflow that is in no list: this very node, connected with itself. When its time is up, n8n passes the stored
 * item through the suspended node, and so runs it again, as often as it takes.
 */
function watchWorkflow(context: IExecuteFunctions, { purpose }: WatchState): IWorkflowBase {
	const { name, type, typeVersion, credentials }: INode = context.getNode();
	const now = new Date();
	const toWatch = { main: [[{ node: WATCH, type: 'main' as const, index: 0 }]] };
	return {
		// That of the workflow itself, in whose list of executions this one stands.
		id: context.getWorkflow().id ?? '',
		name: `${name}: ${TITLES[purpose]}`,
		active: false,
		activeVersionId: null,
		isArchived: false,
		createdAt: now,
		updatedAt: now,
		nodes: [
			{
				id: 'start',
				name: START,
				type: 'n8n-nodes-base.executeWorkflowTrigger',
				typeVersion: 1.1,
				position: [0, 0] as [number, number],
				parameters: { inputSource: 'passthrough' },
			},
			{
				id: 'watch',
				name: WATCH,
				type,
				typeVersion,
				position: [200, 0] as [number, number],
				parameters: { resource: 'task', operation: WATCH_OPERATION },
				...(credentials && { credentials }),
			},
		],
		connections: { [START]: toWatch, [WATCH]: toWatch },
		settings: {
			executionOrder: 'v1' as const,
			// The workflow's own policy may refuse all callers, and its time limit is not meant for this wait.
			callerPolicy: 'workflowsFromSameOwner' as const,
			executionTimeout: -1,
			// n8n finds the execution that waits by the entry of the one that has ended.
			saveDataSuccessExecution: 'all' as const,
			saveDataErrorExecution: 'all' as const,
			saveManualExecutions: true,
		},
	};
}

/**
 * Suspends this execution until its tasks are finished. The sub-executions that see to it are started here: one looks,
 * and one goes on in its place where that died. When either ends, n8n resumes this execution with its last output.
 *
 * @param giveUpAt when the execution goes on with what it has, where neither has ended. It is not n8n's own date for
 *   such a wait: n8n would take the last output of a sub-execution that died in the middle of a look for its result.
 * @returns whether n8n suspended it
 * @throws whatever n8n throws where it cannot start a sub-execution
 */
export async function suspendWith(
	context: IExecuteFunctions,
	state: ResultsWatch,
	giveUpAt: Date,
): Promise<boolean> {
	const watcher = await start(context, state, true);
	if (watcher === undefined) return false;
	noteWatcher(context, await resumeUrlOf(context, watcher));
	const guarded = await attempt(async () => await start(context, guardOf(state, watcher), true));
	if ('error' in guarded) warn(context, guarded.error);
	await context.putExecutionToWait(giveUpAt);
	return true;
}

/**
 * Leaves sub-executions behind that nobody waits for.
 *
 * @throws whatever n8n throws where it cannot start one
 */
export async function leaveBehind(context: IExecuteFunctions, state: DeliveryWatch): Promise<void> {
	const watcher = await start(context, state, false);
	if (watcher === undefined) return;
	const guarded = await attempt(async () => await start(context, guardOf(state, watcher), false));
	if ('error' in guarded) warn(context, guarded.error);
}

const guardOf = (watched: GuardWatch['watched'], watcherId: string): GuardWatch => {
	const { version, nodeName, startedAt } = watched;
	return { version, nodeName, startedAt, intervalMs: 0, purpose: 'guard', watcherId, watched };
};

/** @returns the id of the sub-execution; undefined where n8n did not suspend it */
async function start(
	context: IExecuteFunctions,
	state: WatchState,
	isAwaited: boolean,
): Promise<string | undefined> {
	const { executionId, waitTill } = await context.executeWorkflow(
		{ code: watchWorkflow(context, state) },
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

function warn(context: IExecuteFunctions, error: unknown): void {
	context.logger.warn(
		`${context.getNode().name}: n8n did not start a second sub-execution to be safe. ${error instanceof Error ? error.message : ''}`,
	);
}

/** Notes the address that has this sub-execution look at once. */
export function noteResumeUrl(context: IExecuteFunctions): void {
	context.getContext('node')[RESUME_URL] = resumeUrl(context);
}

async function resumeUrlOf(
	context: IExecuteFunctions,
	executionId: string,
): Promise<string | undefined> {
	const data = await context.getExecutionDataById(executionId);
	const stored: IDataObject | undefined = data?.executionData?.contextData?.[`node:${WATCH}`];
	const url = isRecord(stored) ? stored[RESUME_URL] : undefined;
	return typeof url === 'string' ? url : undefined;
}

/** What became of the execution that waits for a sub-execution. */
export type ParentState = 'waiting' | 'ended' | 'gone';

/**
 * Whether an execution still waits for this one. It may have been stopped, deleted, or killed before it was suspended.
 */
export async function parentState(
	context: IExecuteFunctions,
	parentExecutionId: string,
): Promise<ParentState> {
	const data = await context.getExecutionDataById(parentExecutionId);
	if (data === undefined) return 'gone';
	if (data.resultData.error !== undefined) return 'ended';
	const ownId = context.getExecutionId();
	const [waiting] = data.executionData?.nodeExecutionStack ?? [];
	const children = waiting?.metadata?.waitingChildExecutionIds;
	// Older n8n does not name them.
	const isOurs = Array.isArray(children) ? children.includes(ownId) : data.waitTill !== undefined;
	return isOurs ? 'waiting' : 'ended';
}

/**
 * What n8n has stored of a sub-execution that looks.
 *
 * @returns where it stands, and what it knew when it went to sleep
 */
export async function watcherState(
	context: IExecuteFunctions,
	watcherId: string,
): Promise<{ watcher: WatcherState; last: WatchState | undefined }> {
	const data = await context.getExecutionDataById(watcherId);
	if (data === undefined) return { watcher: { kind: 'gone' }, last: undefined };
	const [sleeping] = data.executionData?.nodeExecutionStack ?? [];
	const last = readWatch(sleeping?.data.main?.[0] ?? []);
	if (data.resultData.error !== undefined) return { watcher: { kind: 'failed' }, last };
	if (!data.waitTill) return { watcher: { kind: 'ended' }, last };
	return { watcher: { kind: 'waiting', due: new Date(data.waitTill).getTime() }, last };
}
