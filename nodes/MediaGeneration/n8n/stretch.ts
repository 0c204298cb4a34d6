import type { IExecuteFunctions } from 'n8n-workflow';

import { internalsOf, modeOf, settingsOf, stopSignal } from './internals';
import { clock, settled } from '../shared/clock';
import { JOURNAL } from './storedExecution';

/** n8n runs nodes one after the other. After a longer pause the execution was woken, or retried. */
const LONGEST_PAUSE_MS = 5_000;

/**
 * The time in which an execution is awake: rounds of a loop and nodes one after the other share it, nodes of others, too.
 * n8n stores what they do at its end. All times are milliseconds of the clock.
 */
export interface Stretch {
	/** When the execution began, or n8n woke it last. */
	beganAt: number;
	/** Whether n8n had stored something of the execution when it began: what kills the execution then leaves that. */
	readonly isStored: boolean;
	/** When the execution began, as far as known. */
	startedAt: number;
	/** When n8n woke the execution, if a run of this package was asleep. */
	wokenAt?: number;
	/** Whether the row of its first turn was written in it. */
	hasBegun?: boolean;
}

/**
 * n8n reads the data of an execution from its database each time that it wakes the execution, so they tell a stretch (n8n
 * 2.41), shown by test/e2e/process/sleeping.ts.
 */
const stretches = new WeakMap<object, Stretch>();

/** @returns the stretch in which a node runs */
export function stretchOf(context: IExecuteFunctions): Stretch {
	const { runExecutionData } = internalsOf(context);
	const known = runExecutionData && stretches.get(runExecutionData);
	if (known) return known;
	const now = clock.now();
	const { contextData = {} } = runExecutionData?.executionData ?? {};
	const isStored = Object.values(contextData).some((kept) => kept[JOURNAL] !== undefined);
	const startedAt = Math.min(now, startOf(context));
	const beganAt = Math.min(now, now - Date.now() + awakeSince(context));
	const begun: Stretch = { beganAt, isStored, startedAt };
	if (runExecutionData) stretches.set(runExecutionData, begun);
	return begun;
}

/** To be called when n8n has woken a run. @param startedAt when the execution began, as the run knew when it fell asleep */
export function noteWoken(context: IExecuteFunctions, startedAt: number): void {
	const stretch = stretchOf(context);
	if (stretch.wokenAt === undefined) stretch.wokenAt = stretch.beganAt = clock.now();
	stretch.startedAt = Math.min(stretch.startedAt, startedAt);
}

/** @returns since when nodes run without a pause, milliseconds since 1970 */
function awakeSince(context: IExecuteFunctions): number {
	const { runData = {} } = internalsOf(context).runExecutionData?.resultData ?? {};
	const spans = Object.values(runData)
		.flat()
		.map(({ startTime, executionTime }) => ({ from: startTime, until: startTime + executionTime }))
		.sort((one, other) => other.until - one.until);
	let since = Date.now();
	for (const { from, until } of spans) {
		if (since - until > LONGEST_PAUSE_MS) break;
		since = Math.min(since, from);
	}
	return since;
}

/**
 * When the first node of the execution began. A retry has the nodes of the execution that it repeats, and a step in the
 * editor those of executions before, which tell nothing.
 */
function startOf(context: IExecuteFunctions): number {
	if (['retry', 'manual'].includes(modeOf(context) ?? '')) return Infinity;
	const { runData = {} } = internalsOf(context).runExecutionData?.resultData ?? {};
	// n8n writes 0 where it does not know.
	const starts = Object.values(runData).flatMap((runs) =>
		runs.map(({ startTime }) => startTime || Infinity),
	);
	return Math.min(Infinity, ...starts) - Date.now() + clock.now();
}

/**
 * The time limit of the workflow or of n8n. n8n counts it from the start of the execution, sleeps included; but at each wake
 * it tells a node that the whole time is left (n8n 2.41), shown by test/e2e/process/facts.ts.
 *
 * @returns when n8n cancels the execution, milliseconds of the clock; Infinity if there is no limit
 */
export function timeLimitOf(context: IExecuteFunctions): number {
	const { startedAt, wokenAt } = stretchOf(context);
	const seconds = Number(settingsOf(context).executionTimeout ?? 0);
	const ends = internalsOf(context).additionalData?.executionTimeoutTimestamp;
	const toldAt = typeof ends === 'number' ? clock.now() + ends - Date.now() : Infinity;
	const sleptMs = wokenAt === undefined ? 0 : wokenAt - startedAt;
	return Math.min(seconds > 0 ? startedAt + 1000 * seconds : Infinity, toldAt - sleptMs);
}

/**
 * Does a piece of work when the execution has ended, and n8n has stored its end. Until then a kill of n8n takes away what
 * the execution knows. An execution that was stopped is stored without its last turn, so it does not count as ended.
 * If the execution sleeps after the end of this run of the node, in a later round of a loop, the end is stored as well.
 *
 * It relies on n8n's lifecycle hooks, which run in the order in which they were added (n8n 2.41), shown by
 * test/e2e/restart.test.ts.
 *
 * @param isRunEnded whether this run of the node has ended
 * @param work may fail without effect on the execution
 */
export function whenEndIsStored(
	context: IExecuteFunctions,
	isRunEnded: () => boolean,
	work: () => Promise<void>,
): void {
	const { hooks } = internalsOf(context).additionalData ?? {};
	hooks?.addHandler?.('workflowExecuteAfter', async ({ status }) => {
		// A stop may come while n8n stores the end. Then n8n takes the end back.
		const isStored = ['success', 'error'].includes(status) && stopSignal(context)?.aborted !== true;
		if (isStored || (status === 'waiting' && isRunEnded())) await settled(work());
	});
}
