/** What n8n has stored of the sub-execution that looks. */
export type WatcherState =
	/** It sleeps until this moment, milliseconds since 1970; one that looks at present was due a moment ago. */
	| { kind: 'waiting'; due: number }
	/** It came to its end. */
	| { kind: 'ended' }
	/** Somebody stopped it, or it failed. */
	| { kind: 'failed' }
	/** Somebody deleted it. */
	| { kind: 'gone' };

/** A look takes seconds, and n8n begins it within a minute. */
const OVERDUE_MS = 3 * 60_000;

/**
 * What a guard does about the sub-execution that looks. n8n runs an execution that died with its process never again,
 * so a look that a process dies in would be the last: another execution sleeps meanwhile, and goes on in its place.
 *
 * @param watcher the sub-execution that looks
 * @param isAwaited whether an execution still waits for its results
 * @param wasSuspect whether it was found in this same state before: after n8n was away everything is overdue at first
 * @param now milliseconds since 1970
 */
export function guard(
	watcher: WatcherState,
	isAwaited: boolean,
	wasSuspect: boolean,
	now: number,
): 'rest' | 'suspect' | 'takeOver' | 'end' {
	if (watcher.kind === 'waiting' && watcher.due > now - OVERDUE_MS) return 'rest';
	// Its results are out, or nobody wants it to go on.
	if (!isAwaited && (watcher.kind === 'ended' || watcher.kind === 'failed')) return 'end';
	return wasSuspect ? 'takeOver' : 'suspect';
}
