import type { IExecuteFunctions } from 'n8n-workflow';

import { internalsOf, retriedBy } from '../n8n/internals';
import { JOURNAL } from '../n8n/storedExecution';
import { settled } from '../shared/promises';
import { type Stored, type StoredRun, VERSION } from './storedJournal';

/**
 * How a run of the node begins. `first`: nothing is known of it. `woken`: it was asleep. `killed`: it was asleep or awake
 * when its execution was killed or stopped, and another execution goes on with it (*Retry execution*). `retried`: it had
 * ended with an error, and another execution tries it again. `again`: this execution does so (*Retry On Fail*).
 */
export type Beginning = 'first' | 'woken' | 'killed' | 'retried' | 'again';

/** How a run begins by what is stored of it. */
export function beginningOf(known: StoredRun | undefined, execution: string): Beginning {
	if (known === undefined) return 'first';
	if (known.execution === execution) return known.isAsleep ? 'woken' : 'again';
	return known.isAsleep ? 'killed' : 'retried';
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

/** What n8n has stored by now of this run of the node in an execution; undefined if that cannot be told. */
export async function storedRun(
	context: IExecuteFunctions,
	execution: string,
): Promise<StoredRun | undefined> {
	const read = await settled(async () => await context.getExecutionDataById(execution));
	if ('error' in read) return undefined;
	const contexts = read.value?.executionData?.contextData ?? {};
	const journal = contexts[`node:${context.getNode().name}`]?.[JOURNAL] as Stored | undefined;
	if (journal?.version !== VERSION) return undefined;
	const run = journal.runs[internalsOf(context).runIndex ?? 0];
	// A retry that was killed before it stored anything has the journal of the execution that it retried.
	return run?.execution === execution ? run : undefined;
}
