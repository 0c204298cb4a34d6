import {
	type IExecuteFunctions,
	type INodeExecutionData,
	type IRunExecutionData,
	UnexpectedError,
} from 'n8n-workflow';

import { withInput } from '../report/includeInput';
import { clock } from '../shared/clock';
import { messageOf } from '../shared/itemError';
import { digest, without } from '../shared/json';
import { handsOnResults, settingsOf } from '../n8n/internals';
import { settled } from '../shared/promises';
import { finalResults, giveUp, isComplete, presentItem } from './checkForResults';
import { MAX_CHECK_INTERVAL_MS, MIN_CHECK_INTERVAL_MS, undelivered } from './checkSchedule';
import { checkItem, type CheckState, doneItems, parseCheck, readCheck } from './checkState';
import { CHECK, checkWorkflow, nodeName, SUPERVISE } from './checkWorkflow';

/** The items that lead to the next turn. With null the branch ends, and the items before are the output. */
export type CheckTurn = INodeExecutionData[][] | null;

/** What the node of a sub-execution keeps in its context, from one turn to the next. */
export interface Kept {
	/** Of a checker: the state of the checks, and how often the node has run. */
	state?: unknown;
	runs?: number;
	/** The resume URL, which makes the checker check at once. */
	resumeUrl?: string;
	/** Of a supervisor: the present checker, and how many checkers in a row have died in their first check. */
	checkerId?: string;
	deaths?: number;
}

/**
 * Starts the checks of tasks in two sub-executions. The checker reads the tasks until they are finished, and may die
 * with its process. n8n tells the supervisor of its end, and after a death the supervisor starts another checker. For
 * results n8n suspends this execution, and resumes it with the last output of the supervisor. For deliveries nobody
 * waits.
 *
 * @returns the resume URL of the checker; empty if it is not known
 * @throws UnexpectedError if n8n did not suspend this execution; n8n's error if n8n starts no sub-execution
 */
export async function startCheck(context: IExecuteFunctions, state: CheckState): Promise<string> {
	const isAwaited = state.purpose === 'results';
	// The retry of a stopped execution may begin with the error of that execution in its data, which is not its end.
	const isRetry = isAwaited && context.getMode() === 'retry';
	const own = isRetry ? await context.getExecutionDataById(context.getExecutionId()) : undefined;
	const error = own?.resultData.error;
	const check = { ...state, ...(error && { earlierError: digest(error) }) };
	// On n8n 1 a supervisor would start checkers without end. There a checker that dies is lost.
	const first = handsOnResults ? SUPERVISE : CHECK;
	return (await start(context, first, check, isAwaited)).resumeUrl;
}

/**
 * One turn of the supervisor: starts a checker, which goes on with what a checker that died has stored.
 *
 * @returns what n8n takes for the output if this execution dies: the results are not known, and the items name the tasks
 * @throws UserError if another version of this package wrote the state
 */
export async function supervise(context: IExecuteFunctions): Promise<CheckTurn> {
	const state = readCheck(context.getInputData());
	// The turn before put out the results.
	if (state === undefined) return null;
	const kept: Kept = context.getContext('node');
	const next = { ...kept };
	const present = await stateOf(context, state, next);
	// Whatever kills each checker may kill n8n, too.
	const lost = killsCheckers(next) ? await endOf(context, present) : undefined;
	if (lost !== undefined) return [lost];
	const begun = await settled(async () => {
		Object.assign(kept, next, await start(context, CHECK, present, true));
	});
	if ('error' in begun) {
		const mayRecover = clock.now() < MAX_CHECK_INTERVAL_MS;
		const end = mayRecover ? undefined : await endOf(context, present);
		if (end !== undefined) return [end];
		context.logger.warn(
			`${state.nodeName}: n8n did not start the check of its tasks; again in a minute. ${messageOf(begun.error)}`,
		);
		await context.putExecutionToWait(new Date(Date.now() + MIN_CHECK_INTERVAL_MS));
	}
	if (state.purpose !== 'results') return [[{ json: {} }]];
	// The files of the input are left out: n8n copies them whenever this execution is suspended.
	return [
		state.items.map((item) =>
			withInput(presentItem(item), item.input && { json: item.input.json }),
		),
	];
}

/** @returns the items to end with; undefined for 15 minutes from the timeout */
async function endOf(context: IExecuteFunctions, state: CheckState) {
	const now = Date.now() - MAX_CHECK_INTERVAL_MS;
	if (state.purpose === 'results') {
		// No check comes after a pause.
		const left = giveUp(without(state, 'notBefore'), now);
		return isComplete(left) ? await finalResults(context, left) : undefined;
	}
	const failure = undelivered(state, now);
	return failure && doneItems([], failure);
}

/**
 * If so many checkers in a row have died in their first check, the files may be too large for n8n's memory: the items
 * leave with their URLs.
 */
const MOST_DEATHS = 5;

/** Whether checkers die in their first check that bring no files. */
const killsCheckers = ({ deaths = 0 }: Kept) => deaths > MOST_DEATHS;

/** How often a checker has run when its first check begins. */
const RUNS_BEFORE_CHECK = 2;

/** What the next checker begins with. */
async function stateOf(context: IExecuteFunctions, atFirst: CheckState, kept: Kept) {
	const { checkerId, deaths = 0 } = kept;
	const supervisorId = context.getExecutionId();
	if (checkerId === undefined) return { ...atFirst, supervisorId };
	const data = await settled(async () => await context.getExecutionDataById(checkerId));
	const { state, runs = 0 } = keptIn('value' in data ? data.value : undefined, CHECK);
	kept.deaths = runs > RUNS_BEFORE_CHECK ? 0 : deaths + 1;
	const bringsFiles = kept.deaths < MOST_DEATHS;
	const how = bringsFiles ? '' : ', and brings no files: they may be too large for this n8n';
	context.logger.warn(
		`${atFirst.nodeName}: the execution that checked its tasks has died; another goes on${how}`,
	);
	const read = await settled(async () => parseCheck(state));
	// If the checker's data are gone, or of another version, the first state serves, and costs more reads.
	const known = 'value' in read ? read.value : atFirst;
	// A checker usually dies during a check, so its results are ready now. But n8n needs a rest from checks that kill it.
	const next = { ...known, supervisorId, woken: !killsCheckers(kept) };
	if (next.purpose !== 'results' || bringsFiles) return next;
	const items = next.items.map((item) =>
		item.output ? { ...item, output: { ...item.output, download: false } } : item,
	);
	return { ...next, items };
}

/** The limit for an n8n that never answers: a sub-execution sleeps long before. */
const MOST_QUESTIONS = 100;
const QUESTION_GAP_MS = 50;

/**
 * Starts a sub-execution, and returns when the sub-execution sleeps. A sub-execution that dies before it sleeps never
 * begins again, so this execution must not end earlier.
 *
 * @param isAwaited whether n8n suspends this execution until the sub-execution has ended
 */
async function start(
	context: IExecuteFunctions,
	operation: typeof CHECK | typeof SUPERVISE,
	state: CheckState,
	isAwaited: boolean,
) {
	// If nobody waits for the sub-execution, its failure is to start the error workflow of the workflow.
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
	// The sub-execution has ended already: n8n would resume this execution at once, which would start another.
	if (isAwaited && !waitTill) throw new UnexpectedError('The execution did not sleep.');
	for (let questions = 1; ; questions++) {
		const found = await settled(async () => await context.getExecutionDataById(executionId));
		const data = 'value' in found ? found.value : undefined;
		const isGone = 'value' in found && data === undefined;
		const isAsleep = isAwaited || isGone || data?.waitTill || data?.resultData.error;
		if (isAsleep || questions === MOST_QUESTIONS) {
			return { checkerId: executionId, resumeUrl: keptIn(data, operation).resumeUrl ?? '' };
		}
		await clock.sleep(questions * QUESTION_GAP_MS, undefined);
	}
}

/** What the node of a sub-execution has kept, as far as known. */
const keptIn = (data: IRunExecutionData | undefined, operation: string): Kept =>
	data?.executionData?.contextData?.[`node:${nodeName(operation)}`] ?? {};
