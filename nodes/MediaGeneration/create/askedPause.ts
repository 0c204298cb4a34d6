import type { IExecuteFunctions } from 'n8n-workflow';

import { nodeContext } from '../n8n/internals';

/** The key in the node's context, which n8n stores with the execution. */
const KEY = 'askedPause';

type Pause = [until: number, lengthMs: number];

/**
 * Stores a pause that the service asks for. The node's next try, turn, and round in a loop observe the pause. Its end is
 * a time of day, since another process may read it.
 *
 * @param lengthMs milliseconds
 */
export function notePause(context: IExecuteFunctions, lengthMs = 0): void {
	if (lengthMs <= pauseLeft(context)) return;
	nodeContext(context)[KEY] = [Date.now() + lengthMs, lengthMs] satisfies Pause;
}

/** @returns the rest of the pause, milliseconds; at most its whole length, even if the clock was set back */
export function pauseLeft(context: IExecuteFunctions): number {
	const [until, lengthMs] = (nodeContext(context)[KEY] ?? [0, 0]) as Pause;
	return Math.max(0, Math.min(until - Date.now(), lengthMs));
}
