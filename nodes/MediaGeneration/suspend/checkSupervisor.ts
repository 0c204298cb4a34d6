import {
	type IExecuteFunctions,
	type INodeExecutionData,
	type IRunExecutionData,
	UnexpectedError,
} from 'n8n-workflow';

import { withInput } from '../report/includeInput';
import { type Clock, systemClock } from '../shared/clock';
import { messageOf } from '../shared/itemError';
import { digest } from '../shared/json';
import { handsOnResults, settingsOf } from '../shared/n8nInternals';
import { settled } from '../shared/promises';
import { finalResults, giveUp, isComplete, presentItem } from './checkForResults';
import { MAX_CHECK_INTERVAL_MS, MIN_CHECK_INTERVAL_MS } from './checkSchedule';
import { checkItem, type CheckState, parseCheck, readCheck } from './checkState';
import { CHECK, checkWorkflow, nodeName, SUPERVISE } from './checkWorkflow';

/** The items that lead to the next turn; null where the branch ends, and the items before are the output. */
export type CheckTurn = INodeExecutionData[][] | null;

/** What the node of a sub-execution keeps from one turn to the next, in its context. */
export interface Kept {
	/** Of a checker: the state of the checks, and how many turns there were. */
	state?: unknown;
	turns?: number;
	/** The address that has the checker check at once. */
	resumeUrl?: string;
	/** Of a supervisor: the present checker. */
	checkerId?: string;
}

/**
 * Has tasks checked until they are finished. Two sub-executions see to it. The checker reads the tasks, and may die with
 * its process in the middle of a check. n8n tells the supervisor of the end of the checker, however it ended, and the
 * supervisor starts another checker where the first one died. For results n8n suspends this execution, and resumes it
 * with the supervisor's last output when the supervisor ends. For deliveries nobody waits.
 *
 * @returns the resume URL of the checker, empty where it is not known
 * @throws UnexpectedError where n8n did not suspend this execution; whatever n8n throws where it starts no sub-execution
 */
export async function startCheck(
	context: IExecuteFunctions,
	state: CheckState,
	clock: Clock = systemClock,
): Promise<string> {
	const isAwaited = state.purpose === 'results';
	// n8n hands a stopped execution to its retry with the error in it, unless it has stored which node ran last: so an
	// error alone does not say that the retry has ended.
	const isRetry = isAwaited && context.getMode() === 'retry';
	const own = isRetry ? await context.getExecutionDataById(context.getExecutionId()) : undefined;
	const error = own?.resultData.error;
	const check = { ...state, ...(error && { earlierError: digest(error) }) };
	// n8n 1 would have a supervisor start one checker after the other. There a checker that dies is lost.
	const first = handsOnResults ? SUPERVISE : CHECK;
	return (await start(context, first, check, isAwaited, clock)).resumeUrl;
}

/**
 * One turn of the supervisor: has a sub-execution check the tasks, and another sub-execution where that one died, which
 * goes on with what that one knew.
 *
 * @returns what n8n takes for the output where this execution dies: the results are not known, and the tasks are named
 * @throws UserError where another version of this package wrote what the wait began with
 */
export async function supervise(context: IExecuteFunctions): Promise<CheckTurn> {
	const state = readCheck(context.getInputData());
	// The turn before reported the results: this branch ends here, and they are what this execution came to.
	if (state === undefined) return null;
	const kept: Kept = context.getContext('node');
	const present = await stateOf(context, state, kept);
	const begun = await settled(async () => {
		Object.assign(kept, await start(context, CHECK, present, true));
	});
	if ('error' in begun) {
		// What keeps n8n from it may pass within a quarter of an hour.
		const lately = Date.now() - MAX_CHECK_INTERVAL_MS;
		const left = present.purpose === 'results' && giveUp(present, lately);
		if (left && isComplete(left)) return [await finalResults(context, left)];
		context.logger.warn(
			`${state.nodeName}: n8n did not start the check of its tasks; again in a minute. ${messageOf(begun.error)}`,
		);
		await context.putExecutionToWait(new Date(Date.now() + MIN_CHECK_INTERVAL_MS));
	}
	if (state.purpose !== 'results') return [[{ json: {} }]];
	// Without the files of the input: n8n makes copies of them whenever this execution is suspended.
	return [
		state.items.map((item) =>
			withInput(presentItem(item), item.input && { json: item.input.json }),
		),
	];
}

/** What the next checker begins with. */
async function stateOf(context: IExecuteFunctions, atFirst: CheckState, { checkerId }: Kept) {
	const supervisorId = context.getExecutionId();
	if (checkerId === undefined) return { ...atFirst, supervisorId };
	context.logger.warn(
		`${atFirst.nodeName}: the execution that checked its tasks has died; another goes on`,
	);
	const read = await settled(async () =>
		parseCheck(keptIn(await context.getExecutionDataById(checkerId), CHECK).state),
	);
	// Gone or of another version: what the wait began with can be read, and only costs more reads.
	const known = 'value' in read ? read.value : atFirst;
	// A checker dies in the middle of a check as a rule, so what it would have found is there already.
	return { ...known, supervisorId, woken: true };
}

/** A sub-execution sleeps long before. */
const MOST_QUESTIONS = 100;
const QUESTION_GAP_MS = 50;

/**
 * Starts a sub-execution. It sleeps when this returns: one that died before it slept would never begin again, so whoever
 * started it must not end earlier.
 *
 * @param isAwaited whether n8n suspends this execution until that one has ended
 */
async function start(
	context: IExecuteFunctions,
	operation: typeof CHECK | typeof SUPERVISE,
	state: CheckState,
	isAwaited: boolean,
	clock: Clock = systemClock,
) {
	// Where nobody waits for it and it fails, the workflow's own error workflow is to hear of it.
	const errorWorkflow = isAwaited ? undefined : settingsOf(context).errorWorkflow;
	const { executionId, waitTill } = await context.executeWorkflow(
		{ code: checkWorkflow(context, operation, errorWorkflow) },
		[checkItem(state)],
		undefined,
		{
			doNotWaitToFinish: !isAwaited,
			parentExecution: {
				executionId: context.getExecutionId(),
				workflowId: context.getWorkflow().id ?? '',
				shouldResume: isAwaited,
			},
		},
	);
	// Nobody would wait for its end: what it was started by would go on at once, and start another.
	if (isAwaited && !waitTill) throw new UnexpectedError('The execution did not sleep.');
	for (let questions = 1; ; questions++) {
		const found = await settled(async () => await context.getExecutionDataById(executionId));
		const data = 'value' in found ? found.value : undefined;
		const isGone = 'value' in found && data === undefined;
		const isAsleep = isAwaited || isGone || data?.waitTill || data?.resultData.error;
		if (isAsleep || questions === MOST_QUESTIONS) {
			return { checkerId: executionId, resumeUrl: keptIn(data, operation).resumeUrl ?? '' };
		}
		await clock.sleep(QUESTION_GAP_MS, undefined);
	}
}

/** What the node of a sub-execution has kept: what is not known of it costs a check more. */
const keptIn = (data: IRunExecutionData | undefined, operation: string): Kept =>
	data?.executionData?.contextData?.[`node:${nodeName(operation)}`] ?? {};
