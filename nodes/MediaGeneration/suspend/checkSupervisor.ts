import {
	type IExecuteFunctions,
	type INodeExecutionData,
	type IRunExecutionData,
	UnexpectedError,
} from 'n8n-workflow';

import { settled } from '../shared/promises';
import { type Clock, systemClock } from '../shared/clock';
import { digest } from '../shared/json';
import { messageOf } from '../shared/itemError';
import { settingsOf } from '../shared/n8nInternals';
import {
	type CheckState,
	checkItem,
	type DeliveryCheck,
	parseCheck,
	readCheck,
	type ResultsCheck,
} from './checkState';
import { MIN_CHECK_INTERVAL_MS } from './checkSchedule';
import { CHECK, CHECKER, checkWorkflow, nodeName, SUPERVISE, SUPERVISOR } from './checkWorkflow';
import { presentResults } from './resumedOutput';
import { deliveryChecks } from './endCheckEarly';

/** The items that lead to the next turn; null where the branch ends, and the items before are the output. */
export type CheckTurn = INodeExecutionData[][] | null;

/** What the node of a sub-execution keeps from one turn to the next, in its context. */
export interface Kept {
	/** Of a checker: the state of the checks. */
	state?: unknown;
	/** Of a checker: how many turns there were. */
	turns?: number;
	/** The address that has the checker check at once. */
	resumeUrl?: string;
	/** Of a supervisor: the present checker. */
	checkerId?: string;
}

/**
 * Suspends this execution until its tasks are finished. Two sub-executions see to it. The checker reads the tasks, and
 * may die with its process in the middle of a check. n8n tells the supervisor of the end of the checker, however it
 * ended, and the supervisor starts another checker where the first one died. When the supervisor ends, n8n resumes this
 * execution with the supervisor's last output.
 *
 * @returns the resume URL of the checker, empty where it is not known; undefined where n8n did not suspend this execution
 * @throws whatever n8n throws where it cannot start a sub-execution
 */
export async function startResultsCheck(
	context: IExecuteFunctions,
	state: ResultsCheck,
): Promise<string | undefined> {
	// n8n hands a stopped execution to its retry with the error in it, unless it has stored which node ran last: so an
	// error alone does not say that the retry has ended.
	const isRetry = context.getMode() === 'retry';
	const own = isRetry ? await context.getExecutionDataById(context.getExecutionId()) : undefined;
	const error = own?.resultData.error;
	const check = { ...state, ...(error && { earlierError: digest(error) }) };
	const supervisorId = await start(context, SUPERVISOR, check, true);
	return supervisorId && ((await keptBy(context, supervisorId, SUPERVISE)).resumeUrl ?? '');
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
		if (!data || data.waitTill !== undefined || data.resultData.error !== undefined) {
			const { resumeUrl } = keptIn(data, SUPERVISE);
			const taskIds = state.deliveries.map(({ taskId }) => taskId);
			if (resumeUrl) deliveryChecks.note(resumeUrl, taskIds);
			return;
		}
		await clock.sleep(QUESTION_GAP_MS, undefined);
	}
}

/**
 * One turn of the supervisor: has a sub-execution check the tasks, and another sub-execution where that one died, which
 * goes on with what that one knew.
 *
 * @param now the time of day, milliseconds since 1970
 * @returns what n8n takes for the output where this execution dies: the results are not known, and the tasks are named
 * @throws UserError where another version of this package wrote what the wait began with
 */
export async function supervise(context: IExecuteFunctions, now: number): Promise<CheckTurn> {
	const state = readCheck(context.getInputData());
	// The turn before reported the results: this branch ends here, and they are what this execution came to.
	if (state === undefined) return null;
	const kept: Kept = context.getContext('node');
	const begun = await settled(async () => {
		const checkerId = await start(context, CHECKER, await stateOf(context, state, kept), true);
		// Nobody would wait for its end: what it was started by would go on at once, and start another.
		if (checkerId === undefined) throw new UnexpectedError('The execution did not sleep.');
		kept.checkerId = checkerId;
		kept.resumeUrl = (await keptBy(context, checkerId, CHECK)).resumeUrl ?? '';
	});
	if ('error' in begun) {
		context.logger.warn(
			`${state.nodeName}: n8n did not start the check of its tasks; again in a minute. ${messageOf(begun.error)}`,
		);
		await context.putExecutionToWait(new Date(now + MIN_CHECK_INTERVAL_MS));
	}
	return [state.purpose === 'results' ? await presentResults(context, state) : [{ json: {} }]];
}

/** What the next checker begins with. */
async function stateOf(
	context: IExecuteFunctions,
	atFirst: CheckState,
	{ checkerId }: Kept,
): Promise<CheckState> {
	const supervisorId = context.getExecutionId();
	if (checkerId === undefined) return { ...atFirst, supervisorId };
	context.logger.warn(
		`${atFirst.nodeName}: the execution that checked its tasks has died; another goes on`,
	);
	const { state } = await keptBy(context, checkerId, CHECK);
	const read = await settled(async () => parseCheck(state));
	// Of another version: what the wait began with can be read, and only costs more reads.
	const known = 'value' in read ? read.value : atFirst;
	// A checker dies in the middle of a check as a rule, so what it would have found is there already.
	return { ...known, supervisorId, woken: true };
}

/** @returns the id of the sub-execution; undefined where n8n did not suspend it */
async function start(
	context: IExecuteFunctions,
	operations: string[],
	state: CheckState,
	isAwaited: boolean,
): Promise<string | undefined> {
	// Where nobody waits for it and it fails, the workflow's own error workflow is to hear of it.
	const errorWorkflow = isAwaited ? undefined : settingsOf(context).errorWorkflow;
	const { executionId, waitTill } = await context.executeWorkflow(
		{ code: checkWorkflow(context, operations, errorWorkflow) },
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

/** What the node of a sub-execution has kept: what is not known of it costs a check more. */
async function keptBy(
	context: IExecuteFunctions,
	executionId: string,
	operation: string,
): Promise<Kept> {
	const found = await settled(async () => await context.getExecutionDataById(executionId));
	return 'value' in found ? keptIn(found.value, operation) : {};
}

const keptIn = (data: IRunExecutionData | undefined, operation: string): Kept =>
	data?.executionData?.contextData?.[`node:${nodeName(operation)}`] ?? {};
