import type { IExecuteFunctions } from 'n8n-workflow';

import { clock } from '../shared/clock';
import { executionIdOf, internalsOf } from './internals';

/** So long, and within so many bytes, the process remembers states. */
const REMEMBERED_MS = 30 * 60_000;
const MOST_BYTES = 64 * 1024 ** 2;

/** Of so many runs the process knows which turn comes next, whatever else is forgotten. */
const MOST_RUNS = 10_000;

/** The newest state of a run. */
export interface NewestState {
	/** The number of the turn that comes next. */
	turn: number;
	/** The state as JSON; undefined if it is forgotten. */
	state?: string | undefined;
}

type Remembered = NewestState & { at: number };

/** The oldest first. */
const known = new Map<string, Remembered>();
let bytes = 0;

const keyOf = (context: IExecuteFunctions): string =>
	`${context.getNode().id}.${executionIdOf(context)}.${internalsOf(context).runIndex ?? 0}`;

/** A character takes up to two bytes. */
const bytesOf = ({ state = '' }: NewestState): number => 2 * state.length;

function forgetState(remembered: Remembered): void {
	bytes -= bytesOf(remembered);
	remembered.state = undefined;
}

function forgetTheOldest(now: number): void {
	for (const [key, remembered] of known) {
		const isOld = now - remembered.at >= REMEMBERED_MS;
		if (!isOld && bytes <= MOST_BYTES && known.size <= MOST_RUNS) return;
		forgetState(remembered);
		if (known.size > MOST_RUNS) known.delete(key);
	}
}

/**
 * Remembers the state of a run that n8n is about to store, or whose items leave.
 *
 * With a limit of concurrency n8n reads an execution before it queues it, and starts the execution later from that copy,
 * even if the run has gone on and slept meanwhile (n8n 2.41), shown by test/e2e/weekly/wait.test.ts. The copy is always started by
 * the same process, so the memory of the process is enough.
 *
 * @param turn the number of the turn that comes next
 * @param state becomes JSON
 */
export function rememberState(context: IExecuteFunctions, turn: number, state: object): void {
	if (executionIdOf(context) === undefined) return;
	const key = keyOf(context);
	const before = known.get(key);
	if (before) forgetState(before);
	known.delete(key);
	const now = clock.now();
	const remembered = { turn, state: JSON.stringify(state), at: now };
	known.set(key, remembered);
	bytes += bytesOf(remembered);
	forgetTheOldest(now);
}

/** The newest state of a run that this process knows of. */
export function newestState(context: IExecuteFunctions): NewestState | undefined {
	forgetTheOldest(clock.now());
	return known.get(keyOf(context));
}

/** For tests: a process that has just begun. */
export function forgetStates(): void {
	known.clear();
	bytes = 0;
}
