import { type IDataObject, type IExecuteFunctions, UnexpectedError } from 'n8n-workflow';

import { settled } from '../shared/concurrency';
import { type Clock, systemClock } from '../shared/clock';
import { digest, isRecord, without } from '../shared/json';
import {
	type CheckState,
	checkItem,
	type DeliveryCheck,
	parseCheck,
	readCheck,
	type ResultsCheck,
} from './checkState';
import { CHECK, CHECKER, checkWorkflow, nodeName, SUPERVISE, SUPERVISOR } from './checkWorkflow';
import { settingsOf } from '../shared/n8nInternals';
import { noteCheck, resumeUrl } from './suspension';

/**
 * Suspends this execution until its tasks are finished. Two sub-executions see to it. The checker reads the tasks, and
 * may die with its process in the middle of a check. n8n tells the supervisor of the end of the checker, however it
 * ended, and the supervisor starts another checker where the first one died. When the supervisor ends, n8n resumes this
 * execution with the supervisor's last output.
 *
 * @returns whether n8n suspended it
 * @throws whatever n8n throws where it cannot start a sub-execution
 */
export async function startResultsCheck(
	context: IExecuteFunctions,
	state: ResultsCheck,
): Promise<boolean> {
	const check = { ...state, earlierError: await earlierError(context) };
	const supervisorId = await start(context, SUPERVISOR, check, true);
	if (supervisorId === undefined) return false;
	const stored = await storedContext(context, supervisorId, SUPERVISE);
	const url = stored?.[RESUME_URL];
	noteCheck(context, typeof url === 'string' ? url : undefined);
	return true;
}

/** The sub-executions of a run sleep long before. */
const MOST_QUESTIONS = 100;
const QUESTION_GAP_MS = 50;

/**
 * Starts sub-executions that nobody waits for. They sleep when this returns: a sub-execution that died before it slept
 * would never begin again, so the run that started it must not end earlier.
 *
 * @throws whatever n8n throws where it cannot start one
 */
export async function startDeliveryCheck(
	context: IExecuteFunctions,
	state: DeliveryCheck,
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

/** What the supervisor keeps for the case that the checker dies. */
const STATE = 'state';
const CHECKER_ID = 'checkerId';

/** Where the node of a sub-execution leaves its resume URL, for the execution that started it. */
const RESUME_URL = 'resumeUrl';

/**
 * Starts the checker, and suspends this execution until it ends. Where there was one before, the new one goes on with
 * what that one knew.
 *
 * @param state what the wait began with
 * @throws whatever n8n throws where it cannot start one; UnexpectedError where the new one does not sleep
 */
export async function superviseCheck(context: IExecuteFunctions, state: CheckState): Promise<void> {
	const store = context.getContext('node');
	const earlier = store[CHECKER_ID];
	const isAgain = typeof earlier === 'string';
	const known = isAgain ? await lastState(context, earlier) : undefined;
	const checkerId = await start(
		context,
		CHECKER,
		// A checker dies in the middle of a check as a rule, so what it would have found is there already.
		{
			...without(known ?? state, 'turn'),
			woken: isAgain,
			supervisorId: context.getExecutionId(),
		},
		true,
	);
	// Nobody would wait for its end: what it was started by would go on at once, and start another.
	if (checkerId === undefined) throw new UnexpectedError('The execution that checks did not sleep');
	store[CHECKER_ID] = checkerId;
	const stored = await storedContext(context, checkerId, CHECK);
	store[RESUME_URL] = stored?.[RESUME_URL];
}

/** Keeps what a wait begins with in the supervisor's execution. */
export function keepState(context: IExecuteFunctions, state: CheckState): void {
	context.getContext('node')[STATE] = state as unknown as IDataObject;
}

/** @returns what the wait of this supervisor began with; undefined at its first turn @throws as `readCheck` does */
export const keptState = (context: IExecuteFunctions): CheckState | undefined =>
	parseCheck(context.getContext('node')[STATE]);

/** @returns the id of the sub-execution; undefined where n8n did not suspend it */
async function start(
	context: IExecuteFunctions,
	role: typeof CHECKER | typeof SUPERVISOR,
	state: CheckState,
	isAwaited: boolean,
): Promise<string | undefined> {
	// Where nobody waits for it and it fails, the workflow's own error workflow is to hear of it.
	const errorWorkflow = isAwaited ? undefined : settingsOf(context).errorWorkflow;
	const { executionId, waitTill } = await context.executeWorkflow(
		{ code: checkWorkflow(context, role, errorWorkflow) },
		[checkItem(state)],
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

/** Notes the address that has this sub-execution check at once. */
export function noteResumeUrl(context: IExecuteFunctions): void {
	context.getContext('node')[RESUME_URL] = resumeUrl(context);
}

/** What the node of a sub-execution has stored in its context. */
async function storedContext(
	context: IExecuteFunctions,
	executionId: string,
	operation: string,
): Promise<IDataObject | undefined> {
	// What is not known here costs one more check; the sub-execution is there already.
	const found = await settled(async () => await context.getExecutionDataById(executionId));
	const data = 'value' in found ? found.value : undefined;
	const stored: IDataObject | undefined =
		data?.executionData?.contextData?.[`node:${nodeName(operation)}`];
	return isRecord(stored) ? stored : undefined;
}

/** What a sub-execution knew when it last went to sleep. */
async function lastState(
	context: IExecuteFunctions,
	executionId: string,
): Promise<CheckState | undefined> {
	const data = await context.getExecutionDataById(executionId);
	const [sleeping] = data?.executionData?.nodeExecutionStack ?? [];
	const read = await settled(async () => readCheck(sleeping?.data.main?.[0] ?? []));
	// Of another version: what the wait began with can be read, and only costs more reads.
	return 'value' in read ? read.value : undefined;
}

/** What became of the execution that waits for a sub-execution. */
export type ParentState = 'waiting' | 'ended' | 'gone';

/**
 * Whether an execution still waits for its supervisor. It may have been stopped, deleted, or killed before it was
 * suspended.
 *
 * @param check.earlierError of an error that it had before it was suspended
 */
export async function parentState(
	context: IExecuteFunctions,
	{ parentExecutionId, supervisorId = '', earlierError }: ResultsCheck,
): Promise<ParentState> {
	const data = await context.getExecutionDataById(parentExecutionId);
	if (data === undefined) return 'gone';
	const { error } = data.resultData;
	if (error !== undefined && digest(error) !== earlierError) return 'ended';
	const [waiting] = data.executionData?.nodeExecutionStack ?? [];
	const children = waiting?.metadata?.waitingChildExecutionIds;
	// Older n8n does not name them.
	const isOurs = Array.isArray(children)
		? children.includes(supervisorId)
		: data.waitTill !== undefined;
	return isOurs ? 'waiting' : 'ended';
}

/**
 * The error that an execution has which is still under way. n8n hands a stopped execution to its retry with the error
 * in it, unless it has stored which node ran last: so an error alone does not say that the retry has ended.
 *
 * @returns a digest of it; undefined where it has none
 */
export async function earlierError(context: IExecuteFunctions): Promise<string | undefined> {
	if (context.getMode() !== 'retry') return undefined;
	const data = await context.getExecutionDataById(context.getExecutionId());
	const error = data?.resultData.error;
	return error && digest(error);
}
