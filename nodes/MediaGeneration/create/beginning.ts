import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { internalsOf, isSupplied, retriedBy } from '../n8n/internals';
import { newestState } from '../n8n/newestState';
import { JOURNAL } from '../n8n/storedExecution';
import { readStored } from '../shared/json';
import { type Stored, type StoredRun, VERSION } from './storedJournal';

/**
 * How a run of the node begins. `first`: nothing is known of it. `woken`: it was asleep. `again`: it had failed, and this
 * execution tries it again (*Retry On Fail*). `retry`: another execution was killed or stopped, or has failed, and this one
 * goes on with it (*Retry execution*).
 */
export type Beginning = 'first' | 'woken' | 'again' | 'retry';

/** How a run begins by what is stored of it. */
export function beginningOf(known: StoredRun | undefined, execution: string): Beginning {
	if (known === undefined) return 'first';
	if (known.execution !== execution) return 'retry';
	return known.isAsleep ? 'woken' : 'again';
}

/**
 * The executions that this one goes on from, oldest first. n8n tells a woken execution nothing of them, so each journal
 * of the execution names them.
 */
export function executionsBefore(context: IExecuteFunctions, execution: string): string[] {
	const { contextData = {} } = internalsOf(context).runExecutionData?.executionData ?? {};
	const known = Object.values(contextData).flatMap((kept) => {
		const journal = kept[JOURNAL] as Partial<Stored> | undefined;
		return journal?.executions ?? [];
	});
	const all = new Set([...known, retriedBy(context) ?? execution]);
	return [...all].filter((each) => each !== execution);
}

/** The name of the function that gives the whole journal to the next try in the same process. */
export const WHOLE = 'whole';

/**
 * The newer of what n8n hands out of a run and what the process remembers. If the process has forgotten all but the number of
 * the turn, nothing is known of the turns before but that they have begun.
 *
 * @param store the data of the node that n8n stores with the execution
 * @param runIndex the index of the run
 * @returns `isOutdated`: whether n8n has handed out an older state of the run
 * @throws UserError if another version of this package wrote it
 */
export function newestOf(
	context: IExecuteFunctions,
	store: IDataObject,
	runIndex: number,
	execution: string,
): { stored: Stored; isOutdated: boolean } {
	const handedOut = storedIn(store);
	const run = handedOut.runs[runIndex];
	const newest = isSupplied(context) ? undefined : newestState(context);
	const turn = run?.turn ?? -1;
	if (newest === undefined || newest.turn < turn || run?.isAsleep === false) {
		return { stored: handedOut, isOutdated: false };
	}
	const isOutdated = newest.turn > turn;
	if (newest.state !== undefined) {
		return { stored: readStored<Stored>(JSON.parse(newest.state), VERSION), isOutdated };
	}
	if (run && isOutdated) {
		run.before.push({ execution, turn: newest.turn - 1, hasBegun: true });
		run.turn = newest.turn;
	}
	return { stored: handedOut, isOutdated: false };
}

/** What n8n has stored of a node, or what this process has left for the next try. */
function storedIn({ [JOURNAL]: kept }: IDataObject): Stored {
	if (kept === undefined) {
		return { version: VERSION, runs: {}, executions: [], kept: [], claimed: [] };
	}
	const { [WHOLE]: whole } = kept as { [WHOLE]?: () => unknown };
	const present = typeof whole === 'function' ? whole() : kept;
	return readStored<Stored>(JSON.parse(JSON.stringify(present)), VERSION);
}
